//! Coverage survives both encodings, and malformed blocks are refused before anything is allocated
//! for them.

use super::*;
use alloc::vec;

fn round_trip(ack: &Ack) -> Ack {
    let mut out = Vec::new();
    ack.encode(&mut out);
    let mut reader = Reader::new(&out);
    let back = Ack::decode(&mut reader).unwrap();
    assert!(reader.is_empty());
    back
}

// spec: ack-2
#[test]
fn both_block_encodings_carry_the_same_ranges() {
    let sparse = Block { first: 1000, runs: vec![500, 1, 499, 2, 998] };
    let dense = Block { first: 7, runs: (0..200).map(|i| 1 + i % 3).collect() };
    for block in [sparse, dense] {
        let ack = Ack { largest: 9, blocks: vec![block.clone()], ..Ack::default() };
        let back = round_trip(&ack);
        assert_eq!(back.blocks[0].end(), block.end());
        assert!(back.blocks[0].arrived().eq(block.arrived()));
    }
}

// spec: ack-1
#[test]
fn samples_are_deltas() {
    let samples = vec![
        Sample { packet_number: 10, micros: 1_000_000, bytes: 14_720 },
        Sample { packet_number: 54, micros: 1_000_512, bytes: 79_488 },
    ];
    let ack = Ack { largest: 54, packets: 55, samples, ..Ack::default() };
    assert_eq!(round_trip(&ack), ack);
}

#[test]
fn hostile_blocks_are_refused() {
    let mut out = Vec::new();
    Ack::default().encode(&mut out);
    out.pop();
    put_varint(&mut out, 1);
    put_varint(&mut out, 0);
    put_varint(&mut out, 1 << 40);
    out.push(1);
    out.extend_from_slice(&[0; 64]);
    assert_eq!(Ack::decode(&mut Reader::new(&out)), Err(DecodeError::Invalid("ACK block length")));
}

// spec: ack-2
#[test]
fn the_shorter_encoding_is_chosen() {
    let len = |runs: Vec<u32>| {
        let mut out = Vec::new();
        Block { first: 0, runs }.encode(&mut out);
        out.len()
    };
    // Two runs take two bytes each, compared with a bitmap of 500. One run for each packet takes a
    // byte, compared with a bit.
    assert!(len(vec![2000, 2000]) < 12);
    assert!(len(vec![1; 4000]) < 510);
}
