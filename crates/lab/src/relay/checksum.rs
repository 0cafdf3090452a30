//! The Internet checksum (RFC 1071).

/// Adds the 16-bit words of `bytes` to `sum`, without folding the carries.
pub(crate) fn add(mut sum: u64, bytes: &[u8]) -> u64 {
    let mut words = bytes.chunks_exact(4);
    for word in &mut words {
        sum += u64::from(u32::from_be_bytes([word[0], word[1], word[2], word[3]]));
    }
    let mut rest = [0; 4];
    let tail = words.remainder();
    rest[..tail.len()].copy_from_slice(tail);
    sum + u64::from(u32::from_be_bytes(rest))
}

/// Folds the carries into 16 bits.
pub(crate) fn fold(mut sum: u64) -> u16 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_of_rfc_1071() {
        let bytes = [0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7];
        assert_eq!(fold(add(0, &bytes)), 0xddf2);
        assert_eq!(fold(add(0, &bytes[..7])), fold(add(0, &[0, 1, 0xf2, 3, 0xf4, 0xf5, 0xf6, 0])));
    }
}
