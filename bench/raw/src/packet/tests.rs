//! Headers read as written, and foreign packets are none.

use super::*;

#[test]
fn headers_read_as_written() {
    for kind in [Kind::Data, Kind::Progress, Kind::End] {
        for cipher in Cipher::ALL {
            for mode in Mode::ALL {
                let header = Header { kind, cipher, mode, number: 0x0123_4567_89ab_cdef };
                assert_eq!(Header::decode(&header.encode()), Some(header));
            }
        }
    }
}

#[test]
fn foreign_packets_have_no_header() {
    assert_eq!(Header::decode(&[0; HEADER - 1]), None);
    assert_eq!(Header::decode(&[0xff; HEADER]), None);
}
