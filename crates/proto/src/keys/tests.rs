//! Keys are replaced in time, and never used beyond their limit.

use super::*;
use crate::crypto::PacketKey;

const LIMIT: u64 = 10;

/// A key that seals nothing.
struct Glass;

impl PacketKey for Glass {
    fn seal(&self, _: u64, _: &[u8], _: &mut [u8]) {}

    fn open(&self, _: u64, _: &[u8], buffer: &mut [u8]) -> Option<usize> {
        buffer.len().checked_sub(16)
    }

    fn packet_limit(&self) -> u64 {
        LIMIT
    }
}

impl KeyChain for Glass {
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

#[test]
fn a_key_is_replaced_at_half_its_limit_if_the_peer_follows() {
    let mut keys = DataKeys::new(Box::new(Glass), 1 << 26);
    seal(&mut keys, 0..4);
    keys.on_acked(2);
    seal(&mut keys, 4..6);
    assert_eq!((keys.updates(), keys.is_used_up()), (1, false));
}

#[test]
fn a_key_that_no_other_may_replace_is_used_up_at_its_limit() {
    let mut keys = DataKeys::new(Box::new(Glass), 1 << 26);
    seal(&mut keys, 0..LIMIT - 1);
    assert_eq!((keys.updates(), keys.is_used_up()), (0, false));
    seal(&mut keys, LIMIT - 1..LIMIT);
    assert_eq!((keys.updates(), keys.is_used_up()), (0, true));
}
