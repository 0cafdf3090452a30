//! Tests of the messages.

use super::*;
use crate::attributes::Kind;

/// A string as messages have it.
fn string(bytes: &[u8]) -> Vec<u8> {
    [&(bytes.len() as u32).to_be_bytes(), bytes].concat()
}

#[test]
fn a_request_is_written_as_the_draft_says() {
    let read = Request::Read { handle: b"h", offset: 1 << 32, length: 5 };
    let wanted = [
        &[0, 0, 0, 22, 5, 0, 0, 0, 7][..],
        &string(b"h"),
        &[0, 0, 0, 1, 0, 0, 0, 0],
        &[0, 0, 0, 5],
    ];
    assert_eq!(read.encode(7), wanted.concat());
    let attributes = Attributes { mode: Some(0o644), ..Attributes::default() };
    let open = Request::Open { path: b"a", flags: Request::WRITE | Request::CREATE, attributes };
    let wanted = [
        &[0, 0, 0, 22, 3, 0, 0, 0, 1][..],
        &string(b"a"),
        &[0, 0, 0, 10],
        &[0, 0, 0, 4, 0, 0, 1, 0o244],
    ];
    assert_eq!(open.encode(1), wanted.concat());
    assert_eq!(greeting(), [0, 0, 0, 5, 1, 0, 0, 0, 3]);
}

#[test]
fn a_response_is_read() {
    let status = [&[101, 0, 0, 0, 9, 0, 0, 0, 2][..], &string(b"gone"), &string(b"en")].concat();
    assert_eq!(
        Response::decode(&status),
        Ok((9, Response::Status(Status::NoSuchFile, b"gone".to_vec())))
    );
    let mode: u32 = 0o040_755;
    let entry =
        [string(b"d"), string(b"drwx"), 4_u32.to_be_bytes().to_vec(), mode.to_be_bytes().to_vec()];
    let names = [&[104, 0, 0, 0, 3, 0, 0, 0, 1][..], &entry.concat()].concat();
    let Ok((3, Response::Names(entries))) = Response::decode(&names) else { panic!("no names") };
    assert_eq!(entries[0].name, b"d");
    assert_eq!(entries[0].attributes.kind(), Some(Kind::Dir));
    let version = [&[2, 0, 0, 0, 3][..], &string(b"fsync@openssh.com"), &string(b"1")].concat();
    assert!(Version::decode(&version).unwrap().has(Extension::Sync));
}

#[test]
fn a_message_that_is_none_is_an_error() {
    let short = [104, 0, 0, 0, 1, 0xff, 0xff, 0xff, 0xff];
    assert_eq!(Response::decode(&short), Err(NotAResponse::Short));
    let long = [&[103, 0, 0, 0, 1][..], &string(b"abc"), &[1]].concat();
    assert_eq!(Response::decode(&long), Err(NotAResponse::Long));
    assert_eq!(Response::decode(&[99, 0, 0, 0, 1]), Err(NotAResponse::Kind(99)));
    let whole = [&[103, 0, 0, 0, 1][..], &string(b"abc")].concat();
    for length in 0..whole.len() {
        assert_eq!(Response::decode(&whole[..length]), Err(NotAResponse::Short), "{length}");
    }
}

#[test]
fn attributes_survive_a_round_trip() {
    let attributes = Attributes {
        size: Some(u64::MAX),
        owner: Some((1, 2)),
        mode: Some(0o100_600),
        times: Some((3, u32::MAX)),
    };
    for attributes in [attributes, Attributes { owner: None, ..attributes }, Attributes::default()]
    {
        let mut writer = Writer::default();
        attributes.write(&mut writer);
        let bytes = [&[105, 0, 0, 0, 1][..], &writer.0].concat();
        assert_eq!(Response::decode(&bytes), Ok((1, Response::Attributes(attributes))));
    }
}
