//! What the ends of a copy, and a store and its client, say: a message that can be read is written again as the same.
#![no_main]

use hikyaku_reach::daemon::{Answer as Offer, Wish};
use hikyaku_remote::{Answer, Asked, RequestId};
use hikyaku_transfer::{
    FromReceiver, FromSender, Geometry, Kept, Long, Proven, decode, encode, frame, frame_len,
};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(Some(body)) = frame(bytes) {
        assert!(frame_len(body) <= bytes.len());
        let mut long = Long::new(1 << 20);
        if long.add(body).is_ok() {
            let _ = long.decode::<Vec<Vec<u8>>>();
        }
    }
    if let Ok((message, tail)) = decode::<FromSender>(bytes) {
        let written = encode(&message, tail).map(|frame| frame.len());
        // A number may be written in more bytes than it needs, never in fewer.
        assert!(written.is_none_or(|length| length <= bytes.len() + 4));
        if let FromSender::Holes { holes, .. } = message
            && let Some(file) = Geometry::new(1 << 40)
        {
            let mut proven = Proven::nothing(file);
            let accepted: u64 = holes
                .iter()
                .filter(|&&h| proven.add_hole(h))
                .map(|hole| u64::from(hole.count))
                .sum();
            assert!(accepted <= file.segments());
            assert_eq!(proven.is_whole(), accepted == file.segments());
        }
    }
    for length in [
        decode::<Asked>(bytes).ok().and_then(|(asked, tail)| encode(&asked, tail)),
        decode::<Answer>(bytes).ok().and_then(|(answer, tail)| {
            assert!(answer.reply.tail() <= u64::from(u32::MAX) && answer.id >= RequestId(0));
            encode(&answer, tail)
        }),
        decode::<Wish>(bytes).ok().and_then(|(wish, tail)| encode(&wish, tail)),
        decode::<Offer>(bytes).ok().and_then(|(offer, tail)| encode(&offer, tail)),
    ] {
        assert!(length.is_none_or(|frame| frame.len() <= bytes.len() + 4));
    }
    // The sender knows its file's size by itself; any will do.
    let size = bytes.len() as u64 * 1_000_003;
    if let Ok((FromReceiver::Has { kept: Kept::Segments(runs), .. }, _)) = decode(bytes)
        && let Some(file) = Geometry::new(size)
    {
        let mut proven = Proven::nothing(file);
        for (first, hashes) in &runs {
            proven.insert_run(*first, hashes);
        }
        assert!(proven.bytes() <= size);
    }
});
