//! Lines for people and for programs.

use super::*;
use hikyaku_transfer::FailureKind;

const TALLY: Tally = Tally {
    total_files: 10,
    total_bytes: 4_000_000_000,
    is_counted: true,
    files: 3,
    bytes: 1_000_000_000,
    kept_bytes: 250_000_000,
};

#[test]
fn a_line_says_how_far_and_how_long() {
    let rate = Some(Rate::from_bits_per_sec(800_000_000));
    let text = line(&TALLY, rate, &PathFigures::default());
    assert_eq!(text, " 25 %  1.00 GB of 4.00 GB  3/10 files  800 Mbit/s  0:30 left");
    let (sent_packets, lost_packets, limited_by) = (1000, 12, LimitedBy::Link);
    let path = PathFigures { sent_packets, lost_packets, limited_by, ..PathFigures::default() };
    let text = line(&TALLY, rate, &path);
    assert!(text.ends_with("0:30 left  loss 1.2 %  limited by the link"), "{text}");
    assert_eq!((cut(&text, 9), cut("short", 80)), (" 25 %  1", "short"));
    assert_eq!(clock(3725.0), "1:02:05");
}

#[test]
fn the_last_word_counts_what_was_sent() {
    let text = summary(&TALLY, Duration::from_secs(10));
    assert_eq!(text, "3 files, 750.0 MB in 10.0 s, 600 Mbit/s; 250.0 MB needed not be sent");
}

#[test]
fn events_are_lines_of_json() {
    let line = Event::end(&TALLY, Duration::from_secs(10), 0, None).line();
    let value: serde_json::Value = serde_json::from_str(&line).unwrap();
    assert_eq!((&value["event"], &value["version"]), (&"end".into(), &1.into()));
    assert_eq!(value["bits_per_second"], 600_000_000);
    let (sent_packets, lost_packets, limited_by) = (200, 3, LimitedBy::Source);
    let path = PathFigures { sent_packets, lost_packets, limited_by, ..PathFigures::default() };
    let line = Event::progress(&TALLY, Duration::from_secs(10), None, &path).line();
    let value: serde_json::Value = serde_json::from_str(&line).unwrap();
    assert_eq!((&value["lost_percent"], &value["limited_by"]), (&1.5.into(), &"source".into()));
    let line = Event::Failure {
        why: "far:a: gone\nb",
        host: Some("far"),
        path: "a",
        kind: FailureKind::NotFound,
        text: "gone\nb",
    }
    .line();
    let value: serde_json::Value = serde_json::from_str(&line).unwrap();
    assert_eq!((&value["host"], &value["path"]), (&"far".into(), &"a".into()), "{line}");
    assert_eq!((&value["kind"], &value["text"]), (&"not_found".into(), &"gone\nb".into()));
    let line = Event::end(&TALLY, Duration::from_secs(1), 6, Some("gone")).line();
    let value: serde_json::Value = serde_json::from_str(&line).unwrap();
    assert_eq!((&value["exit_code"], &value["error"]), (&6.into(), &"gone".into()));
}

#[test]
fn a_line_of_figures_is_about_its_interval() {
    let before = PathFigures {
        sent_packets: 1000,
        lost_packets: 10,
        resent_bytes: 14_440,
        packet: 1444,
        rtt: 0.2,
        queue: 0.0,
        limited_by: LimitedBy::Link,
    };
    let now = PathFigures {
        sent_packets: 2000,
        lost_packets: 20,
        resent_bytes: 43_320,
        rtt: 0.2015,
        queue: 0.0015,
        ..before
    };
    assert_eq!(
        stats_line(&now, &before, 100_000_000, Duration::from_secs(1)),
        "800 Mbit/s, re-sent 20 packets, lost 1.00 %, RTT 201.5 ms, queue 1.5 ms"
    );
}
