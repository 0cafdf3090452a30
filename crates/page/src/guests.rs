//! The connections of a door, and which of them ends where there is no room for one more.

use std::net::{Shutdown, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Connections at once. A browser opens six.
pub(crate) const CONNECTIONS_MAX: usize = 32;

/// How far a connection is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Stage {
    /// It has asked for nothing that is answered.
    New,
    /// It has been answered, and may ask again.
    Idle,
    /// It is being answered.
    Answered,
}

/// The connections, in the order in which they came.
#[derive(Default)]
pub(crate) struct Guests(Mutex<State>);

#[derive(Default)]
struct State {
    next: u64,
    all: Vec<Guest>,
}

struct Guest {
    number: u64,
    stream: TcpStream,
    stage: Stage,
}

/// The place of a connection. Dropping it gives the place back.
pub(crate) struct Place {
    guests: Arc<Guests>,
    number: u64,
}

impl Guests {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A place for one more. Where there is no room, the oldest ends that has asked for nothing, or the oldest that is idle.
    /// `None` if all are being answered.
    pub(crate) fn enter(self: &Arc<Self>, stream: &TcpStream) -> Option<Place> {
        let stream = stream.try_clone().ok()?;
        let mut state = self.state();
        if state.all.len() >= CONNECTIONS_MAX {
            // The first of equal ones is the oldest.
            let at = (0..state.all.len()).min_by_key(|&at| state.all[at].stage)?;
            if state.all[at].stage == Stage::Answered {
                return None;
            }
            let _ = state.all.remove(at).stream.shutdown(Shutdown::Both);
        }
        let number = state.next;
        state.next += 1;
        state.all.push(Guest { number, stream, stage: Stage::New });
        Some(Place { guests: self.clone(), number })
    }
}

impl Place {
    /// Sets the stage of the connection.
    pub(crate) fn set(&self, stage: Stage) {
        let mut state = self.guests.state();
        state
            .all
            .iter_mut()
            .filter(|guest| guest.number == self.number)
            .for_each(|guest| guest.stage = stage);
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.guests.state().all.retain(|guest| guest.number != self.number);
    }
}
