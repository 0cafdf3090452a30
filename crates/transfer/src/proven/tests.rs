//! Which segments are proven, in a hole, or missing.

use super::*;
use crate::geometry::SEGMENT;

fn missing(proven: &Proven) -> Vec<u32> {
    let lacking = proven.file().indices().filter(|&index| proven.lacks(index));
    lacking.map(|index| index.0).collect()
}

#[test]
fn segments_without_a_hash_are_missing() {
    let file = Geometry::new(4 * SEGMENT + 5).unwrap();
    let mut proven = Proven::nothing(file);
    assert_eq!(missing(&proven), [0, 1, 2, 3, 4]);
    for index in [0, 1, 3] {
        assert!(proven.insert(SegmentIndex(index), SegmentHash([index as u8; 32])));
    }
    assert!(!proven.insert(SegmentIndex(5), SegmentHash([0; 32])), "beyond the end");
    assert_eq!(missing(&proven), [2, 4]);
    let lengths: Vec<_> = proven.runs().iter().map(|(at, run)| (at.0, run.len())).collect();
    assert_eq!(lengths, [(0, 2), (3, 1)]);
    assert!(!proven.is_whole() && proven.hash().is_none());
    for index in [2, 4, 4] {
        proven.insert(SegmentIndex(index), SegmentHash([9; 32]));
    }
    assert!(proven.is_whole() && proven.hash().is_some() && missing(&proven).is_empty());
}

#[test]
fn holes_are_proven_and_hashed_as_zeros() {
    let size = 4 * SEGMENT + 5;
    let file = Geometry::new(size).unwrap();
    let mut bytes = vec![0; size as usize];
    bytes[..2 * SEGMENT as usize].fill(1);
    let hole = |first, count| Hole { first: SegmentIndex(first), count };
    let insert = |proven: &mut Proven, index: u32| {
        let range = file.range(SegmentIndex(index)).unwrap();
        let bytes = &bytes[range.start as usize..range.end as usize];
        let hash = SegmentHash::new(file, SegmentIndex(index), bytes).unwrap();
        proven.insert(SegmentIndex(index), hash)
    };
    let mut proven = Proven::nothing(file);
    // Segment 3 was proven by its hash before the hole was recorded, and segment 2 is afterwards.
    assert!(insert(&mut proven, 3) && proven.add_hole(hole(2, 2)) && proven.add_hole(hole(4, 1)));
    assert!(insert(&mut proven, 2) && insert(&mut proven, 0));
    for lie in [hole(4, 1), hole(0, 1), hole(5, 1), hole(4, u32::MAX), hole(5, 0)] {
        assert!(!proven.add_hole(lie), "{lie:?}");
    }
    assert_eq!(missing(&proven), [1]);
    assert!(insert(&mut proven, 1) && proven.is_whole());
    assert_eq!(proven.hash().unwrap().0, *blake3::hash(&bytes).as_bytes());
}

#[test]
fn an_empty_file_is_whole_at_once() {
    let proven = Proven::nothing(Geometry::new(0).unwrap());
    assert!(proven.is_whole());
    assert_eq!(proven.hash().unwrap().to_string(), blake3::hash(b"").to_hex().as_str());
}

#[test]
fn a_claimed_size_allocates_nothing() {
    let file = Geometry::new(SEGMENT << 32).unwrap();
    let mut proven = Proven::nothing(file);
    assert!(proven.insert(SegmentIndex(u32::MAX), SegmentHash([1; 32])));
    assert_eq!(proven.bytes(), SEGMENT);
    assert!(proven.add_hole(Hole { first: SegmentIndex(0), count: u32::MAX }));
    assert!(proven.is_whole());
    let mut proven = Proven::nothing(file);
    proven.insert(SegmentIndex(7), SegmentHash([1; 32]));
    assert!(!proven.is_whole());
}
