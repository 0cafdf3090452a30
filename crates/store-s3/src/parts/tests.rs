//! Parts of ten bytes.

use super::*;

fn all(mut parts: Parts, mut sent: Vec<(u64, Bytes)>) -> Vec<u8> {
    while let Some(part) = parts.take_next() {
        sent.push(part);
    }
    sent.sort();
    let length = sent.len();
    assert!(sent.iter().all(|(number, part)| part.len() == 10 || *number as usize == length - 1));
    sent.iter().flat_map(|(_, part)| part.to_vec()).collect()
}

#[test]
fn parts_go_when_they_are_whole_in_any_order_of_writes() {
    let bytes: Vec<u8> = (0..47).collect();
    for seed in 0..20 {
        let mut rng = fastrand::Rng::with_seed(seed);
        let (mut parts, mut sent) = (Parts::new(Sizes::Equal(10)), Vec::new());
        let mut ranges: Vec<(usize, usize)> =
            (0..47).step_by(3).map(|at| (at, (at + 3).min(47))).collect();
        rng.shuffle(&mut ranges);
        for (at, end) in ranges {
            parts.write(at as u64, &bytes[at..end]).unwrap();
            sent.extend(parts.take_whole());
        }
        assert_eq!(sent.len(), 4, "{seed}");
        assert_eq!(all(parts, sent), bytes, "{seed}");
    }
}

#[test]
fn what_was_never_written_is_zero() {
    let mut parts = Parts::new(Sizes::Equal(10));
    parts.write(25, b"xy").unwrap();
    parts.write(2, b"ab").unwrap();
    parts.set_length(33).unwrap();
    let mut into = [9; 40];
    assert_eq!(parts.read(24, &mut into), Ok(9));
    assert_eq!(into[..9], *b"\0xy\0\0\0\0\0\0");
    let mut wanted = vec![0; 33];
    wanted[25..27].copy_from_slice(b"xy");
    wanted[2..4].copy_from_slice(b"ab");
    assert_eq!(all(parts, Vec::new()), wanted);
}

#[test]
fn a_cut_part_is_zero_again_and_not_whole() {
    let mut parts = Parts::new(Sizes::Equal(10));
    parts.write(0, &[7; 25]).unwrap();
    parts.set_length(4).unwrap();
    parts.set_length(12).unwrap();
    assert_eq!(parts.take_whole().len(), 0);
    assert_eq!(all(parts, Vec::new()), [vec![7; 4], vec![0; 8]].concat());
}

#[test]
fn what_is_away_is_not_changed() {
    let mut parts = Parts::new(Sizes::Equal(10));
    parts.write(0, &[7; 15]).unwrap();
    assert_eq!(parts.take_whole().len(), 1);
    assert_eq!(parts.write(9, b"x"), Err(NotHere::Away));
    assert_eq!(parts.read(0, &mut [0; 3]), Err(NotHere::Away));
    assert_eq!(parts.set_length(5), Err(NotHere::Away));
    assert_eq!(parts.set_length(0), Err(NotHere::Away));
    parts.set_length(10).unwrap();
    assert_eq!(parts.write(10 * PARTS_MAX, b"x"), Err(NotHere::TooLong));
    for part in 1..=OPEN_MAX as u64 {
        parts.write(part * 20, b"x").unwrap();
    }
    assert_eq!(parts.write(1000, b"x"), Err(NotHere::Scattered));
}

#[test]
fn parts_of_a_file_of_unknown_size_grow() {
    let sizes = Sizes::Doubling(10);
    let mut begin = 0;
    for number in 0..PARTS_MAX {
        let size = 10 << (number / STEP);
        assert_eq!(sizes.size_of(number), (size, begin), "{number}");
        for at in [begin, begin + size - 1] {
            assert_eq!(sizes.part_at(at), (number, begin), "{number} {at}");
        }
        begin += size;
        assert_eq!(sizes.count(begin), number + 1);
    }
    // With parts of 8 MiB the largest object of Amazon S3 fits, and no part is larger than one may be.
    let (size, at) = Sizes::Doubling(8 << 20).size_of(PARTS_MAX - 1);
    assert!(size + at > 5 << 40 && size <= 5 << 30, "{size} {at}");
    let bytes: Vec<u8> = (0..21_037_u32).map(|n| (n ^ (n >> 8)) as u8).collect();
    let (mut parts, mut sent) = (Parts::new(sizes), Vec::new());
    for (number, piece) in bytes.chunks(77).enumerate() {
        parts.write(number as u64 * 77, piece).unwrap();
        sent.extend(parts.take_whole());
    }
    while let Some(part) = parts.take_next() {
        sent.push(part);
    }
    let lengths: Vec<usize> = sent.iter().map(|(_, part)| part.len()).collect();
    assert_eq!((lengths.len(), lengths[999], lengths[1000], lengths[1551]), (1552, 10, 20, 17));
    assert!(sent.iter().enumerate().all(|(place, (number, _))| place as u64 == *number));
    assert!(sent.iter().flat_map(|(_, part)| part.to_vec()).eq(bytes));
    assert_eq!(parts.write(begin, b"x"), Err(NotHere::TooLong));
}
