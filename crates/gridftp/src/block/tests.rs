//! Headers of blocks, also senseless ones.

use super::*;

fn block(data: Option<(u64, u64)>, connections: Option<u64>, then: Then) -> Block {
    Block { data, connections, then }
}

#[test]
fn headers_of_a_real_server_are_read() {
    // From a get of 1,000,000 bytes through three connections.
    let cases: &[(&str, Block)] = &[
        ("0000000000000400000000000000040000", block(Some((0x40000, 0x40000)), None, Then::More)),
        ("4800000000000000000000000000000003", block(None, Some(3), Then::Over)),
        ("0800000000000000000000000000000000", block(None, None, Then::Over)),
    ];
    for (hex, want) in cases {
        let byte = |at: usize| u8::from_str_radix(&hex[2 * at..2 * at + 2], 16).unwrap();
        let header = std::array::from_fn(byte);
        assert_eq!(Block::decode(&header), Ok(*want), "{hex}");
    }
}

#[test]
fn what_is_written_is_read_back() {
    let back = |header| Block::decode(&header).unwrap();
    assert_eq!(back(data_header(7, 9)), block(Some((7, 9)), None, Then::More));
    assert_eq!(back(end_header(None)), block(None, None, Then::Over));
    assert_eq!(back(end_header(Some(4))), block(None, Some(4), Then::Over));
}

#[test]
fn senseless_headers_are_errors() {
    let decode = |descriptor, count, offset| Block::decode(&header(descriptor, count, offset));
    assert_eq!(decode(0, 2, u64::MAX), Err(BlockError::Senseless), "the end overflows");
    assert_eq!(decode(EOF, 1, 1), Err(BlockError::Senseless), "an EOF with data");
    assert_eq!(decode(RESTART, 1, 1), Err(BlockError::Senseless));
    assert_eq!(decode(ERRORS, 1, 1), Err(BlockError::Errors));
}
