//! Writes and changes that the server has not confirmed, and the calls that wait for that.

use crate::changes::Turn;
use crate::core::State;
use crate::stage::Place;
use bytes::Bytes;
use hikyaku_remote::{Attempt, Edit};
use hikyaku_store::StorePath;
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};

/// Unconfirmed bytes of all files; above that, programs wait. It is more than a gigabit a second over a second holds.
const UNCONFIRMED_BYTES_MAX: u64 = 256 << 20;
/// Share of a change in that limit, beside its bytes.
const CHANGE_BYTES: u64 = 1024;
/// Share of a write in that limit if its bytes are in the journal.
const STAGED_BYTES: u64 = 256;

/// A continuation.
pub(crate) type Call = Box<dyn FnOnce() + Send>;

/// Writes and changes that are not confirmed.
#[derive(Default)]
pub(crate) struct Writes {
    all: BTreeMap<u64, Write>,
    bytes: u64,
    /// Those that were decided here.
    held: BTreeSet<u64>,
    /// How many of them are in each directory.
    held_dirs: HashMap<StorePath, u64>,
    /// Whether they are to be sent over another connection than the one over which they were sent.
    is_unsent: bool,
    /// Whether a write is being sent.
    pub(crate) sending: Sending,
    /// Programs that wait for room.
    pub(crate) room_waits: VecDeque<Call>,
    /// Calls that wait until a node has no unconfirmed write.
    pub(crate) settle_waits: Vec<(u64, Call)>,
    /// Calls that wait until the changes under leases up to a number are confirmed.
    pub(crate) held_waits: Vec<(u64, Call)>,
}

/// Whether a write is being sent, which names its file by the path of then. A change of names is sent after it.
#[derive(Default)]
pub(crate) enum Sending {
    #[default]
    None,
    /// The continuations once it is sent.
    UnderWay(Vec<Call>),
}

/// A write or a change.
pub(crate) struct Write {
    pub(crate) node: u64,
    pub(crate) sent: Sent,
}

/// The content of a write or change.
pub(crate) enum Sent {
    /// Bytes of a file, to where its path is when they are sent.
    Bytes { at: u64, bytes: Bytes },
    /// Bytes that are appended, and whether they have been sent: what was sent over a lost connection may be there.
    Appended { bytes: Bytes, is_sent: bool },
    /// Bytes of a file that are in the journal.
    Staged { at: u64, place: Place },
    /// A change that was decided here.
    Held(Held),
}

/// A change that was decided here.
pub(crate) struct Held {
    pub(crate) edit: Edit,
    pub(crate) bytes: Bytes,
    /// The directories in which it is made.
    pub(crate) dirs: Vec<StorePath>,
    /// The last change of before.
    pub(crate) before: Turn,
    pub(crate) attempt: Attempt,
    /// The connection over which it was sent last.
    pub(crate) sent: Option<u64>,
}

impl Sent {
    fn weight(&self) -> u64 {
        match self {
            Self::Bytes { bytes, .. } | Self::Appended { bytes, .. } => bytes.len() as u64,
            Self::Staged { .. } => STAGED_BYTES,
            Self::Held(held) => held.bytes.len() as u64 + CHANGE_BYTES,
        }
    }
}

impl Writes {
    pub(crate) fn at(&self, id: u64) -> Option<&Write> {
        self.all.get(&id)
    }

    /// The bytes of an append that is sent, once.
    pub(crate) fn send_append(&mut self, id: u64) -> Option<Bytes> {
        match &mut self.all.get_mut(&id)?.sent {
            Sent::Appended { bytes, is_sent } if !*is_sent => {
                *is_sent = true;
                Some(bytes.clone())
            }
            _ => None,
        }
    }

    /// A change that was decided here and is to be sent over a connection, once.
    pub(crate) fn send_held(&mut self, id: u64, epoch: u64) -> Option<(Edit, Attempt, Bytes)> {
        if self.is_unsent {
            return None;
        }
        match &mut self.all.get_mut(&id)?.sent {
            Sent::Held(held) if held.sent != Some(epoch) => {
                held.sent = Some(epoch);
                Some((held.edit.clone(), held.attempt, held.bytes.clone()))
            }
            _ => None,
        }
    }

    pub(crate) fn insert(&mut self, id: u64, write: Write) {
        self.bytes += write.sent.weight();
        if let Sent::Held(held) = &write.sent {
            self.held.insert(id);
            for dir in &held.dirs {
                *self.held_dirs.entry(dir.clone()).or_default() += 1;
            }
        }
        self.all.insert(id, write);
    }

