//! Bytes of any order become segments, and heads that a later request completes.

use super::*;
use std::ops::Range;
use std::slice::from_ref;

#[test]
fn bytes_in_any_order_become_segments_and_the_last_one_is_held_back() {
    let size = 2 * SEGMENT + 100;
    let content: Vec<u8> = (0..size).map(|at| (at % 251) as u8).collect();
    let pieces =
        |length: u64| (0..size).step_by(length as usize).map(move |at| at..size.min(at + length));
    let in_order: Vec<_> = pieces(100_000).collect();
    let backwards: Vec<_> = pieces(300_000).collect::<Vec<_>>().into_iter().rev().collect();
    let two = [0..SEGMENT + 7, SEGMENT + 7..size].to_vec();
    for order in [in_order, backwards, two] {
        let all = [0..size, size..size];
        let geometry = Geometry::new(size).unwrap();
        let mut segments = Segments::new(geometry, &Asked::whole(&all));
        let mut passed = Vec::new();
        let mut each = |segment: Segment<'_>| {
            let at = (u64::from(segment.index.0) * SEGMENT) as usize;
            assert!(segment.bytes == &content[at..content.len().min(at + SEGMENT as usize)]);
            passed.push(segment.index.0);
        };
        for piece in &order {
            let bytes = &content[piece.start as usize..piece.end as usize];
            segments.add(piece.start, bytes, &mut each);
        }
        // Behind the end.
        segments.add(size, b"x", &mut each);
        let before = passed.len();
        let mut each = |segment: Segment<'_>| passed.push(segment.index.0);
        segments.end(&mut each);
        segments.end(&mut each);
        assert_eq!((before, passed.last()), (2, Some(&2)));
        passed.sort_unstable();
        assert_eq!(passed, [0, 1, 2]);
    }
}
#[test]
fn a_request_goes_on_behind_the_head_that_another_one_has_left() {
    let size = 2 * SEGMENT + 100;
    let content: Vec<u8> = (0..size).map(|at| (at % 251) as u8).collect();
    let bytes = |range: Range<u64>| &content[range.start as usize..range.end as usize];
    let (geometry, heads, one) = (Geometry::new(size).unwrap(), Heads::default(), SegmentIndex(1));
    let mut none = |_: Segment<'_>| panic!("no segment is whole");
    let all = SEGMENT..size;
    let mut first = Segments::new(geometry, &Asked { ranges: from_ref(&all), heads: Some(&heads) });
    first.add(SEGMENT, bytes(SEGMENT..SEGMENT + 300), &mut none);
    assert_eq!(heads.length(one), 300);
    // Another request takes over, while the first one still receives.
    let rest = SEGMENT + 300..size;
    let asked = Asked { ranges: from_ref(&rest), heads: Some(&heads) };
    let mut second = Segments::new(geometry, &asked);
    first.add(SEGMENT + 300, bytes(SEGMENT + 300..SEGMENT + 350), &mut none);
    second.add(SEGMENT + 300, bytes(SEGMENT + 300..SEGMENT + 400), &mut none);
    drop(first);
    assert_eq!((heads.length(one), heads.segments()), (400, vec![one]));
    let mut passed = Vec::new();
    let mut each = |segment: Segment<'_>| {
        let range = geometry.range(segment.index).unwrap();
        assert_eq!(SegmentHash::new(geometry, segment.index, bytes(range)), Some(segment.hash));
        passed.push(segment.index);
    };
    second.add(SEGMENT + 400, bytes(SEGMENT + 400..size), &mut each);
    second.end(&mut each);
    assert_eq!(passed, [one, SegmentIndex(2)]);
    // Its head is not here any more: the segment is not complete without it.
    heads.remove(one);
    let mut third = Segments::new(geometry, &asked);
    third.add(SEGMENT + 300, bytes(SEGMENT + 300..2 * SEGMENT), &mut none);
    assert_eq!(heads.length(one), 0);
}

#[test]
fn a_segment_that_is_held_back_is_a_head_but_for_its_last_byte() {
    let (geometry, heads) = (Geometry::new(100).unwrap(), Heads::default());
    let all = 0..100;
    let asked = Asked { ranges: from_ref(&all), heads: Some(&heads) };
    for is_ended in [true, false] {
        let mut segments = Segments::new(geometry, &asked);
        segments.add(0, &[1; 100], &mut |_| panic!("it is held back"));
        assert_eq!(heads.length(SegmentIndex(0)), 0);
        if is_ended {
            segments.end(&mut |_| ());
        }
        drop(segments);
        let length = if is_ended { 0 } else { 99 };
        assert_eq!(heads.length(SegmentIndex(0)), length);
    }
}

#[test]
fn a_segment_that_came_out_of_order_has_no_head() {
    let (geometry, heads) = (Geometry::new(SEGMENT).unwrap(), Heads::default());
    let all = 0..SEGMENT;
    let mut segments =
        Segments::new(geometry, &Asked { ranges: from_ref(&all), heads: Some(&heads) });
    segments.add(10, &[1; 10], &mut |_| ());
    assert_eq!((heads.length(SegmentIndex(0)), heads.segments()), (0, vec![]));
    segments.add(0, &[1; 10], &mut |_| ());
    assert_eq!(heads.length(SegmentIndex(0)), 20);
}
