//! Packets and frames: what can be read is written again as the same, and nothing else happens.
#![no_main]

use hikyaku_wire::{
    Ack, Block, Frame, LongHeader, Params, Reader, ShortHeader, Trailer, expand_packet_number,
    is_long,
};
use libfuzzer_sys::fuzz_target;

/// Of a block: its first number, its end, and the ranges between them that arrived.
type Reach = (u64, u64, Vec<(u64, u64)>);

/// What an acknowledgement says, in whichever of many ways: the ranges that arrived, joined, and how
/// far each block reaches.
fn meaning(ack: &Ack) -> (Ack, Vec<Reach>) {
    let block = |block: &Block| {
        let mut ranges: Vec<(u64, u64)> = Vec::new();
        for (from, to) in block.arrived() {
            match ranges.last_mut() {
                Some((_, end)) if *end == from => *end = to,
                _ => ranges.push((from, to)),
            }
        }
        (block.first, block.end(), ranges)
    };
    let blocks = ack.blocks.iter().map(block).collect();
    (Ack { blocks: Vec::new(), ..ack.clone() }, blocks)
}

fuzz_target!(|bytes: &[u8]| {
    if is_long(bytes) {
        if let Ok((header, used)) = LongHeader::decode(bytes) {
            let mut again = Vec::new();
            header.encode(&mut again);
            assert_eq!(again, bytes[..used]);
        }
    } else if let Ok(header) = ShortHeader::decode(bytes) {
        assert_eq!(ShortHeader::decode(&header.encode()), Ok(header));
    }
    if let Ok((payload, trailer)) = Trailer::split(bytes) {
        assert_eq!(payload.len() + trailer.encode().len(), bytes.len());
    }
    if let Ok(params) = Params::decode(bytes) {
        assert_eq!(Params::decode(&params.encode()), Ok(params));
    }
    if let Ok(ack) = Ack::decode(&mut Reader::new(bytes)) {
        let mut again = Vec::new();
        ack.encode(&mut again);
        let read = Ack::decode(&mut Reader::new(&again)).expect("what was written is read");
        assert_eq!(meaning(&read), meaning(&ack));
    }
    let mut reader = Reader::new(bytes);
    while let Ok(Some(frame)) = Frame::decode(&mut reader) {
        let mut again = Vec::new();
        frame.encode(&mut again);
        let read = Frame::decode(&mut Reader::new(&again)).expect("what was written is read");
        match (&read, &frame) {
            (Some(Frame::Ack(read)), Frame::Ack(ack)) => assert_eq!(meaning(read), meaning(ack)),
            _ => assert_eq!(read, Some(frame)),
        }
    }
    if let Some(eight) = bytes.first_chunk::<8>() {
        let truncated = u64::from_le_bytes(*eight);
        let expected = truncated.rotate_left(17);
        let number = expand_packet_number(truncated, expected);
        assert!(number.is_none_or(|number| number < 1 << 62));
    }
});
