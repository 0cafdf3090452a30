//! Every frame survives encoding and decoding, and neither truncated nor random input makes the
//! decoder panic.

use super::*;

fn all() -> Vec<Frame> {
    let stream = StreamId::new(3, StreamKind::Object, true);
    alloc::vec![
        Frame::Padding(7),
        Frame::Ping,
        Frame::Ack(Ack { largest: 5, ..Ack::default() }),
        Frame::Floor { floor: 9, rtt_micros: 200_000 },
        Frame::Crypto { offset: 1, data: b"hello".to_vec() },
        Frame::HandshakeDone,
        Frame::MaxData(1 << 40),
        Frame::MaxStreamData { stream, limit: 77 },
        Frame::MaxStreams { kind: StreamKind::Ordered, count: 100 },
        Frame::MaxStreams { kind: StreamKind::Object, count: u32::MAX },
        Frame::Fin { stream, size: 1 << 33 },
        Frame::Reset { stream, code: 1, size: 2 },
        Frame::ResetAt { stream, code: 1, size: 1 << 40 },
        Frame::Stop { stream, code: 3 },
        Frame::PathChallenge(u64::MAX),
        Frame::PathResponse(1),
        Frame::Close { code: 0, reason: b"done".to_vec() },
    ]
}

#[test]
fn round_trip() {
    for frame in all() {
        let mut out = Vec::new();
        frame.encode(&mut out);
        let mut reader = Reader::new(&out);
        assert_eq!(Frame::decode(&mut reader), Ok(Some(frame)));
        assert_eq!(Frame::decode(&mut reader), Ok(None));
    }
}

#[test]
fn stream_ids_encode_index_kind_and_opener() {
    let id = StreamId::new(3, StreamKind::Object, true);
    assert_eq!((id.index(), id.kind(), id.by_server()), (3, StreamKind::Object, true));
}

#[test]
fn noise_never_panics() {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut bytes = Vec::new();
    all().iter().for_each(|frame| frame.encode(&mut bytes));
    for _ in 0..200_000 {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        let mut noisy = bytes.clone();
        let at = (state >> 8) as usize % noisy.len();
        noisy[at] ^= (state >> 40) as u8 | 1;
        noisy.truncate((state >> 20) as usize % noisy.len());
        let mut reader = Reader::new(&noisy);
        while let Ok(Some(_)) = Frame::decode(&mut reader) {}
    }
}

// spec: ack-5
#[test]
fn all_frames_but_four_are_ack_eliciting() {
    for frame in all() {
        let is_silent = matches!(
            frame,
            Frame::Padding(_) | Frame::Ack(_) | Frame::Floor { .. } | Frame::Close { .. }
        );
        assert_eq!(frame.is_ack_eliciting(), !is_silent, "{frame:?}");
    }
}
