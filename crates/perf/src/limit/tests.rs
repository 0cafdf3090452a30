//! Tests of the verdict.

use super::*;

#[test]
fn verdicts_have_a_fixed_precedence() {
    let link = Facts { cruise_share: 0.9, queue_ms: 2.0, lost_packets: 5, ..Facts::default() };
    let busy = Facts { busiest_share: 0.95, ..link.clone() };
    let blocked = Facts { blocked_share: 0.5, ..busy.clone() };
    let target = Facts { target_share: Some(0.99), ..blocked.clone() };
    for (facts, verdict) in [
        (Facts::default(), LimitedBy::Application),
        (link.clone(), LimitedBy::Link),
        (Facts { queue_ms: 0.0, ..link.clone() }, LimitedBy::Link),
        (Facts { queue_ms: 0.0, lost_packets: 0, ..link.clone() }, LimitedBy::Application),
        // A sender that is still in start-up has not reached the capacity of the path.
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
fn text_and_json_use_the_same_names() {
    for verdict in [
        LimitedBy::Target,
        LimitedBy::Receiver,
        LimitedBy::Cpu,
        LimitedBy::Link,
        LimitedBy::Application,
    ] {
        assert_eq!(serde_json::to_value(verdict).unwrap(), verdict.to_string());
    }
}

#[test]
fn the_payload_target_is_multiplied_by_the_streams() {
    let plan = Plan { target: Some(1_000_000), streams: 4, ..Plan::default() };
    assert_eq!(payload_target(&plan), Some(Rate::from_bits_per_sec(4_000_000)));
    assert_eq!(payload_target(&Plan::default()), None);
}
