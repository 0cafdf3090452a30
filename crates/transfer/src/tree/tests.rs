//! Segments hashed in any order give the hash of the whole file.

use super::*;
use crate::geometry::SEGMENT;

// spec: copy-seg-1
#[test]
fn the_combined_hash_equals_blake3() {
    let mut rng = fastrand::Rng::with_seed(7);
    let longest = 9 * SEGMENT as usize + 3;
    let bytes: Vec<u8> = (0..longest).map(|_| rng.u8(..)).collect();
    let segment = SEGMENT as usize;
    let sizes = [0, 1, 1024, segment - 1, segment, segment + 1, 2 * segment, 3 * segment + 5];
    for size in sizes.into_iter().chain([4 * segment, 5 * segment, 8 * segment, longest]) {
        let file = Geometry::new(size as u64).unwrap();
        let mut order: Vec<_> = file.indices().collect();
        rng.shuffle(&mut order);
        let mut hashes = vec![SegmentHash([0; 32]); order.len()];
        for index in order {
            let range = file.range(index).unwrap();
            let part = &bytes[range.start as usize..range.end as usize];
            hashes[index.0 as usize] = SegmentHash::new(file, index, part).unwrap();
        }
        let hash = FileHash::new(file, &hashes).unwrap();
        assert_eq!(hash.to_string(), blake3::hash(&bytes[..size]).to_hex().as_str(), "{size}");
    }
}

#[test]
fn input_of_the_wrong_length_has_no_hash() {
    let file = Geometry::new(SEGMENT + 10).unwrap();
    assert!(SegmentHash::new(file, SegmentIndex(1), &[0; 9]).is_none());
    assert!(SegmentHash::new(file, SegmentIndex(2), &[]).is_none());
    assert!(FileHash::new(file, &[SegmentHash([0; 32])]).is_none());
}
