//! Verdicts from facts.

use super::*;

#[test]
fn facts_have_their_order() {
    let link = Facts { cruise_share: 0.9, queue_ms: 2.0, lost_packets: 5, ..Facts::default() };
    let busy = Facts { busiest_share: 0.95, ..link.clone() };
    let blocked = Facts { blocked_share: 0.5, ..busy.clone() };
    let target = Facts { target_share: Some(0.99), ..blocked.clone() };
    for (facts, verdict) in [
        (Facts::default(), LimitedBy::Application),
        (link.clone(), LimitedBy::Link),
        (Facts { queue_ms: 0.0, ..link.clone() }, LimitedBy::Link),
        (Facts { queue_ms: 0.0, lost_packets: 0, ..link.clone() }, LimitedBy::Application),
        // A sender that still looks for the capacity has not met it.
        (Facts { cruise_share: 0.1, ..link.clone() }, LimitedBy::Application),
        (busy, LimitedBy::Cpu),
        (blocked.clone(), LimitedBy::Receiver),
        (target, LimitedBy::Target),
        (Facts { target_share: Some(0.5), ..blocked }, LimitedBy::Receiver),
        (Facts { target_share: Some(0.5), ..link }, LimitedBy::Link),
    ] {
        assert_eq!(facts.verdict(), verdict, "{facts:?}");
    }
}

#[test]
fn names_are_the_same_everywhere() {
    for verdict in [
        LimitedBy::Target,
        LimitedBy::Receiver,
        LimitedBy::Cpu,
        LimitedBy::Link,
        LimitedBy::Application,
    ] {
        assert_eq!(serde_json::to_value(&verdict).unwrap(), verdict.to_string());
    }
}

#[test]
fn a_target_is_of_each_stream() {
    let plan = Plan { target: Some(1_000_000), streams: 4, ..Plan::default() };
    assert_eq!(payload_target(&plan), Some(Rate::from_bits_per_sec(4_000_000)));
    assert_eq!(payload_target(&Plan::default()), None);
}
