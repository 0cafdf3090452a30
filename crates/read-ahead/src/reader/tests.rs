//! Patterns of reading, each with what is asked for ahead.
#![allow(
    clippy::single_range_in_vec_init,
    reason = "lists of ranges are compared, some of which have one"
)]

use super::*;

const MIB: u64 = 1 << 20;
const KIB: u64 = 1 << 10;
const WINDOW: Window = Window { bytes: 32 * MIB, portion: 2 * MIB };
const SIZE: u64 = 1 << 30;

fn read(reader: &mut Reader, from: u64, length: u64) -> Vec<Range<u64>> {
    reader.handle_read(from..from + length, WINDOW)
}

fn one(range: Range<u64>) -> Vec<Range<u64>> {
    core::iter::once(range).collect()
}

#[test]
fn a_small_file_comes_whole_at_its_first_read() {
    let mut reader = Reader::new(5 * MIB);
    assert_eq!(read(&mut reader, 3 * MIB, 4 * KIB), one(0..5 * MIB));
    assert!(read(&mut reader, 0, 128 * KIB).is_empty());
    assert!(read(&mut Reader::new(0), 0, 0).is_empty());
}

#[test]
fn the_second_read_in_order_asks_for_the_whole_window() {
    let mut reader = Reader::new(SIZE);
    assert_eq!(read(&mut reader, 0, 128 * KIB), one(0..MIB));
    assert_eq!(read(&mut reader, 128 * KIB, 128 * KIB), one(MIB..33 * MIB));
    let mut asked_to = 33 * MIB;
    let mut at = 256 * KIB;
    while at < SIZE {
        for range in read(&mut reader, at, 128 * KIB) {
            assert_eq!(range.start, asked_to, "nothing is left out or asked for twice");
            asked_to = range.end;
        }
        at += 128 * KIB;
        assert!(asked_to <= (at + WINDOW.bytes).next_multiple_of(MIB));
        assert!(asked_to + WINDOW.portion >= (at + WINDOW.bytes).min(SIZE), "the window is full");
    }
    assert_eq!(asked_to, SIZE);
}

#[test]
fn what_was_lost_is_asked_for_again() {
    let mut reader = Reader::new(SIZE);
    read(&mut reader, 0, 128 * KIB);
    read(&mut reader, 128 * KIB, 128 * KIB);
    assert!(read(&mut reader, 256 * KIB, 128 * KIB).is_empty());
    reader.handle_lost(20 * MIB);
    assert_eq!(read(&mut reader, 384 * KIB, 128 * KIB), one(20 * MIB..33 * MIB));
}

#[test]
fn threads_of_the_kernel_that_overtake_each_other_are_in_order() {
    let mut reader = Reader::new(SIZE);
    let mut asked: Vec<Range<u64>> = Vec::new();
    for pair in 0..200 {
        asked.extend(read(&mut reader, (2 * pair + 1) * 128 * KIB, 128 * KIB));
        asked.extend(read(&mut reader, 2 * pair * 128 * KIB, 128 * KIB));
    }
    assert!(matches!(reader.state, State::InOrder(_)));
    assert!(asked.windows(2).all(|pair| pair[0].end == pair[1].start));
}

#[test]
fn a_reader_from_the_middle_has_twice_what_it_read_ahead() {
    let mut reader = Reader::new(SIZE);
    let begin = 512 * MIB;
    assert!(read(&mut reader, begin, 128 * KIB).is_empty());
    let ahead = read(&mut reader, begin + 128 * KIB, 128 * KIB);
    assert_eq!(ahead.len(), 1);
    assert!(ahead[0].end <= begin + 9 * MIB + 256 * KIB, "{ahead:?}");
    let mut end = 0;
    for n in 2..200 {
        end = read(&mut reader, begin + n * 128 * KIB, 128 * KIB).last().map_or(end, |r| r.end);
    }
    assert!(end > begin + 200 * 128 * KIB + 28 * MIB, "the full window after a while");
}

#[test]
fn backward_reading_is_seen_at_its_third_read() {
    let mut reader = Reader::new(SIZE);
    let begin = 512 * MIB;
    assert!(read(&mut reader, begin, 64 * KIB).is_empty());
    assert!(read(&mut reader, begin - 64 * KIB, 64 * KIB).iter().all(|range| range.end > begin));
    let mut asked_from = None;
    for n in 2..1000 {
        for range in read(&mut reader, begin - n * 64 * KIB, 64 * KIB) {
            assert!(asked_from.is_none_or(|from| from == range.end), "{range:?}");
            assert!(range.start % MIB == 0, "{range:?}");
            asked_from = Some(range.start);
        }
    }
    assert!(asked_from.unwrap() < begin - 62 * MIB - 8 * MIB);
}

#[test]
fn equal_gaps_are_followed() {
    let mut reader = Reader::new(SIZE);
    let step = 5 * MIB;
    let mut asked: Vec<u64> = Vec::new();
    for n in 0..40 {
        let ahead = read(&mut reader, 7 + n * step, 100 * KIB);
        if n < 2 {
            assert!(ahead.len() <= 1, "no rule yet");
            continue;
        }
        for piece in ahead {
            assert_eq!((piece.start - 7) % step, 0);
            assert!(asked.last().is_none_or(|last| last + step == piece.start));
            asked.push(piece.start);
        }
        assert!(asked.contains(&(7 + (n + 1) * step)), "read {n}");
    }
}

#[test]
fn a_program_that_jumps_is_given_nothing_ahead() {
    let mut reader = Reader::new(SIZE);
    let mut rng = fastrand::Rng::with_seed(3);
    read(&mut reader, 300 * MIB, 4 * KIB);
    let asked: u64 = (0..1000)
        .map(|_| {
            let ahead = read(&mut reader, rng.u64(..SIZE - MIB), 4 * KIB);
            ahead.iter().map(|range| range.end - range.start).sum::<u64>()
        })
        .sum();
    // Two neighbours by chance look like reading in order.
    assert!(asked <= 64 * MIB, "{asked}");
}

#[test]
fn any_reads_ask_for_bytes_of_the_file_only() {
    let mut rng = fastrand::Rng::with_seed(9);
    for size in [1, 100_000, 9 * MIB + 5, SIZE] {
        let mut reader = Reader::new(size);
        let mut at = 0;
        for _ in 0..2000 {
            at = match rng.u8(..4) {
                0 => rng.u64(..size),
                1 => at.saturating_sub(64 * KIB),
                _ => at,
            };
            let end = size.min(at + 1 + rng.u64(..MIB));
            for range in reader.handle_read(at..end, WINDOW) {
                assert!(range.start < range.end && range.end <= size, "{range:?} of {size}");
            }
            at = if end == size { 0 } else { end };
        }
    }
}
