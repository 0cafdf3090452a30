//! The switch of a near gateway: whether new connections are carried or go direct. The user turns it while the gateway runs
//! (`hikyaku proxy on`, `off`, `drain`), and it follows the connection to the far gateway (`--direct-when-down`).
//!
//! Connections that are open stay as they are, whatever the switch says.

use crate::transparent::{Rules, Taking};
use anyhow::Result;
use serde::{Deserialize, Serialize};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;

/// What the user has asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Mode {
    /// New connections are carried.
    #[default]
    On,
    /// New connections go direct. Those that are carried go on.
    Off,
    /// No new connections are taken in, and the gateway ends with the last one that is open. This is not taken back.
    Draining,
}

/// Whether the far gateway is there.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Far {
    /// It is connected.
    #[default]
    Up,
    /// Nothing is heard of it, and the connection is not given up.
    Silent,
    /// The connection is lost, and another one is being made.
    Away,
}

/// What becomes of new connections while the far gateway is not there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum WhenDown {
    /// They wait for it a short time, and are refused.
    Refuse,
    /// They go direct.
    Direct,
}

/// How a connection goes to its server.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Route {
    /// Through the far gateway.
    #[default]
    Carried,
    /// By a TCP connection of this machine.
    Direct,
}

/// The switch of a gateway.
pub(crate) struct Switch {
    position: watch::Sender<Position>,
    when_down: WhenDown,
    /// The rules of the transparent mode, as long as the gateway runs, and what they take. The lock is held while the
    /// kernel is told, so that two changes do not overtake each other.
    rules: Mutex<Option<(Arc<Rules>, Taking)>>,
}

/// What decides on new connections.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Position {
    pub(crate) mode: Mode,
    pub(crate) far: Far,
}

impl Position {
    /// How a new connection goes.
    const fn route(self, when_down: WhenDown) -> Route {
        match (self.mode, self.far, when_down) {
            (Mode::On, Far::Up, _) | (Mode::On, _, WhenDown::Refuse) => Route::Carried,
            (Mode::On, _, WhenDown::Direct) | (Mode::Off | Mode::Draining, _, _) => Route::Direct,
        }
    }
}

impl Switch {
    /// A switch that is on. `rules` are those of the transparent mode.
    pub(crate) fn new(when_down: WhenDown, rules: Option<Arc<Rules>>) -> Arc<Self> {
        let position = watch::Sender::new(Position::default());
        let rules = Mutex::new(rules.map(|rules| (rules, Taking::New)));
        Arc::new(Self { position, when_down, rules })
    }

    /// How a connection goes that begins now.
    pub(crate) fn route(&self) -> Route {
        self.position().route(self.when_down)
    }

    /// What decides on it.
    pub(crate) fn position(&self) -> Position {
        *self.position.borrow()
    }

    /// Does as the user says, unless the gateway drains. When this returns, new connections go the new way.
    ///
    /// # Errors
    ///
    /// The kernel does not take the rules of the transparent mode. All stays as it was.
    pub(crate) fn set_mode(&self, mode: Mode) -> Result<()> {
        self.change(|position| match position.mode {
            Mode::Draining => {}
            Mode::On | Mode::Off => position.mode = mode,
        })
    }

    /// The far gateway is there, or not.
    ///
    /// # Errors
    ///
    /// As [`Switch::set_mode`].
    pub(crate) fn set_far(&self, far: Far) -> Result<()> {
        self.change(|position| position.far = far)
    }

    fn change(&self, change: impl FnOnce(&mut Position)) -> Result<()> {
        let mut rules = self.rules();
        let before = self.position();
        self.position.send_modify(change);
        let wanted = match self.route() {
            Route::Carried => Taking::New,
            Route::Direct => Taking::Open,
        };
        if let Some((rules, taking)) = rules.as_mut().filter(|(_, taking)| *taking != wanted) {
            if let Err(error) = rules.take(wanted) {
                self.position.send_replace(before);
                return Err(error);
            }
            *taking = wanted;
        }
        Ok(())
    }

    /// Waits until the gateway drains.
    pub(crate) async fn draining(&self) {
        let mut position = self.position.subscribe();
        let is_draining = |position: &Position| position.mode == Mode::Draining;
        // The switch is there as long as this waits, so that no error comes.
        let _ = position.wait_for(is_draining).await;
    }

    /// The gateway ends: the rules are not held any more.
    pub(crate) fn let_go(&self) {
        let rules = self.rules().take();
        drop(rules);
    }

    fn rules(&self) -> MutexGuard<'_, Option<(Arc<Rules>, Taking)>> {
        self.rules.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn new_connections_go_as_the_user_and_the_far_gateway_allow() {
        use {Far::*, Mode::*, Route::*, WhenDown::*};
        for (mode, far, when_down, wanted) in [
            (On, Up, Refuse, Carried),
            (On, Silent, Refuse, Carried),
            (On, Away, Refuse, Carried),
            (On, Up, WhenDown::Direct, Carried),
            (On, Silent, WhenDown::Direct, Route::Direct),
            (On, Away, WhenDown::Direct, Route::Direct),
            (Off, Up, Refuse, Route::Direct),
            (Off, Away, Refuse, Route::Direct),
            (Draining, Up, Refuse, Route::Direct),
        ] {
            let switch = Switch::new(when_down, None);
            switch.set_far(far).unwrap();
            switch.set_mode(mode).unwrap();
            assert_eq!(switch.route(), wanted, "{mode:?} {far:?} {when_down:?}");
        }
    }

    #[test]
    fn draining_is_not_taken_back() {
        let switch = Switch::new(WhenDown::Refuse, None);
        for (asked, wanted) in [
            (Mode::Off, Mode::Off),
            (Mode::On, Mode::On),
            (Mode::Draining, Mode::Draining),
            (Mode::On, Mode::Draining),
            (Mode::Off, Mode::Draining),
        ] {
            switch.set_mode(asked).unwrap();
            assert_eq!(switch.position().mode, wanted);
        }
    }
}
