//! Cryptographically secure random bytes, for connection ids, token keys and seeds, which an
//! attacker must not guess.

/// 64 random bits.
pub fn random_u64() -> u64 {
    u64::from_ne_bytes(random_array())
}

/// `N` random bytes.
pub fn random_array<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    // Stopping is the only safe reaction: an id that an attacker can guess would break the
    // protocol.
    aws_lc_rs::rand::fill(&mut bytes).expect("the generator is seeded or the library has aborted");
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_do_not_repeat() {
        assert_ne!(random_u64(), random_u64());
        assert_ne!(random_array::<32>(), random_array::<32>());
    }
}
