//! Messages survive encoding and decoding, and malformed input is refused.

use super::*;

fn entry(size: u64) -> Entry {
    Entry {
        id: EntryId(7),
        path: b"run/\xff\n".to_vec(),
        mode: 0o644,
        modified: (-5, 999_999_999),
        version: Version([1; 32]),
        kind: EntryKind::File { size },
        owner: Some((1000, 100)),
        attributes: Vec::new(),
    }
}

#[test]
fn messages_survive_encoding_and_decoding() {
    let messages = [
        (FromSender::Entry(entry(1 << 40)), &b""[..]),
        (FromSender::Small { entry: entry(3), hash: FileHash([9; 32]) }, b"abc"),
        (
            FromSender::Segments {
                id: EntryId(1),
                first: SegmentIndex(3),
                hashes: vec![SegmentHash([4; 32]); 100],
            },
            b"",
        ),
        (FromSender::End, b""),
    ];
    let mut bytes: Vec<u8> = messages.iter().flat_map(|(m, t)| encode(m, t).unwrap()).collect();
    for (message, tail) in messages {
        let body = frame(&bytes).unwrap().unwrap();
        let (found, behind) = decode::<FromSender>(body).unwrap();
        assert_eq!((&found, behind), (&message, tail));
        assert_eq!(found.tail(), if tail.is_empty() { 0 } else { 3 });
        bytes.drain(..frame_len(body).min(bytes.len()));
    }
    assert_eq!(frame(&bytes), Ok(None));
}

#[test]
fn an_incomplete_frame_is_not_decoded() {
    let bytes = encode(&FromSender::Entry(entry(5)), b"").unwrap();
    for end in 0..bytes.len() {
        assert_eq!(frame(&bytes[..end]), Ok(None));
    }
}

// spec: copy-msg-1
#[test]
fn claimed_lengths_and_counts_allocate_nothing() {
    let liar = u32::MAX.to_le_bytes();
    assert_eq!(frame(&liar), Err(MessageError::TooLong(u32::MAX as usize)));
    // A frame of a few bytes that claims 2^60 hashes.
    let mut body = vec![5, 0, 0];
    body.extend([0xff; 8]);
    body.push(0x0f);
    assert_eq!(decode::<FromSender>(&body), Err(MessageError::Malformed));
    assert_eq!(encode(&FromSender::End, &vec![0; MAX_FRAME]), None);
}

#[test]
fn noise_never_panics() {
    let mut rng = fastrand::Rng::with_seed(3);
    for _ in 0..20_000 {
        let length = rng.usize(0..64);
        let body: Vec<u8> = (0..length).map(|_| rng.u8(..)).collect();
        let _ = decode::<FromSender>(&body);
        let _ = decode::<FromReceiver>(&body);
    }
}
