//! The connections of one driver, found by slot or by the id in a packet.

use super::entry::Entry;
use crate::command::Key;
use hikyaku_proto::ConnectionId;
use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasherDefault, Hasher};
use std::net::SocketAddr;

/// All connections.
#[derive(Default)]
pub(crate) struct Table {
    slots: Vec<Option<Box<Entry>>>,
    free: Vec<u32>,
    serial: u32,
    by_id: HashMap<ConnectionId, u32, BuildHasherDefault<IdHasher>>,
    /// Clients that still address us by an id of their own choice. A tree, since clients
    /// could choose ids that collide in a hash table.
    by_stranger: BTreeMap<(SocketAddr, ConnectionId), u32>,
}

impl Table {
    /// A key for the next connection.
    pub(crate) fn reserve(&mut self) -> Key {
        self.serial = self.serial.wrapping_add(1);
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            self.slots.len() as u32 - 1
        });
        Key { slot, serial: self.serial }
    }

    /// Puts a connection into the slot reserved for it.
    pub(crate) fn insert(&mut self, entry: Entry) {
        let slot = entry.key.slot;
        self.by_id.insert(entry.proto.local_id(), slot);
        if let super::entry::Role::Server(address, id) = entry.role {
            self.by_stranger.insert((address, id), slot);
        }
        self.slots[slot as usize] = Some(Box::new(entry));
    }

    pub(crate) fn remove(&mut self, slot: u32) {
        let Some(entry) = self.slots[slot as usize].take() else { return };
        self.free.push(slot);
        self.by_id.remove(&entry.proto.local_id());
        if let super::entry::Role::Server(address, id) = entry.role {
            self.by_stranger.remove(&(address, id));
        }
    }

    pub(crate) fn at(&mut self, slot: u32) -> Option<&mut Entry> {
        self.slots.get_mut(slot as usize)?.as_deref_mut()
    }

    pub(crate) fn get(&mut self, key: Key) -> Option<&mut Entry> {
        self.at(key.slot).filter(|entry| entry.key == key)
    }

    pub(crate) fn slot_of(&self, id: ConnectionId) -> Option<u32> {
        self.by_id.get(&id).copied()
    }

    pub(crate) fn slot_of_stranger(&self, from: SocketAddr, id: ConnectionId) -> Option<u32> {
        self.by_stranger.get(&(from, id)).copied()
    }

    pub(crate) fn iter(&mut self) -> impl Iterator<Item = &mut Entry> {
        self.slots.iter_mut().flatten().map(|entry| &mut **entry)
    }

    pub(crate) fn len(&self) -> usize {
        self.by_id.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.by_id.is_empty()
    }
}

/// Connection ids in the table are random and our own: they are hashes already.
#[derive(Default)]
struct IdHasher(u64);

impl Hasher for IdHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(byte);
        }
    }

    // The lowest byte, which chooses the place in the table, is nearly the same in all ids of a driver.
    fn write_u64(&mut self, value: u64) {
        self.0 = value.rotate_right(8);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::Ids;
    use std::collections::BTreeSet;
    use std::hash::BuildHasher;
    use std::num::NonZeroU8;

    #[test]
    fn ids_of_one_driver_spread_over_the_table() {
        let ids = Ids::of(3, NonZeroU8::new(8).unwrap());
        let hasher = BuildHasherDefault::<IdHasher>::default();
        // A table of 256 places takes the lowest bits.
        let places: BTreeSet<u8> =
            (0..2_000).map(|_| hasher.hash_one(ids.random()) as u8).collect();
        assert!(places.len() > 240, "{} of 256 places", places.len());
    }
}
