//! Bytes of any order become segments, and heads that a later request completes.

use super::*;
use std::sync::mpsc::sync_channel;

#[test]
fn a_segment_is_whole_when_each_of_its_bytes_has_come() {
    let size = 2 * SEGMENT + 100;
    let content: Vec<u8> = (0..size).map(|at| (at % 251) as u8).collect();
    let pieces = |from: u64, to: u64, length: u64| {
        (from..to).step_by(length as usize).map(move |at| at..to.min(at + length))
    };
    let in_order: Vec<_> = pieces(0, size, 100_000).collect();
    let backwards: Vec<_> =
        pieces(0, size, 300_000).collect::<Vec<_>>().into_iter().rev().collect();
    // A failure: more than half of a segment came, and comes again.
    let twice: Vec<_> = pieces(0, 700_000, 100_000).chain(pieces(0, size, 100_000)).collect();
    for order in [in_order, backwards, twice] {
        let (whole, from) = sync_channel(WHOLE_MAX);
        let (geometry, buffers) = (Geometry::new(size).unwrap(), Buffers::default());
        let assembly = Assembly::new(geometry, &buffers, whole, &Asked::whole(&[]));
        for piece in &order {
            let bytes = &content[piece.start as usize..piece.end as usize];
            assembly.add(piece.start, bytes).unwrap();
        }
        assembly.add(size, b"x").unwrap();
        drop(assembly);
        let mut passed = Vec::new();
        for Whole { index, hash, bytes } in from {
            let range = geometry.range(index).unwrap();
            assert!(bytes == content[range.start as usize..range.end as usize], "{index:?}");
            assert_eq!(SegmentHash::new(geometry, index, &bytes), Some(hash));
            passed.push(index.0);
        }
        passed.sort_unstable();
        assert_eq!(passed, [0, 1, 2]);
    }
}
#[test]
fn a_request_goes_on_behind_the_head_that_a_failed_one_has_left() {
    let size = 2 * SEGMENT;
    let content: Vec<u8> = (0..size).map(|at| (at % 251) as u8).collect();
    let bytes = |from: u64, to: u64| &content[from as usize..to as usize];
    let (geometry, buffers, heads) =
        (Geometry::new(size).unwrap(), Buffers::default(), Heads::default());
    let all = [0..size, SEGMENT + 300..size];
    let asked = |number: usize| Asked { ranges: &all[number..=number], heads: Some(&heads) };
    let (whole, from) = sync_channel(WHOLE_MAX);
    let failed = Assembly::new(geometry, &buffers, whole, &asked(0));
    failed.add(SEGMENT + 500, bytes(SEGMENT + 500, SEGMENT + 900)).unwrap();
    assert_eq!(heads.segments(), [], "its first bytes have not come");
    failed.add(SEGMENT, bytes(SEGMENT, SEGMENT + 300)).unwrap();
    drop((failed, from));
    assert_eq!(heads.length(SegmentIndex(1)), 300);
    let (whole, from) = sync_channel(WHOLE_MAX);
    let next = Assembly::new(geometry, &buffers, whole, &asked(1));
    next.add(SEGMENT + 300, bytes(SEGMENT + 300, size)).unwrap();
    drop(next);
    let [Whole { index, bytes, .. }] = &from.into_iter().collect::<Vec<_>>()[..] else {
        panic!("one segment is whole")
    };
    assert!((*index, &bytes[..]) == (SegmentIndex(1), &content[SEGMENT as usize..]));
}
