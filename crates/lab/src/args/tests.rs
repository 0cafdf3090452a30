//! Tests of the command line.

use super::*;
use clap::CommandFactory;
use hikyaku_console::ExitCode;
use hikyaku_link::{LossModel, QueueRule};
use hikyaku_units::Probability;

fn spec(options: &str) -> Result<LabSpec> {
    match any_spec(options)? {
        Spec::Ends(spec) => Ok(*spec),
        Spec::Sites(_) => panic!("sites"),
    }
}

fn sites(options: &str) -> Result<SitesSpec> {
    match any_spec(options)? {
        Spec::Sites(spec) => Ok(spec),
        Spec::Ends(_) => panic!("no sites"),
    }
}

fn any_spec(options: &str) -> Result<Spec> {
    let words = format!("lab run {options} -- true");
    let args = LabArgs::try_parse_from(words.split_whitespace())?;
    let LabCommand::Run(run) = args.command else { panic!("not run") };
    run.lab.spec(None)
}

/// Whether an error is a mistake of the command line, found by the parser or after it.
fn is_usage(error: &anyhow::Error) -> bool {
    error.is::<clap::Error>() || ExitCode::of(error, &[]) == ExitCode::Usage
}

#[test]
fn the_command_definition_is_valid() {
    LabArgs::command().debug_assert();
}

#[test]
fn an_option_for_one_direction_overrides_that_for_both() {
    let spec = spec("--rate-up 10mbit --rate 1gbit --rtt 200ms --loss 1% --burst 4").unwrap();
    assert_eq!(spec.path.up.rate, Some(Rate::from_bits_per_sec(10_000_000)));
    assert_eq!(spec.path.down.rate, Some(Rate::from_bits_per_sec(1_000_000_000)));
    assert_eq!(spec.path.up.delay, Duration::from_millis(100));
    let loss = Probability::new(0.01);
    assert_eq!(spec.path.down.loss, LossModel::Bursts { loss, mean_burst: 4.0 });
}

