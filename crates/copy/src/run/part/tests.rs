//! Which parts a command line makes, and what is known of them before anybody is asked.

use super::*;
use crate::args::CopyArgs;
use clap::Parser;

#[derive(Parser)]
struct Command {
    #[command(flatten)]
    args: CopyArgs,
}

#[test]
fn a_rate_that_is_set_for_a_host_counts_as_a_limit() {
    let settings =
        Settings::parse("[host.slow]\nrate = \"100m\"\n", &hikyaku_reach::settings::keys());
    let settings = settings.unwrap();
    let limit = |words: &str| {
        let args = Command::try_parse_from(words.split(' ')).unwrap().args;
        let copy = &args.plan(&settings).unwrap();
        let parts = parts(copy.sources.clone(), copy.target.clone()).unwrap();
        let (attempt, claims, scope) = (Attempt::First, Claimant::only(), &Scope::default());
        let (settings, server) = (&settings, None);
        let turn = Turn { copy, settings, attempt, claims, scope, server };
        parts[0].options(&turn).unwrap().limit
    };
    assert_eq!(limit("cp a slow:"), Some(100_000_000));
    assert_eq!(limit("cp slow:a ."), Some(100_000_000));
    assert_eq!(limit("cp -l 8000 slow:a ."), Some(8_000_000));
    assert_eq!(limit("cp a fast:"), None);
}

fn shapes(words: &[&str]) -> Vec<String> {
    let mut all: Vec<Location> =
        words.iter().map(|word| Location::parse(word.as_ref()).unwrap()).collect();
    let target = all.pop().unwrap();
    let name = |part: &Part| match part {
        Part::Put { sources, .. } => format!("put {}", sources.len()),
        Part::Get { sources, .. } => format!("get {}", sources.len()),
        Part::Here { sources, .. } => format!("here {}", sources.len()),
        Part::Through { sources, .. } => format!("through {}", sources.len()),
    };
    parts(all, target).unwrap().iter().map(name).collect()
}

#[test]
fn parts_may_meet_unless_all_names_are_known_and_differ() {
    let meet = |words: &[&str], options: &Options| {
        let mut all: Vec<Location> =
            words.iter().map(|word| Location::parse(word.as_ref()).unwrap()).collect();
        let target = all.pop().unwrap();
        may_meet(&parts(all, target).unwrap(), options)
    };
    let plain = Options::default();
    for apart in [&["h:a", "i:b", "."][..], &["a", "h:x/b/", "."], &["h:a", "h:a", "."]] {
        assert!(!meet(apart, &plain), "{apart:?}");
    }
    for together in [
        &["h:a", "i:b", "h:a", "."][..],
        &["h:x/a", "i:y/a/", "."],
        &["a", "h:?", "."],
        &["h:", "b", "."],
        &["h:a/.", "i:b", "j:"],
        &["h:~you", "i:b", "."],
    ] {
        assert!(meet(together, &plain), "{together:?}");
    }
    let listed = Options { files: vec![b"f".to_vec()], ..Options::default() };
    assert!(meet(&["h:a", "i:b", "."], &listed));
    assert!(!meet(&["h:a", "."], &listed));
}

#[test]
fn sources_of_one_machine_go_together() {
    assert_eq!(shapes(&["a", "b", "h:"]), ["put 2"]);
    assert_eq!(shapes(&["h:a", "h:b", "i:c", "."]), ["get 2", "get 1"]);
    assert_eq!(shapes(&["a", "h:b", "c", "."]), ["here 1", "get 1", "here 1"]);
    assert_eq!(shapes(&["h:a", "b", "i:"]), ["through 1", "put 1"]);
}
