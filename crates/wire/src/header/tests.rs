//! Headers survive encoding and decoding, and malformed ones are refused.

use super::*;

// spec: head-1
#[test]
fn short_header_golden_bytes() {
    let header = ShortHeader {
        kind: PacketKind::Control,
        phase: KeyPhase::Odd,
        ack_now: true,
        packet_number: 0x0605_0403_0201,
        destination: ConnectionId(0x0807_0605_0403_0201),
    };
    let bytes = header.encode();
    assert_eq!(bytes, [7, 0, 1, 2, 3, 4, 5, 6, 1, 2, 3, 4, 5, 6, 7, 8]);
    assert_eq!(ShortHeader::decode(&bytes), Ok(header));
    assert_eq!(ShortHeader::decode(&bytes[..15]), Err(DecodeError::Truncated));
    for bit in 3..16 {
        let mut bad = bytes;
        bad[bit / 8] ^= 1 << (bit % 8);
        assert!(ShortHeader::decode(&bad).is_err(), "bit {bit}");
    }
}

// spec: head-2
#[test]
fn packet_numbers_expand_around_the_expected_one() {
    let wrap = 1u64 << 48;
    for pn in [0, 5, wrap - 1, wrap, wrap + 1, 3 * wrap + 7] {
        for expected in [pn.saturating_sub(1000), pn, pn + 1000] {
            assert_eq!(expand_packet_number(pn & (wrap - 1), expected), Some(pn));
        }
    }
    for expected in [1 << 62, u64::MAX - wrap / 2, u64::MAX] {
        assert_eq!(expand_packet_number(0, expected), None, "a packet number of 2^62 or more");
        assert_eq!(expand_packet_number(wrap - 1, expected), Some((1 << 62) - 1));
    }
}

// spec: head-3
#[test]
fn long_header_golden_bytes() {
    let kinds =
        [LongType::Initial, LongType::Handshake, LongType::Retry, LongType::VersionNegotiation];
    for (kind, byte) in kinds.into_iter().zip(0x80..) {
        let header = LongHeader {
            kind,
            version: Version(0x0403_0201),
            destination: ConnectionId(0x0807_0605_0403_0201),
            source: ConnectionId(0x1817_1615_1413_1211),
            packet_number: 0x2423_2221,
            token: b"ab".to_vec(),
        };
        let mut bytes = Vec::new();
        header.encode(&mut bytes);
        let fields: [&[u8]; 7] = [
            &[byte, 0, 0, 0],
            &[1, 2, 3, 4],
            &[1, 2, 3, 4, 5, 6, 7, 8],
            &[0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18],
            &[0x21, 0x22, 0x23, 0x24],
            &[2, 0],
            b"ab",
        ];
        assert_eq!(bytes, fields.concat());
        assert_eq!(LongHeader::decode(&bytes), Ok((header, bytes.len())));
    }
}

#[test]
fn long_header_round_trip_and_every_truncation() {
    let header = LongHeader {
        kind: LongType::Initial,
        version: Version::CURRENT,
        destination: ConnectionId(7),
        source: ConnectionId(9),
        packet_number: 3,
        token: b"token".to_vec(),
    };
    let mut bytes = Vec::new();
    header.encode(&mut bytes);
    assert_eq!(bytes.len(), LONG_HEADER_LEN + 5);
    assert!(is_long(&bytes));
    assert_eq!(LongHeader::decode(&bytes), Ok((header, bytes.len())));
    for cut in 0..bytes.len() {
        assert!(LongHeader::decode(&bytes[..cut]).is_err());
    }
}

// spec: data-1
#[test]
fn trailer_sits_behind_the_payload() {
    let trailer = Trailer { stream: 0x0403_0201, offset: 0x0807_0605_0403_0201 };
    assert_eq!(trailer.encode(), [1, 2, 3, 4, 1, 2, 3, 4, 5, 6, 7, 8]);
    assert_eq!(1472 - crate::DATA_OVERHEAD, 1428, "the payload of a 1500-byte packet over IPv4");
    let mut opened = b"payload".to_vec();
    opened.extend_from_slice(&trailer.encode());
    assert_eq!(Trailer::split(&opened), Ok((&b"payload"[..], trailer)));
    assert!(Trailer::split(b"short").is_err());
}