    pub(crate) fn remove(&mut self, id: u64) -> Option<Write> {
        let write = self.all.remove(&id)?;
        self.bytes -= write.sent.weight();
        if let Sent::Held(held) = &write.sent {
            self.held.remove(&id);
            for dir in &held.dirs {
                if let Some(count) = self.held_dirs.get_mut(dir) {
                    *count -= 1;
                    if *count == 0 {
                        self.held_dirs.remove(dir);
                    }
                }
            }
        }
        Some(write)
    }

    /// The numbers of all writes that were not decided here, in their order.
    pub(crate) fn numbers(&self) -> Vec<u64> {
        self.all.keys().copied().filter(|id| !self.held.contains(id)).collect()
    }

    /// The numbers of all that are lost if the server does not come back, in their order.
    pub(crate) fn mortal_numbers(&self) -> Vec<u64> {
        let is_mortal = |write: &Write| !matches!(write.sent, Sent::Staged { .. });
        self.all.iter().filter(|(_, write)| is_mortal(write)).map(|(&id, _)| id).collect()
    }

    /// The numbers of the writes to a node that are in the journal.
    pub(crate) fn staged_of(&self, node: u64) -> Vec<u64> {
        let is_of_node =
            |write: &Write| write.node == node && matches!(write.sent, Sent::Staged { .. });
        self.all.iter().filter(|(_, write)| is_of_node(write)).map(|(&id, _)| id).collect()
    }

    pub(crate) const fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(crate) const fn is_full(&self) -> bool {
        self.bytes > UNCONFIRMED_BYTES_MAX
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// The last change that was decided here and is not confirmed.
    pub(crate) fn last_held(&self) -> Option<u64> {
        self.held.last().copied()
    }

    /// The last change before the first one that was decided here and is not confirmed.
    pub(crate) fn before_held(&self) -> Option<Turn> {
        match &self.all.get(self.held.first()?)?.sent {
            Sent::Held(held) => Some(held.before),
            _ => None,
        }
    }

    /// Whether something in a directory was decided here and is not confirmed.
    pub(crate) fn holds_in(&self, dir: &StorePath) -> bool {
        self.held_dirs.contains_key(dir)
    }

    /// There is another connection: what was decided here is to be sent over it, under new leases.
    pub(crate) fn resend(&mut self) {
        self.is_unsent = !self.held.is_empty();
    }

    /// The directories of what is to be sent again; none if it has been sent.
    pub(crate) fn unsent_dirs(&self) -> Vec<StorePath> {
        if self.is_unsent { self.held_dirs.keys().cloned().collect() } else { Vec::new() }
    }

    /// The numbers of what is to be sent again, in their order.
    pub(crate) fn take_unsent(&mut self) -> Vec<u64> {
        if !std::mem::take(&mut self.is_unsent) {
            return Vec::new();
        }
        for id in &self.held {
            if let Some(Write { sent: Sent::Held(held), .. }) = self.all.get_mut(id) {
                held.attempt = Attempt::Again;
            }
        }
        self.held.iter().copied().collect()
    }
}

impl State {
    /// Something of a node has been confirmed or lost: takes out who has waited for that.
    pub(crate) fn settled(&mut self, number: u64) -> Vec<Call> {
        let mut calls: Vec<Call> = Vec::new();
        let is_refused = self.refusal(number).is_some();
        if is_refused || self.nodes.at(number).is_none_or(|node| node.unconfirmed == 0) {
            let waits = std::mem::take(&mut self.writes.settle_waits);
            let (now, later): (Vec<_>, Vec<_>) =
                waits.into_iter().partition(|(node, _)| *node == number);
            self.writes.settle_waits = later;
            calls.extend(now.into_iter().map(|(_, call)| call));
        }
        let first = self.writes.held.first().copied().unwrap_or(u64::MAX);
        let waits = std::mem::take(&mut self.writes.held_waits);
        let (now, later): (Vec<_>, Vec<_>) = waits.into_iter().partition(|(last, _)| *last < first);
        self.writes.held_waits = later;
        calls.extend(now.into_iter().map(|(_, call)| call));
        while !self.writes.is_full()
            && let Some(call) = self.writes.room_waits.pop_front()
        {
            calls.push(call);
        }
        calls
    }
}
