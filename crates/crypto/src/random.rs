//! Random bytes of cryptographic quality, for what a stranger must not guess: connection ids,
//! token keys, seeds.

/// 64 random bits.
pub fn random_u64() -> u64 {
    u64::from_ne_bytes(random_array())
}

/// `N` random bytes.
pub fn random_array<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    // There is no answer but to stop: an id that can be guessed is worse than none.
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
