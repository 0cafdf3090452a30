//! Data keys and their replacement while packets of the old key are still on their way.

use crate::crypto::{KeyChain, KeyPair};
use alloc::boxed::Box;
use core::time::Duration;
use hikyaku_units::Instant;
use hikyaku_wire::{KeyPhase, SHORT_HEADER_LEN, ShortHeader};

/// The keys of the present phase, the next, and for a while the previous.
pub(crate) struct DataKeys {
    chain: Box<dyn KeyChain>,
    phase: KeyPhase,
    current: KeyPair,
    next: KeyPair,
    previous: Option<(KeyPair, Instant)>,
    /// First packet number that we sealed in the present phase; none yet is the highest there is.
    sealed_from: u64,
    /// Lowest packet number that we opened in the present phase; none yet is the highest there is.
    opened_from: u64,
    /// A packet that we sealed in the present phase is known to have arrived.
    confirmed: bool,
    sealed: u64,
    /// After so many packets of a phase comes the next.
    limit: u64,
    /// More than so many must not be sealed by one key.
    last: u64,
    forgeries: u64,
    /// So many packets that do not open are an attack.
    most_forgeries: u64,
    updates: u64,
}

impl DataKeys {
    /// Keys that are replaced after `packets` packets, and given up after `forgeries` forged ones.
    pub(crate) fn new(mut chain: Box<dyn KeyChain>, packets: u64, forgeries: u64) -> Self {
        let current = chain.next_pair();
        let next = chain.next_pair();
        let last = current.seal.packet_limit();
        // The other half is for an update that has to wait for its confirmation.
        let limit = packets.min(last / 2);
        Self {
            chain,
            phase: KeyPhase::Even,
            current,
            next,
            previous: None,
            sealed_from: u64::MAX,
            opened_from: u64::MAX,
            confirmed: false,
            sealed: 0,
            limit,
            last,
            forgeries: 0,
            most_forgeries: forgeries,
            updates: 0,
        }
    }

    pub(crate) const fn phase(&self) -> KeyPhase {
        self.phase
    }

    /// Seals `packet`: header, then plaintext, then room for the tag.
    pub(crate) fn seal(&mut self, packet_number: u64, packet: &mut [u8]) {
        let (header, body) = packet.split_at_mut(SHORT_HEADER_LEN);
        self.current.seal.seal(packet_number, header, body);
        self.sealed_from = self.sealed_from.min(packet_number);
        self.sealed += 1;
    }

    /// Opens `packet`; gives the plaintext's length behind the header.
    // spec: key-2
    pub(crate) fn open(
        &mut self,
        now: Instant,
        header: &ShortHeader,
        packet_number: u64,
        packet: &mut [u8],
    ) -> Option<usize> {
        let (aad, body) = packet.split_at_mut(SHORT_HEADER_LEN);
        let opened = if header.phase == self.phase {
            self.current.open.open(packet_number, aad, body)
        } else if let Some((keys, _)) = &self.previous
            && packet_number < self.opened_from
        {
            keys.open.open(packet_number, aad, body)
        } else {
            let opened = self.next.open.open(packet_number, aad, body);
            if opened.is_some() {
                self.rotate(now);
            }
            opened
        };
        match opened {
            // What the peer seals in a phase has higher numbers than all it sealed before.
            Some(_) if header.phase == self.phase => self.on_opened(now, packet_number),
            Some(_) => {}
            None => self.forgeries += 1,
        }
        opened
    }

    fn on_opened(&mut self, now: Instant, packet_number: u64) {
        if self.opened_from == u64::MAX
            && let Some((_, since)) = &mut self.previous
        {
            *since = now;
        }
        self.opened_from = self.opened_from.min(packet_number);
    }

    fn rotate(&mut self, now: Instant) {
        let fresh = self.chain.next_pair();
        let next = core::mem::replace(&mut self.next, fresh);
        let old = core::mem::replace(&mut self.current, next);
        self.previous = Some((old, now));
        self.phase = self.phase.next();
        self.sealed_from = u64::MAX;
        self.opened_from = u64::MAX;
        self.confirmed = false;
        self.sealed = 0;
        self.updates += 1;
    }

    /// Starts a new phase when the present key is used up. Only after a packet of the present phase
    /// is known to have arrived: two updates at once could not be told apart.
    // spec: key-1
    pub(crate) fn maybe_update(&mut self, now: Instant) {
        if self.sealed >= self.limit && self.confirmed {
            self.rotate(now);
        }
    }

    /// The peer acknowledged packets up to `largest`.
    pub(crate) const fn on_acked(&mut self, largest: u64) {
        if largest >= self.sealed_from {
            self.confirmed = true;
        }
    }

    /// Erases the previous key `memory` after the peer has begun to use the present one.
    // spec: key-3
    pub(crate) fn expire(&mut self, now: Instant, memory: Duration) {
        if self.expires(memory).is_some_and(|at| at <= now) {
            self.previous = None;
        }
    }

    /// When that is due.
    pub(crate) fn expires(&self, memory: Duration) -> Option<Instant> {
        let in_use = self.opened_from != u64::MAX;
        self.previous.as_ref().filter(|_| in_use).map(|(_, since)| *since + memory)
    }

    /// The present key may seal nothing more, and no other may take its place: no packet of the
    /// present phase is known to have arrived.
    pub(crate) const fn is_used_up(&self) -> bool {
        self.sealed >= self.last
    }

    pub(crate) const fn updates(&self) -> u64 {
        self.updates
    }

    pub(crate) const fn is_under_attack(&self) -> bool {
        self.forgeries >= self.most_forgeries
    }
}

#[cfg(test)]
mod tests;
