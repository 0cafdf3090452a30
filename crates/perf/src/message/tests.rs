//! Tests of messages and of malformed input.

use super::*;
use crate::compete::Part;

fn count() -> Message {
    Message::Count(CountReport {
        start: 0.0,
        end: 1.000_5,
        share: Share::Counted,
        streams: vec![StreamCount { bytes: u64::MAX, window: 1, unread: 0 }],
    })
}

fn end() -> Message {
    Message::End(Box::new(EndReport {
        ending: Ending::Complete,
        seconds: 10.0,
        cpu_seconds: 1.0,
        max_rss_bytes: 1,
        host_drops: 0,
        busiest: Some((Plain("hikyaku-driver".to_owned()), 0.5)),
        received: Some(Received::default()),
        sent: Some(PathReport::default()),
        standing: None,
    }))
}

#[test]
fn messages_survive_encoding_and_decoding() {
    let hello = Message::Hello(Box::new(Hello {
        version: VERSION,
        program: "hikyaku".to_owned(),
        token: "aa".to_owned(),
        plan: Plan::default(),
        policy: "fair".to_owned(),
        wire_target: None,
        pair: Some("bb".to_owned()),
    }));
    let join = Message::Join(Join { token: "aa".to_owned(), index: 1 });
    let compete = "tcp:2:cubic,hikyaku:1".parse().unwrap();
    let meet = Message::Meet(Meet { port: Some(9), token: "aa".to_owned(), compete });
    let competitors = Message::Competitors(CompetitorCount {
        start: 0.0,
        end: 1.0,
        part: Part::Together,
        bytes: vec![u64::MAX, 0],
    });
    let compete = Message::Compete;
    let messages =
        [hello, join, meet, compete, competitors, Message::Start, Message::Stop, count(), end()];
    for message in messages {
        let bytes = message.encode();
        let (prefix, body) = bytes.split_at(LENGTH_PREFIX_BYTES);
        let length = Message::length(prefix.try_into().unwrap()).unwrap();
        assert_eq!(length, body.len());
        assert_eq!(Message::decode(body).unwrap(), message);
    }
}

#[test]
fn a_hello_without_a_pair_is_compatible_with_old_versions() {
    let Message::Hello(hello) = Message::decode(HELLO).unwrap() else { panic!("no hello") };
    assert_eq!(hello.pair, None);
    let text = String::from_utf8(Message::Hello(hello).encode()).unwrap();
    assert!(!text.contains("pair"), "{text}");
}

/// A hello as a client sends it whose version has no pairs.
const HELLO: &[u8] =
    br#"{"type":"hello","version":1,"program":"p","token":"aa","plan":{"direction":"upload",
    "limit":{"seconds":1.0},"streams":1,"interval":1.0,"omit":0.0,"target":null,"kind":"ordered",
    "handling":"copy","length":1000,"stall":null},"policy":"fair","wire_target":null}"#;

#[test]
fn a_path_report_of_the_largest_test_fits_into_a_message() {
    let sample = crate::sample::PathSample {
        sent_packets: u64::MAX,
        wire_bytes: u64::MAX,
        payload_bytes: u64::MAX,
        resent_bytes: u64::MAX,
        lost_packets: u64::MAX,
        rtt_ms: 123.456_789_012_345_6,
        base_rtt_ms: 123.456_789_012_345_6,
        queue_ms: 123.456_789_012_345_6,
        ambient_loss_percent: 1.234_567_890_123_456_7,
        ..Default::default()
    };
    let streams = vec![sample; crate::plan::MAX_STREAMS as usize];
    let bytes = Message::Path(PathReport { seconds: 1.0, streams }).encode();
    assert!(bytes.len() <= MESSAGE_BYTES_MAX, "{} bytes", bytes.len());
}

#[test]
fn malformed_messages_are_errors() {
    for length in [0, MESSAGE_BYTES_MAX as u32 + 1, u32::MAX] {
        assert!(Message::length(length.to_be_bytes()).is_err());
    }
    for text in ["", "{}", "{\"type\":\"fly\"}", "{\"type\":\"count\"}", "\u{0}\u{1}", "[[[[[["] {
        assert!(Message::decode(text.as_bytes()).is_err(), "{text:?}");
    }
    // JSON cannot express not-a-number; null in its place is refused.
    assert!(Message::decode(br#"{"type":"path","seconds":null,"streams":[]}"#).is_err());
}

#[test]
fn a_rate_over_zero_time_is_zero() {
    assert_eq!(bits_per_second(8, 2.0), 32.0);
    assert_eq!(bits_per_second(8, 0.0), 0.0);
    let span = Span { start: 2.0, end: 1.0, bytes: 5 };
    assert_eq!(span.bits_per_second(), 0.0);
}

#[test]
fn control_characters_in_texts_are_replaced() {
    let text = br#"{"type":"refused","reason":"no\u001b[2J\n"}"#;
    let reason = "no\u{fffd}[2J\u{fffd}".to_owned();
    assert_eq!(
        Message::decode(text).unwrap(),
        Message::Refused { reason, lasts: RefusalKind::Always }
    );
    let name: Plain = serde_json::from_str(r#""a\u0007""#).unwrap();
    assert_eq!(name.0, "a\u{fffd}");
}
