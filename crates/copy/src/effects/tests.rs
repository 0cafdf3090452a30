//! The table is complete, and says the same of all options of a class.

use super::*;
use crate::args::CopyArgs;
use clap::{Args, Command};
use std::collections::BTreeSet;

/// What an option of its own command would be: a copy has sources and a target.
const ALONE: [&str; 5] = ["paths", "unfinished", "abandon", "help", "version"];

#[test]
fn every_option_has_a_row_and_every_row_an_option() {
    let mut command = CopyArgs::augment_args(Command::new("cp"));
    command.build();
    let known: BTreeSet<&str> = command
        .get_arguments()
        .map(|argument| argument.get_id().as_str())
        .filter(|id| !ALONE.contains(id))
        .collect();
    let rows: BTreeSet<&str> = OPTIONS.iter().map(|row| row.id).collect();
    assert_eq!(known, rows);
    for row in &OPTIONS {
        let argument =
            command.get_arguments().find(|argument| argument.get_id() == row.id).unwrap();
        let flag = row.flag.trim_start_matches('-');
        let is_its = argument.get_long() == Some(flag)
            || argument.get_short().is_some_and(|short| flag == short.to_string());
        assert!(is_its, "{} is not typed as {}", row.id, row.flag);
    }
}

#[test]
fn what_protects_is_honoured_or_refused_and_nothing_is_silent() {
    for row in &OPTIONS {
        for way in Way::ALL {
            let checked = check(&Given::of(&[row.id]), &[way]);
            match (row.effect(way, &[row.id]), row.class) {
                (Effect::Honoured, _) => assert_eq!(checked.unwrap(), Vec::<String>::new()),
                (Effect::Refused | Effect::Nothing, Class::Protects) => {
                    let error = checked.unwrap_err();
                    assert!(error.to_string().contains(row.flag), "{error}");
                    let remedy = error.chain().nth(1).map(ToString::to_string);
                    assert!(remedy.is_some_and(|text| text.starts_with("try: ")), "{error:?}");
                    assert_eq!(crate::exit_code(&error), Some(hikyaku_console::ExitCode::Usage));
                }
                (Effect::Nothing, Class::Convenience) | (Effect::InPart(_), Class::Metadata) => {
                    assert_eq!(checked.unwrap().len(), 1, "{} {way:?}", row.id);
                }
                (effect, class) => panic!("{} {way:?}: {effect:?} of {class:?}", row.id),
            }
        }
    }
}

#[test]
fn an_option_for_one_of_several_ways_is_no_mistake() {
    let ways = [Way::Here, Way::Ssh];
    assert_eq!(
        check(&Given::of(&["jump", "port", "policy"]), &ways).unwrap(),
        Vec::<String>::new()
    );
    assert!(check(&Given::of(&["jump"]), &[Way::Here]).is_err());
    let started = Given::of(&["jump", "start_servers", "remote_path"]);
    assert_eq!(check(&started, &[Way::FromDaemons]).unwrap(), Vec::<String>::new());
    assert!(check(&Given::of(&["manifest"]), &[Way::Ssh, Way::Through]).is_err());
}
