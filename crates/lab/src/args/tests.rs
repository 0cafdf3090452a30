//! What users type is what the lab gets.

use super::*;
use clap::CommandFactory;
use hikyaku_link::LossModel;
use hikyaku_units::Probability;

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
fn what_servers_have_is_for_all_or_for_each() {
    let access = |mbit: u64, ms: u64| Access {
        rate: (mbit > 0).then(|| Rate::from_bits_per_sec(mbit * 1_000_000)),
        delay: Duration::from_millis(ms),
    };
    assert_eq!(spec("").unwrap().servers, [Access::default()]);
    let all = spec("--servers 2 --server-rate 5mbit").unwrap();
    assert_eq!(all.servers, [access(5, 0), access(5, 0)]);
    let each = spec("--servers 2 --server-rate 5mbit,6mbit --server-rtt 20ms,0").unwrap();
    assert_eq!(each.servers, [access(5, 10), access(6, 0)]);
    assert!(spec("--servers 3 --server-rtt 5ms,6ms").is_err());
    assert!(spec("--servers 3 --server-rate 5mbit,6mbit").is_err());
}

#[test]
fn mistakes_name_the_option() {
    let error = spec("--rtt long").unwrap_err().to_string();
    assert!(error.starts_with("--rtt: 'long' is not a duration"), "{error}");
    assert!(spec("--rtt-up 10ms").is_err(), "a round trip has no direction");
}
