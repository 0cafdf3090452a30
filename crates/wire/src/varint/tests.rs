//! Every value survives encoding and decoding in the number of bytes announced.

use super::*;

#[test]
fn round_trip_at_every_border() {
    for value in [0, 63, 64, 16383, 16384, (1 << 30) - 1, 1 << 30, (1 << 62) - 1] {
        let mut out = Vec::new();
        put_varint(&mut out, value);
        assert_eq!(out.len(), varint_len(value));
        let mut reader = Reader::new(&out);
        assert_eq!(reader.varint(), Ok(value));
        assert!(reader.is_empty());
        for cut in 0..out.len() {
            assert_eq!(Reader::new(&out[..cut]).varint(), Err(DecodeError::Truncated));
        }
    }
}

#[test]
fn a_length_never_exceeds_what_is_left() {
    let mut out = Vec::new();
    put_varint(&mut out, 5);
    out.extend_from_slice(b"four");
    assert_eq!(Reader::new(&out).length(), Err(DecodeError::Truncated));
}
