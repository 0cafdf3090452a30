//! Halves, starts and single seconds of made-up transfers.

use super::*;

/// Intervals of 0.2 s with these megabytes.
fn steps(megabytes: &[f64]) -> Goodput {
    let interval = |(index, &count): (usize, &f64)| {
        let start = index as f64 * 0.2;
        Interval { start, end: start + 0.2, bytes: count * 1e6 }
    };
    Goodput::new(megabytes.iter().enumerate().map(interval).collect())
}

fn close(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-6 * b.abs().max(1.0)
}

#[test]
fn means_take_parts_of_intervals() {
    let goodput = steps(&[1.0, 3.0]);
    assert!(close(goodput.mean(0.0, 0.4), 80e6));
    assert!(close(goodput.mean(0.1, 0.3), 80e6));
    assert!(close(goodput.mean(0.2, 0.4), 120e6));
    assert!(close(goodput.mean(0.0, 0.8), 40e6), "silence counts");
    assert!(close(goodput.second_half(0.4), 120e6));
}

#[test]
fn the_start_is_where_a_full_second_begins() {
    let mut rates = vec![0.0, 0.0, 5.0, 20.0, 25.0];
    rates.extend([25.0; 10]);
    let goodput = steps(&rates);
    // 1 Gbit/s is 25 MB an interval. The second from 0.6 s on has 120 MB in it, that from 0.4 s 100.
    assert!(close(goodput.reaches(0.9e9, 0.0).unwrap(), 0.6));
    assert!(close(goodput.reaches(0.79e9, 0.0).unwrap(), 0.4));
    assert!(close(goodput.reaches(0.9e9, 1.5).unwrap(), 1.6));
    assert_eq!(goodput.reaches(1.1e9, 0.0), None);
    assert_eq!(steps(&[25.0; 4]).reaches(0.1e9, 0.0), None, "no whole second");
    assert_eq!(Goodput::default().reaches(1.0, 0.0), None);
}

#[test]
fn the_worst_second_is_found() {
    let mut rates = vec![2.0; 25];
    rates[12] = 1.0;
    let goodput = steps(&rates);
    assert!(close(goodput.worst_second(80e6, 0, 5), 0.1));
    assert!(goodput.worst_second(80e6, 3, 5) < 1e-9);
}

#[test]
fn sums_have_intervals_between_them() {
    let goodput = Goodput::of_sums(&[(0.0, 0.0), (1.0, 10.0), (3.0, 50.0)]);
    assert_eq!(goodput.mean(0.0, 1.0), 80.0);
    assert_eq!(goodput.mean(1.0, 2.0), 160.0);
}
