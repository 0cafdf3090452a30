//! Which sessions clients have, by the names of their processes: the next process of a client tells which of those before it
//! have ended, so that nobody waits for what they had locked until the server has noticed that their connections are lost.

use super::leases::End;
use super::{Party, Session};
use crate::message::Holder;
use hikyaku_reach::Connection;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// The sessions of a daemon that have told the name of their process.
#[derive(Default)]
pub struct Processes {
    /// By the key of the client, so that it ends none of another one.
    table: Mutex<HashMap<(Party, Holder), Known>>,
}

struct Known {
    session: u64,
    connection: Connection,
    /// The name under which it holds leases.
    who: Arc<OnceLock<Holder>>,
}

/// Names of ended processes in one message.
pub(crate) const ENDED_MAX: usize = 64;

impl Processes {
    fn table(&self) -> MutexGuard<'_, HashMap<(Party, Holder), Known>> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A session has ended.
    pub(super) fn end(&self, session: u64) {
        self.table().retain(|_, known| known.session != session);
    }
}

impl Session {
    /// The client tells the name of its process, and which of its processes have ended.
    // spec: store-process-1
    pub(super) fn tell_process(&self, name: Holder, ended: &[Holder]) {
        let Some((processes, party)) = &self.processes else { return };
        for ended in ended.iter().take(ENDED_MAX).filter(|&&ended| ended != name) {
            let Some(known) = processes.table().remove(&(*party, *ended)) else { continue };
            known.connection.close(hikyaku_net::code::DONE, "the process has ended");
            if let Some(locks) = &self.locks {
                locks.end(known.session);
            }
            // What it had decided and not told is lost with it.
            if let (Some((leases, _)), Some(&holder)) = (&self.leases, known.who.get()) {
                leases.end(holder, known.session, End::Told);
            }
        }
        // A session has one name.
        let mut table = processes.table();
        table.retain(|_, known| known.session != self.number);
        let (connection, who) = (self.connection.clone(), self.who.clone());
        let known = Known { session: self.number, connection, who };
        table.insert((*party, name), known);
    }
}
