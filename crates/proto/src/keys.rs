//! Data keys, and the key update while packets sealed with the old key are still in flight.

use crate::crypto::{KeyChain, KeyPair};
use alloc::boxed::Box;
use core::time::Duration;
use hikyaku_units::Instant;
use hikyaku_wire::{KeyPhase, SHORT_HEADER_LEN, ShortHeader};

/// The keys of the present key phase, the next one, and for a limited time the previous one.
pub(crate) struct DataKeys {
    chain: Box<dyn KeyChain>,
    phase: KeyPhase,
    current: KeyPair,
    next: KeyPair,
    previous: Option<(KeyPair, Instant)>,
    /// Lowest packet number that this end sealed in the present phase, or `u64::MAX` before the
    /// first.
    sealed_from: u64,
    /// Lowest packet number that this end opened in the present phase, or `u64::MAX` before the
    /// first.
    opened_from: u64,
    /// Whether the peer has acknowledged a packet that this end sealed in the present phase.
    confirmed: bool,
    sealed: u64,
    /// Packets sealed in one phase after which a key update begins.
    limit: u64,
    /// Maximum number of packets that one key may seal.
    last: u64,
    forgeries: u64,
    /// Packets failing authentication after which the connection ends.
    most_forgeries: u64,
    updates: u64,
}

impl DataKeys {
    /// Keys that are updated after `packets` packets, and abandoned after `forgeries` packets that
    /// failed authentication.
    pub(crate) fn new(mut chain: Box<dyn KeyChain>, packets: u64, forgeries: u64) -> Self {
        let current = chain.next_pair();
        let next = chain.next_pair();
        let last = current.seal.packet_limit();
        // The update begins at half of the cipher's limit, because it may have to wait for an
        // acknowledgement in the present phase.
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

    /// Encrypts `packet` in place: the header, then the plaintext, then space for the tag.
    pub(crate) fn seal(&mut self, packet_number: u64, packet: &mut [u8]) {
        let (header, body) = packet.split_at_mut(SHORT_HEADER_LEN);
        self.current.seal.seal(packet_number, header, body);
        self.sealed_from = self.sealed_from.min(packet_number);
        self.sealed += 1;
    }

    /// Decrypts `packet` in place. Returns the length of the plaintext after the header.
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
            // All packets that the peer seals in a phase have higher packet numbers than those of
            // earlier phases.
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

    /// Starts a key update when the present key has reached its limit. It requires an acknowledged
    /// packet of the present phase, because the phase bit cannot distinguish two updates in
    /// progress.
    // spec: key-1
    pub(crate) fn maybe_update(&mut self, now: Instant) {
        if self.sealed >= self.limit && self.confirmed {
            self.rotate(now);
        }
    }

    /// Records that the peer acknowledged packets up to packet number `largest`.
    pub(crate) const fn on_acked(&mut self, largest: u64) {
        if largest >= self.sealed_from {
            self.confirmed = true;
        }
    }

    /// Discards the previous key `memory` after the peer's first packet of the present phase.
    // spec: key-3
    pub(crate) fn expire(&mut self, now: Instant, memory: Duration) {
        if self.expires(memory).is_some_and(|at| at <= now) {
            self.previous = None;
        }
    }

    /// When the previous key is to be discarded.
    pub(crate) fn expires(&self, memory: Duration) -> Option<Instant> {
        let in_use = self.opened_from != u64::MAX;
        self.previous.as_ref().filter(|_| in_use).map(|(_, since)| *since + memory)
    }

    /// Whether the present key has reached its limit while no update is possible, because no packet
    /// of the present phase has been acknowledged.
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
