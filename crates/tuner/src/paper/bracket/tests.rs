//! The arithmetic without rounding: the published vector.

use super::*;
use alloc::vec;
use alloc::vec::Vec;

/// Rises to 32 and falls after it, half as steeply.
fn peak_at_32(n: f64) -> f64 {
    if n <= 32.0 { n } else { 32.0 - (n - 32.0) / 2.0 }
}

/// The first `count` numbers that are tried on `goodput`, without rounding, and what was expected of each.
fn tried(goodput: fn(f64) -> f64, count: usize) -> Vec<(f64, Option<f64>)> {
    let mut growth = Growth::new(2.0, 128.0);
    let mut bracket: Option<Bracket> = None;
    let mut tried = vec![(4.0, None)];
    while tried.len() < count {
        let n = tried.last().map_or(0.0, |last| last.0);
        let point = Point { n, goodput: goodput(n) };
        let inside = match bracket {
            Some(bracket) => bracket.narrowed(point),
            None => match growth.grow(point) {
                Grown::Larger { n, expected } => {
                    tried.push((n, Some(expected)));
                    continue;
                }
                Grown::Bracket(bracket) => bracket,
            },
        };
        let n = inside.candidate();
        tried.push((n, Some(inside.expected(n))));
        bracket = Some(inside);
    }
    tried
}

#[test]
fn the_published_sequence_is_met_without_rounding() {
    let want = [4.0, 8.0, 16.0, 32.0, 64.0, 44.22, 22.11, 36.67, 25.89, 28.22, 33.78, 29.67, 30.56];
    let got = tried(peak_at_32, want.len());
    for (want, (got, _)) in want.into_iter().zip(got) {
        assert!((want - got).abs() < 0.006, "{got} instead of {want}");
    }
}

#[test]
fn goodput_is_expected_to_grow_as_it_did() {
    // 52 Mbit/s each, and no more than 936 in all: 4 8 16 32 64, of which 32 and 64 tie.
    let expected: Vec<_> =
        tried(|n| (52.0 * n).min(936.0), 6).into_iter().map(|(_, expected)| expected).collect();
    let (g16, g32) = (16.0 * 52.0, 936.0);
    let growth =
        [None, Some(8.0 * 52.0), Some(16.0 * 52.0), Some(2.0 * g16), Some(g32 * g32 / g16)];
    assert_eq!(expected[..5], growth);
    assert_eq!(expected[5], Some(g32), "64 gave what 32 gave, so 128 is expected to give it too");
}

#[test]
fn within_the_bracket_a_straight_line_is_expected() {
    let point = |n, goodput| Point { n, goodput };
    let bracket =
        Bracket { left: point(4.0, 10.0), middle: point(8.0, 30.0), right: point(16.0, 22.0) };
    assert_eq!(bracket.expected(5.0), 15.0);
    assert_eq!(bracket.expected(12.0), 26.0);
    let at_the_cap = Bracket { right: bracket.middle, ..bracket };
    assert_eq!(at_the_cap.expected(8.0), 30.0, "nothing is divided by zero");
}

#[test]
fn a_tie_is_no_fall_and_no_improvement() {
    let flat = tried(|_| 7.0, 9);
    let numbers: Vec<f64> = flat.into_iter().map(|(n, _)| n).collect();
    assert_eq!(numbers[..6], [4.0, 8.0, 16.0, 32.0, 64.0, 128.0], "no fall: on to the cap");
    let first = 64.0 + 64.0 * NU;
    assert!((numbers[6] - first).abs() < 1e-9);
    assert!(numbers[7] > first && numbers[8] > numbers[7], "no improvement: 128 stays the middle");
}

#[test]
fn a_fall_at_the_second_chunk_searches_below_the_first() {
    let mut growth = Growth::new(2.0, 128.0);
    growth.grow(Point { n: 4.0, goodput: 10.0 });
    let Grown::Bracket(bracket) = growth.grow(Point { n: 8.0, goodput: 9.0 }) else {
        panic!("goodput fell")
    };
    assert_eq!(bracket.left, Point { n: 2.0, goodput: 5.0 });
    assert_eq!((bracket.middle.n, bracket.right.n), (4.0, 8.0));
}
