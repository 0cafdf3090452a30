//! Parameters survive encoding and decoding, and unknown ones are ignored.

use super::*;

#[test]
fn round_trip_and_unknown_ids() {
    let params = Params {
        source_id: 1,
        original_destination: 2,
        ciphers: alloc::vec![CipherId::Aegis128L, CipherId::ChaCha20Poly1305],
        max_datagram: 65_507,
        max_data: 1 << 30,
        max_stream_data: 1 << 29,
        max_streams: 100,
        idle_timeout_ms: 30_000,
    };
    let mut bytes = params.encode();
    assert_eq!(Params::decode(&bytes), Ok(params.clone()));
    put_varint(&mut bytes, 4000);
    put_varint(&mut bytes, 3);
    bytes.extend_from_slice(b"xyz");
    assert_eq!(Params::decode(&bytes), Ok(params));
}

#[test]
fn a_tiny_datagram_limit_is_refused() {
    let params = Params { max_datagram: 100, ..Params::default() };
    assert!(Params::decode(&params.encode()).is_err());
}
