//! From the socket to the connections.

use super::door::Answer;
use super::entry::{Entry, Role};
use super::patience::Found;
use super::{Core, MESSAGES};
use crate::link::Link;
use crate::paths::{Memory, PathKey};
use crate::route::{Address, Stranger};
use crate::tune;
use hikyaku_crypto::random_u64;
use hikyaku_proto::{ClientIds, Connection, ConnectionId, Datagrams};
use hikyaku_udp::{Ecn, MESSAGE_BYTES, RecvBatch, RecvMeta, Transmit};
use hikyaku_units::Instant;
use hikyaku_wire::{SHORT_HEADER_LEN, is_long};
use std::time::SystemTime;

/// System calls of one turn that receive. Acknowledgements come in messages of a hundred bytes: those of many connections, eight
/// of them a turn, would wait in the socket for longer than a round trip.
const RECEIVES: usize = 16;
/// Bytes of one turn: half as many as the messages of one system call may have.
const BYTES: usize = MESSAGES * MESSAGE_BYTES / 2;

/// To whom a datagram is addressed: in both kinds of header the id is at the same place.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Addressee {
    id: ConnectionId,
    header: Header,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Header {
    Short,
    Long,
}

/// The driver of a connection id.
enum Whereabouts {
    /// This driver, in this slot.
    Here(u32),
    /// The driver with this index, if it exists.
    At(u8),
    Unknown,
}

impl Addressee {
    fn of(datagram: &[u8]) -> Option<Self> {
        let id = datagram.get(8..SHORT_HEADER_LEN)?.first_chunk()?;
        let header = if is_long(datagram) { Header::Long } else { Header::Short };
        Some(Self { id: ConnectionId(u64::from_le_bytes(*id)), header })
    }
}

impl Core {
    /// Receives what has come, a megabyte and a hundred messages at most. Gives the bytes.
    pub(super) fn receive(&mut self, batch: &mut RecvBatch) -> usize {
        let mut bytes = 0;
        for _ in 0..RECEIVES {
            // An error is about the socket's past or the kernel's memory; the next turn tries again.
            let messages = self.socket.recv(batch).unwrap_or(0);
            self.patience.on_receive(if messages < MESSAGES { Found::All } else { Found::Plenty });
            if messages == 0 {
                break;
            }
            let now = self.clock.now();
            for (meta, buffer) in batch.buffers() {
                bytes += meta.len;
                self.count_overflows(meta.overflows);
                self.take_message(now, &meta, buffer);
            }
            if messages < MESSAGES || bytes >= BYTES {
                break;
            }
        }
        bytes
    }

    fn count_overflows(&mut self, count: u32) {
        let new = count.wrapping_sub(self.overflows.last);
        // A count that went backwards belongs to a message that was overtaken.
        if new <= u32::MAX / 2 {
            self.overflows.last = count;
            self.count_drops(new.into());
        }
    }

    /// Counts messages that were dropped in this host.
    pub(super) fn count_drops(&mut self, new: u64) {
        if new == 0 {
            return;
        }
        self.overflows.total += new;
        let total = self.overflows.total;
        self.table.iter().for_each(|entry| entry.set_host_drops(total));
    }

    pub(super) fn take_message(&mut self, now: Instant, meta: &RecvMeta, buffer: &mut Vec<u8>) {
        let stride = meta.stride.max(1);
        let contents = &buffer[..meta.len];
        let mut addressees = contents.chunks(stride).map(Addressee::of);
        let Some(first) = addressees.next() else { return };
        let is_of_one = addressees.all(|other| other == first);
        match first.filter(|_| is_of_one).map(|addressee| self.whereabouts(meta, addressee)) {
            Some(Whereabouts::Here(slot)) => {
                let whole = std::mem::replace(buffer, self.pool.take());
                self.hand_over(now, meta, slot, (whole, meta.len, stride));
            }
            Some(Whereabouts::At(driver)) => {
                let whole = std::mem::replace(buffer, self.pool.take());
                self.pass_on(driver, *meta, whole);
            }
            Some(Whereabouts::Unknown) | None => {
                for datagram in contents.chunks(stride) {
                    self.take_datagram(now, meta, datagram);
                }
            }
        }
    }

    fn whereabouts(&self, meta: &RecvMeta, addressee: Addressee) -> Whereabouts {
        match (self.slot_of(meta, addressee), self.ids.other(addressee.id)) {
            (Some(slot), _) => Whereabouts::Here(slot),
            (None, Some(driver)) => Whereabouts::At(driver),
            (None, None) => Whereabouts::Unknown,
        }
    }