#[test]
fn server_options_take_one_value_or_one_for_each() {
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
fn a_usage_error_names_the_option() {
    let error = spec("--rtt long").unwrap_err().to_string();
    assert!(error.contains("'long' for '--rtt <TIME>': 'long' is not a duration"), "{error}");
    assert!(spec("--rtt-up 10ms").is_err(), "a round-trip time has no direction");
}

#[test]
fn values_without_their_unit_are_refused() {
    for bare in ["--loss 1", "--rtt 200", "--server-rate 5", "--server-rtt 20", "--rebind-every 1"]
    {
        let error = spec(bare).unwrap_err();
        assert!(is_usage(&error));
        assert!(error.to_string().contains("needs a unit"), "{error}");
    }
}

#[test]
fn contradicting_options_are_usage_errors() {
    for line in ["--servers 3 --server-rtt 5ms,6ms", "--servers 0", "--servers 255"] {
        assert!(is_usage(&spec(line).unwrap_err()), "{line}");
    }
}

#[test]
fn every_pair_of_sites_has_the_common_link() {
    let spec = sites("--site tokyo:4 --site nict:2 --site osaka --rate 1gbit --rtt 40ms").unwrap();
    let names: Vec<_> = spec.layout.hosts().map(|host| spec.layout.name(host)).collect();
    assert_eq!(names, ["tokyo1", "tokyo2", "tokyo3", "tokyo4", "nict1", "nict2", "osaka1"]);
    assert_eq!(spec.links.len(), 3);
    for link in &spec.links {
        assert_eq!(link.up.rate, Some(Rate::from_bits_per_sec(1_000_000_000)));
        assert_eq!(link.down.delay, Duration::from_millis(20));
    }
}

#[test]
fn a_pair_may_have_its_own_link() {
    let spec = sites(
        "--site a:1 --site b:1 --site c:1 --rate 1gbit --rtt 40ms --loss 1% \
         --link a-c=100mbit,60ms,loss:0,queue:500p --link c-b=rate-up:5mbit,reorder:1%:20ms",
    )
    .unwrap();
    let [ab, ac, bc] = &spec.links[..] else { panic!("{}", spec.links.len()) };
    let loss = |percent: f64| LossModel::Bernoulli(Probability::new(percent / 100.0));
    let mbit = |mbit: u64| Some(Rate::from_bits_per_sec(mbit * 1_000_000));
    assert_eq!(
        (ab.up.rate, ab.rtt(), ab.up.loss),
        (mbit(1000), Duration::from_millis(40), loss(1.0))
    );
    assert_eq!(
        (ac.up.rate, ac.rtt(), ac.up.loss),
        (mbit(100), Duration::from_millis(60), loss(0.0))
    );
    assert_eq!((ac.queue_up, ac.queue_down), (QueueRule::Packets(500), QueueRule::Packets(500)));
    // "Up" in `c-b` is from c to b, which is the lab's "down" direction of that pair.
    assert_eq!((bc.up.rate, bc.down.rate), (mbit(1000), mbit(5)));
    assert_eq!(bc.up.reorder.extra, Duration::from_millis(20));
}

#[test]
fn the_last_setting_of_a_link_wins() {
    let spec = sites("--site a --site b --link a-b=10ms,20ms --link b-a=rtt:30ms").unwrap();
    assert_eq!(spec.links[0].rtt(), Duration::from_millis(30));
}

#[test]
fn invalid_site_options_are_usage_errors() {
    for (line, says) in [
        ("--site a", "2 to 32, not 1"),
        ("--site a --site a", "two sites 'a'"),
        ("--site a1 --site b", "not a site's name"),
        ("--site a --site b:0", "1 to 64 hosts"),
        ("--site a --site b --servers 2", "cannot be used with"),
        ("--link a-b=1gbit", "needs sites"),
        ("--site a --site b --link a-c=1gbit", "no site 'c'"),
        ("--site a --site b --link ab=1gbit", "not two sites"),
        ("--site a --site b --link a-b", "not like tokyo-nict=1gbit"),
        ("--site a --site b --link a-b=1%", "KEY:VALUE"),
        ("--site a --site b --link a-b=loss:1", "needs a unit"),
        ("--site a --site b --link a-b=speed:1gbit", "'speed' is not a setting"),
        ("--site a --site b --link a-b=1gbit,", "KEY:VALUE"),
    ] {
        let error = any_spec(line).unwrap_err();
        assert!(is_usage(&error), "{line}");
        assert!(error.to_string().contains(says), "{line}: {error}");
    }
}

#[test]
fn set_changes_all_links_before_single_ones() {
    let line = "lab set x --loss 1% --link a-b=1gbit,loss:0";
    let args = LabArgs::try_parse_from(line.split_whitespace()).unwrap();
    let LabCommand::Set(set) = args.command else { panic!("not set") };
    let changes = set.changes().unwrap();
    let said = |change: &Change| {
        let pair = change.pair.as_ref().map_or_else(|| "all".to_owned(), ToString::to_string);
        format!("{pair} {} {}", change.key, change.value)
    };
    let said: Vec<_> = changes.iter().map(said).collect();
    assert_eq!(said, ["all loss 1%", "a-b rate 1gbit", "a-b loss 0"]);
}

#[test]
fn rivals_have_the_direction_of_their_pair() {
    let spec =
        sites("--site a --site b --site c --rivals 2 --link c-a=1gbit,rivals:4:100s").unwrap();
    let said: Vec<_> = spec.rivals.iter().map(|flows| format!("{:?}", flows.unwrap())).collect();
    assert!(
        said[0].contains("from: 0, to: 1, spec: RivalSpec { flows: 2, every: 0ns }"),
        "{said:?}"
    );
    assert!(
        said[1].contains("from: 2, to: 0, spec: RivalSpec { flows: 4, every: 100s }"),
        "{said:?}"
    );
    assert!(any_spec("--rivals 2").is_err(), "the two ends have no gateways");
    let line = "lab set x --link a-b=rivals:2";
    let args = LabArgs::try_parse_from(line.split_whitespace()).unwrap();
    let LabCommand::Set(set) = args.command else { panic!("not set") };
    assert!(set.changes().is_err());
}
