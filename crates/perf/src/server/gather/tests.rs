//! Tests of refusals and their texts.

use super::*;
use crate::plan::{Plan, Stall};
use hikyaku_units::Rate;

const RULES: Rules = Rules {
    competitors: Competitors::Allowed,
    stalls: Stalls::Refused,
    tests: 4,
    time: None,
    rate: None,
    memory: None,
};

fn hello(plan: Plan) -> Hello {
    Hello {
        version: Hello::version(&plan),
        program: "hikyaku 9".to_owned(),
        token: String::new(),
        plan,
        policy: String::new(),
        wire_target: None,
        pair: None,
    }
}

#[test]
fn unsupported_versions_and_invalid_plans_are_refused() {
    let first = Hello { version: FIRST_VERSION, ..hello(Plan::default()) };
    assert_eq!(refusal(&first, &RULES), None);
    for version in [0, VERSION + 1] {
        let other = Hello { version, ..first.clone() };
        assert!(refusal(&other, &RULES).is_some_and(|reason| reason.contains("hikyaku 9")));
    }
    let many = hello(Plan { streams: 1000, ..Plan::default() });
    assert!(refusal(&many, &RULES).is_some_and(|text| text.contains("-P")));
}

#[test]
fn a_plan_with_competitors_needs_a_version_that_old_servers_refuse() {
    assert_eq!(Hello::version(&Plan::default()), FIRST_VERSION);
    let plan = Plan { compete: "tcp:2".parse().ok(), ..Plan::default() };
    assert!(Hello::version(&plan) > FIRST_VERSION);
}

#[test]
fn a_refusal_names_the_option_that_sets_the_limit() {
    let (competing, none) = ("tcp:2".parse().ok(), Plan::default());
    let competing = Plan { compete: competing, ..none.clone() };
    let stalled = Plan { stall: Some(Stall { seconds: 1.0, at: 0.0 }), ..none.clone() };
    let back = Plan { direction: Direction::Download, ..stalled.clone() };
    let no_competitors = Rules { competitors: Competitors::Refused, ..RULES };
    let slow = Rules { rate: Some(Rate::from_bits_per_sec(1_000_000)), ..RULES };
    let short = Rules { time: Some(9.0), ..RULES };
    let just = Rules { time: Some(10.0), ..RULES };
    let patient = Rules { stalls: Stalls::Allowed, ..RULES };
    for (plan, rules, option) in [
        (&competing, RULES, None),
        (&competing, no_competitors, Some("--no-compete")),
        (&competing, slow, Some("--max-rate")),
        (&competing, just, Some("--max-time")),
        (&none, slow, None),
        (&none, short, Some("--max-time")),
        (&none, just, None),
        (&stalled, RULES, Some("--allow-stall")),
        (&stalled, patient, None),
        // In a download the reader that pauses is the client's.
        (&back, RULES, None),
    ] {
        let refusal = refusal(&hello(plan.clone()), &rules);
        match option {
            Some(option) => {
                assert!(refusal.is_some_and(|text| text.contains(option)), "{option}")
            }
            None => assert_eq!(refusal, None),
        }
    }
}
