//! The search with whole numbers.

use super::*;
use crate::sample::LimitedBy;
use alloc::vec;
use alloc::vec::Vec;

const RTT: Duration = Duration::from_millis(10);

/// A sample that has all that was asked for, at `goodput` bytes a second.
fn done(asked: &Decision, goodput: f64) -> Sample {
    let Next::Bytes(bytes) = asked.next else { panic!("the paper asks for bytes") };
    Sample {
        n: asked.n,
        bytes,
        elapsed: Duration::from_secs_f64(bytes.bytes() as f64 / goodput),
        limited_by: LimitedBy::Network,
    }
}

fn peak_at_32(n: u32) -> f64 {
    let n = f64::from(n);
    1e6 * if n <= 32.0 { n } else { 32.0 - (n - 32.0) / 2.0 }
}

/// The numbers that are tried until the search ends, and what it ends with.
fn search(options: &PaperOptions, goodput: fn(u32) -> f64) -> (Vec<u32>, u32) {
    let mut paper = Paper::new(options, RTT);
    let mut asked = paper.start();
    let mut tried = vec![];
    while paper.found().is_none() {
        tried.push(asked.n);
        asked = paper.handle_sample(&done(&asked, goodput(asked.n)));
        assert!(tried.len() < 64, "the search ends");
    }
    (tried, asked.n)
}

#[test]
fn whole_numbers_are_tried_until_nothing_is_left_to_try() {
    let (tried, found) = search(&PaperOptions::default(), peak_at_32);
    assert_eq!(tried, [4, 8, 16, 32, 64, 44, 22, 37, 26, 28, 34, 30, 33, 31]);
    assert_eq!(found, 32);
}

#[test]
fn the_first_chunk_is_what_the_windows_carry_in_delta() {
    let paper = Paper::new(&PaperOptions::default(), RTT);
    // 4 x 64 KiB / 10 ms x 3 s: 79 MB.
    assert_eq!(paper.start().next, Next::Bytes(DataSize::from_bytes(78_643_200)));
}

#[test]
fn chunks_take_delta_where_goodput_is_as_expected() {
    let mut paper = Paper::new(&PaperOptions::default(), RTT);
    let asked = paper.start();
    let asked = paper.handle_sample(&done(&asked, 4e6));
    assert_eq!(asked.next, Next::Bytes(DataSize::from_bytes(24_000_000)), "alpha G Delta");
    let asked = paper.handle_sample(&done(&asked, 6e6));
    assert_eq!(asked.next, Next::Bytes(DataSize::from_bytes(27_000_000)), "G G / G' Delta");
}

#[test]
fn a_rise_up_to_the_cap_is_searched_below_it() {
    let options = PaperOptions { cap: 16, ..PaperOptions::default() };
    let (tried, found) = search(&options, peak_at_32);
    assert_eq!(tried[..3], [4, 8, 16]);
    assert!(tried.iter().all(|&n| n <= 16));
    assert_eq!(found, 16);
}

#[test]
fn a_number_that_is_best_at_the_start_is_found_below_it() {
    let (tried, found) = search(&PaperOptions::default(), |n| 1e6 / f64::from(n));
    assert_eq!(tried[..2], [4, 8]);
    assert_eq!(tried[2..], [6, 5, 3]);
    assert_eq!(found, 3, "2 is the left end, which is never tried");
}

#[test]
fn what_is_not_granted_is_the_cap() {
    let mut paper = Paper::new(&PaperOptions::default(), RTT);
    let mut asked = paper.start();
    let mut largest = 0;
    for _ in 0..40 {
        // The server takes ten connections.
        let n = asked.n.min(10);
        asked = paper.handle_sample(&Sample { n, ..done(&asked, peak_at_32(n)) });
        largest = largest.max(asked.n);
    }
    assert_eq!(largest, 16);
    assert_eq!(paper.found(), Some(10));
}

#[test]
fn a_found_number_stays_whatever_comes() {
    let (_, found) = search(&PaperOptions::default(), peak_at_32);
    let mut paper = Paper::new(&PaperOptions::default(), RTT);
    let mut asked = paper.start();
    for chunk in 0..40 {
        let goodput = if chunk < 20 { peak_at_32(asked.n) } else { 1e5 };
        asked = paper.handle_sample(&done(&asked, goodput));
    }
    assert_eq!((asked.n, asked.phase), (found, Phase::Found));
    assert_eq!(asked.next, Next::Bytes(DataSize::from_bytes(300_000)), "chunks still take Delta");
}
