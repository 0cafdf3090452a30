//! One stream in the driver: bytes from its outbox into the transport, credit back to the peer.

use crate::error::WriteError;
use crate::inbox::Item;
use crate::link::{Link, StreamLink};
use crate::outbox::{Intent, Verdict};
use hikyaku_proto::{Connection, Delivery, Priority, StreamId, StreamKind};
use std::sync::Arc;

/// A stream's two halves as the driver knows them.
pub(crate) struct Lane {
    pub(crate) link: Arc<StreamLink>,
    sending: Half,
    receiving: Half,
    appetite: Appetite,
    priority: Priority,
    /// Bytes given to the application, and how many of them the transport knows to be taken.
    delivered: u64,
    told: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Half {
    /// The stream has no such half, or it is over.
    Over,
    Open,
    /// Finished by the application, not yet delivered.
    Finishing,
}

/// The end that opened a stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Opener {
    Us,
    Peer,
}

/// Whether a stream has more than the transport takes now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Appetite {
    Sated,
    Hungry,
}

impl Lane {
    pub(crate) fn new(id: StreamId, opener: Opener) -> Self {
        let is_object = id.kind() == StreamKind::Object;
        let half = |absent: bool| if absent { Half::Over } else { Half::Open };
        Self {
            link: StreamLink::new(id),
            sending: half(is_object && opener == Opener::Peer),
            receiving: half(is_object && opener == Opener::Us),
            appetite: Appetite::Sated,
            priority: Priority::Normal,
            delivered: 0,
            told: 0,
        }
    }

    /// Does what the application wants of the sending half; `room` is how much unsent data of it the
    /// transport may hold.
    pub(crate) fn fill(&mut self, link: &Link, proto: &mut Connection, room: u64) {
        self.appetite = Appetite::Sated;
        if self.sending == Half::Over {
            return;
        }
        let id = self.link.id;
        let outbox = &self.link.outbox;
        // Read before the ring is emptied: what was written before it is then in the ring.
        let intent = outbox.intent();
        let priority = outbox.priority();
        if priority != self.priority {
            self.priority = priority;
            proto.set_priority(id, priority);
        }
        match intent {
            Intent::Reset(code) => {
                proto.reset(id, code);
                self.end_sending(link, Verdict::Failed(WriteError::Finished));
                return;
            }
            Intent::Cut => {
                while outbox.pop(&link.budget).is_some() {}
                outbox.set_cut(proto.cut(id));
                self.sending = Half::Finishing;
                return;
            }
            _ if self.sending == Half::Finishing => return,
            Intent::Write | Intent::Finish | Intent::BreakOff(_) => {}
        }
        let mut unsent = proto.unsent(id).unwrap_or(0);
        let mut popped = false;
        while unsent < room {
            let Some(bytes) = outbox.pop(&link.budget) else {
                match intent {
                    Intent::Finish => proto.finish(id),
                    Intent::BreakOff(code) => proto.reset_after(id, code),
                    _ => break,
                }
                self.sending = Half::Finishing;
                break;
            };
            unsent += bytes.len() as u64;
            popped = true;
            proto.write(id, bytes);
        }
        if popped {
            outbox.on_popped();
            link.budget.wake();
        }
        if unsent >= room {
            self.appetite = Appetite::Hungry;
        }
    }

    /// Whether it has, or may have, more than the transport took.
    pub(crate) const fn appetite(&self) -> Appetite {
        self.appetite
    }

    /// Ends the sending half and lets go of what was not sent.
    pub(crate) fn end_sending(&mut self, link: &Link, verdict: Verdict) {
        if self.sending != Half::Over {
            self.sending = Half::Over;
            self.appetite = Appetite::Sated;
            while self.link.outbox.pop(&link.budget).is_some() {}
            self.link.outbox.settle(verdict);
            link.budget.wake();
        }
    }

    /// Bytes for the application.
    pub(crate) fn deliver(&mut self, link: &Link, delivery: Delivery) {
        self.delivered += delivery.run.len() as u64;
        if self.receiving == Half::Open {
            link.on_given(delivery.run.len());
            self.link.inbox.push(Item::Part(delivery));
        }
    }

    /// Ends the receiving half.
    pub(crate) fn end_receiving(&mut self, item: Item) {
        if self.receiving != Half::Over {
            self.receiving = Half::Over;
            self.link.inbox.push(item);
            self.link.inbox.wake();
        }
    }

    /// The transport reset the stream because the application did not read it: queued data are released.
    pub(crate) fn give_up_receiving(&mut self, link: &Link, proto: &mut Connection, code: u64) {
        self.link.inbox.clear(|len| link.on_let_go(len));
        proto.consumed(self.link.id, self.delivered - self.told);
        self.told = self.delivered;
        self.end_receiving(Item::Reset(code));
    }

    /// Reports to the transport the bytes that the application has taken, or will never take.
    pub(crate) fn credit(&mut self, link: &Link, proto: &mut Connection) {
        let id = self.link.id;
        let mut taken = self.link.inbox.taken();
        if let Some(code) = self.link.inbox.stop() {
            if self.receiving == Half::Open {
                self.receiving = Half::Over;
                proto.stop(id, code);
            }
            self.link.inbox.clear(|len| link.on_let_go(len));
            taken = self.delivered;
        }
        if taken > self.told {
            proto.consumed(id, taken - self.told);
            self.told = taken;
            self.link.inbox.set_told(taken, proto.read_step(id));
        }
    }

    /// Whether the application waits for the peer to have all of it.
    pub(crate) fn is_sending(&self) -> bool {
        self.sending != Half::Over
    }

    /// Whether nothing will happen any more.
    pub(crate) fn is_over(&self) -> bool {
        self.sending == Half::Over && self.receiving == Half::Over && self.told == self.delivered
    }
}
