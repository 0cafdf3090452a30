//! Tests of the text output.

use super::*;
use crate::message::{CountReport, Share, StreamCount};
use crate::report::{CompeteEnd, FlowEnd, Role};
use crate::sample::{PathDelta, PathSample};
use crate::session::Interval;

fn one(streams: usize, path: bool) -> String {
    let count = CountReport {
        start: 9.0,
        end: 10.0,
        share: Share::Omitted,
        streams: vec![StreamCount { bytes: 125_000_000, ..Default::default() }; streams],
    };
    let sample = PathSample {
        sent_packets: 1000,
        wire_bytes: 130_000_000,
        payload_bytes: 125_000_000,
        resent_bytes: 1_250_000,
        lost_packets: 5,
        rtt_ms: 201.26,
        queue_ms: 1.04,
        ..Default::default()
    };
    let delta = PathDelta { seconds: 1.0, sample };
    let path = if path { vec![delta; streams] } else { Vec::new() };
    interval(&crate::report::interval(&Interval { count, path }, true, None))
}

#[test]
fn an_interval_is_one_line() {
    let expected = "   9.00-10.00 125.0 MB 1.00 Gbit/s 1.04 Gbit/s  201.3    1.0   0.50% omit\n";
    assert_eq!(one(1, true), expected);
}

#[test]
fn the_widest_line_has_80_columns() {
    let sample = PathSample {
        wire_bytes: 1_250_000_000_000,
        rtt_ms: 1234.56,
        queue_ms: 1234.56,
        lost_packets: 1,
        sent_packets: 1,
        ..Default::default()
    };
    let streams = vec![StreamCount { bytes: 999_900_000, ..Default::default() }];
    let count = CountReport { start: 99.0, end: 100.0, share: Share::Counted, streams };
    let path = vec![PathDelta { seconds: 100.0, sample }];
    let line = interval(&crate::report::interval(&Interval { count, path }, true, None));
    assert!(line.contains("start") && "[1] ".len() + line.trim_end().len() <= 80, "{line}");
}

#[test]
fn a_line_without_a_path_report_shows_goodput_only() {
    assert_eq!(one(1, false), "   9.00-10.00 125.0 MB 1.00 Gbit/s omit\n");
}

#[test]
fn several_streams_have_a_sum() {
    let text = one(3, true);
    let heads: Vec<&str> = text.lines().map(|line| &line[..5]).collect();
    assert_eq!(heads, ["[  1]", "[  2]", "[  3]", "[SUM]"]);
    assert!(text.lines().last().unwrap().contains("375.0 MB"));
    let widths: Vec<usize> = text.lines().map(|line| line.find(" o").unwrap()).collect();
    assert!(widths.iter().all(|width| *width == widths[0]), "{text}");
    // A server prepends the number of the test.
    assert!(text.lines().all(|line| "[1] ".len() + line.len() <= 80), "{text}");
}

#[test]
fn the_result_of_several_streams_has_lines_of_each_and_a_sum() {
    let of = |socket, bytes| Sum {
        socket,
        start: 0.0,
        end: 10.0,
        seconds: 10.0,
        bytes,
        bits_per_second: bytes as f64 * 0.8,
        retransmits: None,
        sender: true,
    };
    let stream = |bytes| StreamEnd {
        sender: Some(of(Some(1), bytes + 1_000_000)),
        receiver: Some(of(Some(1), bytes)),
    };
    let (sent, received) = (of(None, 302_000_000), of(None, 300_000_000));
    let sums = [(Some(&sent), "sender"), (Some(&received), "receiver"), (None, "whole")];
    let text = totals(&[stream(100_000_000), stream(200_000_000)], 3, &sums);
    let expected = "[  3]    0.00-10.00 101.0 MB 80.8 Mbit/s  sender\n\
        [  3]    0.00-10.00 100.0 MB 80.0 Mbit/s  receiver\n\
        [  4]    0.00-10.00 201.0 MB  161 Mbit/s  sender\n\
        [  4]    0.00-10.00 200.0 MB  160 Mbit/s  receiver\n\
        [SUM]    0.00-10.00 302.0 MB  242 Mbit/s  sender\n\
        [SUM]    0.00-10.00 300.0 MB  240 Mbit/s  receiver\n";
    assert_eq!(text, expected);
    // A single stream is its own sum.
    let text = totals(&[stream(100_000_000)], 1, &sums);
    assert_eq!(text.lines().count(), 2);
    assert!(!text.contains('['), "{text}");
}

#[test]
fn the_result_with_competitors_is_a_table() {
    let flow = |name: &str, role, alone, together, share| FlowEnd {
        name: name.to_owned(),
        role,
        alone_bits_per_second: alone,
        together_bits_per_second: together,
        share_of_equal: share,
    };
    let text = compete::end(&CompeteEnd {
        part_seconds: 10.0,
        omitted_seconds: 2.5,
        flows: vec![
            flow("tcp cubic", Role::Competitor, 9.2e8, 4.2e8, 0.9),
            flow("this test", Role::Measured, 9.1e8, 5.1e8, 1.1),
        ],
        jain: Some(0.991),
        harm: Some(0.543),
        harm_of_equal_shares: Some(0.5),
        harm_to_measured: None,
        together_bits_per_second: 9.3e8,
    });
    let expected = "- - -\n\
        three parts of 10 s: competitors alone, all together, this test alone; the first 2.5 s of each omitted\n\
        \x20                                 alone       together         share\n\
        \x20              tcp cubic     920 Mbit/s     420 Mbit/s          0.90\n\
        \x20              this test     910 Mbit/s     510 Mbit/s          1.10\n\
        all together 930 Mbit/s, Jain's index 0.991\n\
        harm to the competitors: 54.3% of their goodput alone (equal shares would do 50.0%); harm to this test: ?\n";
    assert_eq!(text, expected);
}

#[test]
fn ipv6_addresses_have_brackets() {
    assert_eq!(address("192.0.2.1", 5), "192.0.2.1:5");
    assert_eq!(address("2001:db8::1", 5), "[2001:db8::1]:5");
}
