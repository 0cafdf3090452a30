//! Keys are updated in time and never used beyond their limit.

use super::*;
use crate::crypto::PacketKey;

const LIMIT: u64 = 10;

/// A key that neither encrypts nor authenticates.
struct NullKeys;

impl PacketKey for NullKeys {
    fn seal(&self, _: u64, _: &[u8], _: &mut [u8]) {}

    fn open(&self, _: u64, _: &[u8], buffer: &mut [u8]) -> Option<usize> {
        buffer.len().checked_sub(16)
    }

    fn packet_limit(&self) -> u64 {
        LIMIT
    }
}

impl KeyChain for NullKeys {
    fn next_pair(&mut self) -> KeyPair {
        KeyPair { seal: Box::new(Self), open: Box::new(Self) }
    }
}

fn seal(keys: &mut DataKeys, numbers: core::ops::Range<u64>) {
    for number in numbers {
        keys.seal(number, &mut [0; SHORT_HEADER_LEN + 20]);
        keys.maybe_update(Instant::ZERO);
    }
}

// spec: key-1
#[test]
fn a_key_is_updated_at_half_its_limit_after_an_acknowledgement() {
    let mut keys = DataKeys::new(Box::new(NullKeys), 1 << 26, 1 << 36);
    seal(&mut keys, 0..4);
    keys.on_acked(2);
    seal(&mut keys, 4..6);
    assert_eq!((keys.updates(), keys.is_used_up()), (1, false));
}

// spec: key-1, key-4
#[test]
fn a_key_that_cannot_be_updated_is_used_up_at_its_limit() {
    let mut keys = DataKeys::new(Box::new(NullKeys), 1 << 26, 1 << 36);
    seal(&mut keys, 0..LIMIT - 1);
    assert_eq!((keys.updates(), keys.is_used_up()), (0, false));
    seal(&mut keys, LIMIT - 1..LIMIT);
    assert_eq!((keys.updates(), keys.is_used_up()), (0, true));
}

/// Keys that write their generation into each packet.
struct Numbered(u8);

impl PacketKey for Numbered {
    fn seal(&self, _: u64, _: &[u8], buffer: &mut [u8]) {
        buffer.fill(self.0);
    }

    fn open(&self, _: u64, _: &[u8], buffer: &mut [u8]) -> Option<usize> {
        buffer.iter().all(|byte| *byte == self.0).then_some(buffer.len() - 16)
    }

    fn packet_limit(&self) -> u64 {
        1000
    }
}

impl KeyChain for Numbered {
    fn next_pair(&mut self) -> KeyPair {
        self.0 += 1;
        KeyPair { seal: Box::new(Self(self.0)), open: Box::new(Self(self.0)) }
    }
}

/// Whether a packet with the phase and key of this generation opens.
fn opens(keys: &mut DataKeys, now: Instant, pn: u64, generation: u8) -> bool {
    let phase = if generation % 2 == 1 { KeyPhase::Even } else { KeyPhase::Odd };
    let header = ShortHeader {
        kind: hikyaku_wire::PacketKind::Data,
        phase,
        ack_now: false,
        packet_number: pn,
        destination: hikyaku_wire::ConnectionId(1),
    };
    let mut packet = [generation; SHORT_HEADER_LEN + 20];
    keys.open(now, &header, pn, &mut packet).is_some()
}

// spec: key-2
#[test]
fn a_valid_packet_of_the_next_phase_updates_the_receivers_keys() {
    let mut keys = DataKeys::new(Box::new(Numbered(0)), 1 << 26, u64::MAX);
    let now = Instant::from_millis(1000);
    assert!(opens(&mut keys, now, 1, 1));
    assert!(!opens(&mut keys, now, 2, 4), "the phase of the next, another key");
    assert_eq!((keys.updates(), keys.phase()), (0, KeyPhase::Even));
    assert!(opens(&mut keys, now, 5, 2));
    assert_eq!((keys.updates(), keys.phase()), (1, KeyPhase::Odd));
    assert!(opens(&mut keys, now, 3, 1), "late, of the phase before");
    assert!(!opens(&mut keys, now, 6, 1), "what is sealed later has the later key");
    assert!(opens(&mut keys, now, 7, 3));
    assert_eq!((keys.updates(), keys.phase()), (2, KeyPhase::Even));
}

// spec: key-3
#[test]
fn the_previous_key_is_discarded_after_the_present_one_came_into_use() {
    let memory = Duration::from_millis(300);
    let mut keys = DataKeys::new(Box::new(Numbered(0)), 1 << 26, u64::MAX);
    let now = Instant::from_millis(1000);
    assert!(opens(&mut keys, now, 1, 1) && opens(&mut keys, now, 9, 2));
    keys.expire(now + memory / 2, memory);
    assert!(opens(&mut keys, now, 2, 1), "not yet");
    assert_eq!(keys.expires(memory), Some(now + memory));
    keys.expire(now + memory, memory);
    assert!(!opens(&mut keys, now, 3, 1));
    assert!(opens(&mut keys, now, 10, 2));
    // An end that starts an update waits for the peer's first packet of the new phase.
    let mut keys = DataKeys::new(Box::new(Numbered(0)), 4, u64::MAX);
    seal(&mut keys, 0..1);
    keys.on_acked(0);
    seal(&mut keys, 1..4);
    assert_eq!(keys.updates(), 1);
    keys.expire(now + memory * 9, memory);
    assert!(opens(&mut keys, now, 1, 1), "the peer has not moved");
    let later = now + memory * 10;
    assert!(opens(&mut keys, later, 2, 2));
    keys.expire(later + memory / 2, memory);
    assert!(opens(&mut keys, later, 1, 1));
    keys.expire(later + memory, memory);
    assert!(!opens(&mut keys, later, 1, 1));
}
