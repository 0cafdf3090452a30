//! What users type is what the lab gets.

use super::*;
use clap::CommandFactory;
use hikyaku_link::LossModel;
use hikyaku_units::Probability;
use std::time::Duration;

fn spec(options: &str) -> Result<LabSpec> {
    let words = format!("lab run {options} -- true");
    let args = LabArgs::try_parse_from(words.split_whitespace())?;
    let LabCommand::Run(run) = args.command else { panic!("not run") };
    run.lab.spec(None)
}

#[test]
fn the_definition_is_consistent() {
    LabArgs::command().debug_assert();
}

#[test]
fn the_directional_overrides_the_general() {
    let spec = spec("--rate-up 10mbit --rate 1gbit --rtt 200ms --loss 1% --burst 4").unwrap();
    assert_eq!(spec.path.up.rate, Some(Rate::from_bits_per_sec(10_000_000)));
    assert_eq!(spec.path.down.rate, Some(Rate::from_bits_per_sec(1_000_000_000)));
    assert_eq!(spec.path.up.delay, Duration::from_millis(100));
    let loss = Probability::new(0.01);
    assert_eq!(spec.path.down.loss, LossModel::Bursts { loss, mean_burst: 4.0 });
}

#[test]
fn server_rates_are_for_all_or_for_each() {
    let rate = |mbit: u64| Some(Rate::from_bits_per_sec(mbit * 1_000_000));
    assert_eq!(spec("").unwrap().servers, [None]);
    assert_eq!(spec("--servers 2 --server-rate 5mbit").unwrap().servers, [rate(5), rate(5)]);
    let each = spec("--servers 2 --server-rate 5mbit,6mbit").unwrap();
    assert_eq!(each.servers, [rate(5), rate(6)]);
    assert!(spec("--servers 3 --server-rate 5mbit,6mbit").is_err());
}

#[test]
fn mistakes_name_the_option() {
    let error = spec("--rtt long").unwrap_err().to_string();
    assert!(error.starts_with("--rtt: 'long' is not a duration"), "{error}");
    assert!(spec("--rtt-up 10ms").is_err(), "a round trip has no direction");
}
