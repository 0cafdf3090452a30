//! The connections to a node.
//!
//! A few are enough: each carries a range as fast as TCP can, and a node has a process for each of them, which logs in at
//! gfmd. They are made one after the other, because gfmd lets logins wait for seconds if many come at once.

use crate::gfarm::{Gfarm, Trouble};
use crate::lane::Lane;
use hikyaku_gfarm::{Address, End};
use std::collections::HashMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Connections to a node at once.
pub(crate) const LANES_MAX: usize = 4;

/// Connections to one node.
#[derive(Debug)]
pub(crate) struct Pool {
    gfarm: Arc<Gfarm>,
    address: Address,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    idle: Vec<Lane>,
    /// Handles that end the connections in use.
    in_use: HashMap<u64, End>,
    is_connecting: bool,
    next: u64,
    /// Counted up when all requests are ended: those that wait for a connection end as well.
    ended: u64,
    round_trip: Option<Duration>,
}

impl Pool {
    pub(crate) fn new(gfarm: Arc<Gfarm>, address: Address) -> Self {
        Self { gfarm, address, state: Mutex::default(), changed: Condvar::new() }
    }

    pub(crate) const fn gfarm(&self) -> &Arc<Gfarm> {
        &self.gfarm
    }

    pub(crate) const fn address(&self) -> &Address {
        &self.address
    }

    /// The round-trip time, as the last connection was made.
    pub(crate) fn round_trip(&self) -> Option<Duration> {
        self.state().round_trip
    }

    /// Makes a new connection, as a sign of life, and keeps it.
    pub(crate) fn probe(&self) -> Result<(), Trouble> {
        let lane = Lane::connect(&self.gfarm, &self.address)?;
        let mut state = self.state();
        state.round_trip = Some(lane.spool().round_trip());
        state.idle.insert(0, lane);
        state.idle.truncate(LANES_MAX);
        drop(state);
        self.changed.notify_all();
        Ok(())
    }

    /// Ends all connections, and the requests that use one or wait for one.
    pub(crate) fn hang_up(&self) {
        let mut state = self.state();
        state.in_use.values().for_each(End::now);
        state.idle.clear();
        state.ended += 1;
        drop(state);
        self.changed.notify_all();
    }

    /// Lets `work` use a connection, best one for which `is_best` holds, and keeps it for later if it can be used again.
    pub(crate) fn with_lane<T>(
        &self,
        is_best: impl Fn(&Lane) -> bool,
        work: impl FnOnce(&mut Lane) -> Result<T, Trouble>,
    ) -> Result<T, Trouble> {
        let mut lane = match self.turn(is_best)? {
            Some(lane) => lane,
            None => {
                let connected = Lane::connect(&self.gfarm, &self.address);
                self.state().is_connecting = false;
                self.changed.notify_all();
                connected?
            }
        };
        let end = lane.spool().end().map_err(|error| Trouble::Away(error.to_string()))?;
        let id = {
            let mut state = self.state();
            state.next += 1;
            let id = state.next;
            state.in_use.insert(id, end);
            state.round_trip = Some(lane.spool().round_trip());
            id
        };
        let done = work(&mut lane);
        let mut state = self.state();
        state.in_use.remove(&id);
        if lane.spool().is_usable() && state.idle.len() < LANES_MAX {
            state.idle.push(lane);
        }
        drop(state);
        self.changed.notify_all();
        done
    }

    /// Waits for a connection, or for the turn to make one (`None`).
    fn turn(&self, is_best: impl Fn(&Lane) -> bool) -> Result<Option<Lane>, Trouble> {
        let session = self.gfarm.session();
        let mut state = self.state();
        let ended = state.ended;
        loop {
            if state.ended != ended {
                return Err(Trouble::Away("the transfer is over".to_owned()));
            }
            // Open files of a session end with it.
            state.idle.retain(|lane| Arc::ptr_eq(lane.session(), &session));
            let best = state.idle.iter().position(&is_best);
            if let Some(at) = best.or_else(|| state.idle.len().checked_sub(1)) {
                return Ok(Some(state.idle.remove(at)));
            }
            if !state.is_connecting && state.in_use.len() < LANES_MAX {
                state.is_connecting = true;
                return Ok(None);
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