    fn slot_of(&self, meta: &RecvMeta, addressee: Addressee) -> Option<u32> {
        let known = self.table.slot_of(addressee.id);
        match addressee.header {
            Header::Short => known,
            Header::Long => {
                known.or_else(|| self.table.slot_of_stranger(meta.source, addressee.id))
            }
        }
    }

    fn take_datagram(&mut self, now: Instant, meta: &RecvMeta, datagram: &[u8]) {
        let Some(addressee) = Addressee::of(datagram) else { return };
        let len = datagram.len();
        let slot = match self.whereabouts(meta, addressee) {
            Whereabouts::Here(slot) => slot,
            Whereabouts::At(driver) => {
                self.pass_on(driver, RecvMeta { len, stride: len, ..*meta }, datagram.to_vec());
                return;
            }
            Whereabouts::Unknown => match self.meet(now, meta, datagram) {
                Some(slot) => slot,
                None => return,
            },
        };
        self.hand_over(now, meta, slot, (datagram.to_vec(), len, len));
    }

    fn hand_over(
        &mut self,
        now: Instant,
        meta: &RecvMeta,
        slot: u32,
        (bytes, len, stride): (Vec<u8>, usize, usize),
    ) {
        let received = self.clock.arrival(now, meta.arrived);
        let home = Some(self.pool.home());
        let Some(entry) = self.table.at(slot) else { return };
        let unused = entry.proto.handle_datagrams(
            now,
            Datagrams {
                source: meta.source,
                local: meta.destination,
                congestion_experienced: meta.ecn == Some(Ecn::Ce),
                received,
                bytes,
                len,
                stride,
                home,
            },
        );
        if let Some(buffer) = unused {
            self.pool.give(buffer);
        }
        self.list(slot);
    }

    /// Answers a stranger if that is due; gives the slot of a new connection.
    fn meet(&mut self, now: Instant, meta: &RecvMeta, datagram: &[u8]) -> Option<u32> {
        let door = self.door.as_ref()?;
        match door.judge(now, meta.source, datagram) {
            Answer::Nothing => None,
            // A datagram without an answer must cause no more work.
            Answer::Packet(_) | Answer::Retry(_) if !self.patience.take() => None,
            Answer::Packet(packet) => {
                self.answer(meta, &packet);
                None
            }
            Answer::Retry(stranger) => {
                self.answer(meta, &door.retry(now, meta.source, &stranger));
                None
            }
            Answer::Accept(stranger, address) => self.admit(now, meta, stranger, address),
        }
    }

    fn answer(&self, meta: &RecvMeta, packet: &[u8]) {
        let reply = Transmit { source: meta.destination, ..Transmit::to(meta.source, packet) };
        // The client asks again.
        let _ = self.socket.send(&reply);
    }

    fn admit(
        &mut self,
        now: Instant,
        meta: &RecvMeta,
        stranger: Stranger,
        address: Address,
    ) -> Option<u32> {
        let door = self.door.as_ref()?;
        let mut config = tune::fit(&door.config, meta.source, self.device.as_deref());
        let path = meta.destination.map(|local| PathKey::new(meta.source.ip(), local));
        if let (Memory::File(_), None, Some(path)) = (&self.memory, config.hint, &path) {
            config.hint = self.remembered.recall(path, SystemTime::now());
        }
        let ids = ClientIds {
            local: self.ids.random(),
            destination: stranger.destination,
            seed: random_u64(),
        };
        let params = Connection::local_params(&config, ids.local, ids.destination).encode();
        let Ok(session) = door.credentials.session(params) else {
            door.half_open.end(meta.source, stranger.destination);
            return None;
        };
        let shown = session.peer_key();
        let key = self.table.reserve();
        let link = Link::new(key, self.mailbox.clone(), meta.source, &config);
        let mut proto = Connection::server(now, config, Box::new(session), meta.source, ids);
        if address == Address::Proven {
            proto.set_validated();
        }
        let role = Role::Server(meta.source, stranger.destination);
        let mut entry = Entry::new(key, proto, link, role);
        entry.path = path;
        entry.shown = Some(shown);
        entry.from = meta.destination;
        entry.drops_before = self.overflows.total;
        self.adopt(entry);
        Some(key.slot)
    }
}
