//! Values as bytes.

use super::*;

#[test]
fn what_is_written_is_read() {
    let mut writer = Writer::default();
    writer.int(0).int(-1).long(1 << 40).string(b"name").string(b"");
    assert_eq!(writer.bytes()[..8], [0, 0, 0, 0, 255, 255, 255, 255]);
    let mut reader = Reader::new(writer.bytes());
    reader.good().unwrap();
    assert_eq!(reader.int().unwrap(), -1);
    assert_eq!(reader.count().unwrap(), 1 << 40);
    assert_eq!(reader.text().unwrap(), b"name");
    assert_eq!(reader.word().unwrap(), "");
    assert_eq!(reader.int(), Err(CallError::Lost(std::io::ErrorKind::UnexpectedEof)));
}

#[test]
fn an_error_number_ends_a_reply() {
    let mut reader = Reader::new(&[0, 0, 0, 2][..]);
    assert_eq!(reader.good(), Err(CallError::Refused(Code::NOT_FOUND)));
}

#[test]
fn a_length_is_checked_before_it_is_used() {
    for length in [-1, TEXT_BYTES_MAX as i32 + 1, i32::MAX, i32::MIN] {
        let bytes = length.to_be_bytes();
        let text = Reader::new(&bytes[..]).text();
        assert!(matches!(text, Err(CallError::Protocol(_))), "{length}");
        let mut block = [0; 8];
        let block = Reader::new(&bytes[..]).block(&mut block).map(<[u8]>::len);
        assert!(matches!(block, Err(CallError::Protocol(_))), "{length}");
    }
}

#[test]
fn a_negative_size_is_refused() {
    let bytes = (-5_i64).to_be_bytes();
    assert!(matches!(Reader::new(&bytes[..]).count(), Err(CallError::Protocol(_))));
}
