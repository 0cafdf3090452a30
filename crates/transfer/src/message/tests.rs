//! Messages survive the way, and nothing else is one.

use super::*;

fn entry() -> FromSender {
    FromSender::Entry(Entry {
        id: EntryId(7),
        path: b"run/\xff\n".to_vec(),
        mode: 0o644,
        modified: (-5, 999_999_999),
        kind: EntryKind::File { size: 1 << 40, holes: vec![(0, 1 << 30)] },
    })
}

#[test]
fn there_and_back() {
    let messages = [
        entry(),
        FromSender::Segments {
            id: EntryId(1),
            first: SegmentIndex(3),
            hashes: vec![SegmentHash([4; 32]); 100],
        },
        FromSender::End,
    ];
    let mut bytes: Vec<u8> = messages.iter().flat_map(|m| encode(m).unwrap()).collect();
    for message in messages {
        let (found, length) = decode::<FromSender>(&bytes).unwrap().unwrap();
        assert_eq!(found, message);
        bytes.drain(..length);
    }
    assert_eq!(decode::<FromSender>(&bytes), Ok(None));
}

#[test]
fn a_part_is_no_message_yet() {
    let bytes = encode(&entry()).unwrap();
    for end in 0..bytes.len() {
        assert_eq!(decode::<FromSender>(&bytes[..end]), Ok(None));
    }
}

#[test]
fn lengths_and_counts_of_a_liar_cost_nothing() {
    let liar = u32::MAX.to_le_bytes();
    assert_eq!(decode::<FromSender>(&liar), Err(MessageError::TooLong(u32::MAX as usize)));
    // A frame of a few bytes that claims 2^60 hashes.
    let mut body = vec![1, 0, 0];
    body.extend([0xff; 8]);
    body.push(0x0f);
    let mut frame = (body.len() as u32).to_le_bytes().to_vec();
    frame.extend(body);
    assert_eq!(decode::<FromSender>(&frame), Err(MessageError::Malformed));
    // Bytes behind a message.
    let mut long = encode(&FromSender::End).unwrap();
    long.push(0);
    long[0] += 1;
    assert_eq!(decode::<FromSender>(&long), Err(MessageError::Malformed));
}

#[test]
fn noise_never_panics() {
    let mut rng = fastrand::Rng::with_seed(3);
    for _ in 0..20_000 {
        let length = rng.usize(0..64);
        let mut frame = (length as u32).to_le_bytes().to_vec();
        frame.extend((0..length).map(|_| rng.u8(..)));
        let _ = decode::<FromSender>(&frame);
        let _ = decode::<FromReceiver>(&frame);
    }
}
