//! A table is held against a command line, and decides for it.

use super::Class::{Convenience, Metadata, Protects};
use super::Effect::{
    Honoured as Y, HonouredUnless, HonouredWith, InPart, Nothing as N, Refused as R,
};
use super::*;
use crate::{ExitCode, headline};
use clap::{Arg, ArgAction, Args, FromArgMatches};

const NONE: (&str, &str) = ("", "leave it out");
const ROWS: &[Row] = &[
    ssh(("jump", "-J"), Protects),
    row(("manifest", "--manifest"), Protects, &[Y, Y, R], ("hashes are not known", "b3sum")),
    row(("port", "-P"), Convenience, &[N, Y, HonouredWith(&["start"])], NONE),
    row(("start", "--start"), Convenience, &[N, N, Y], NONE),
    row(("cipher", "--cipher"), Protects, &[N, HonouredUnless(&["jump"]), Y], NONE),
    row(("keep", "-p"), Metadata, &[Y, InPart("owners are not kept"), Y], NONE),
];
/// Another program.
struct Another;

impl Others for Another {
    const OPTIONS: &'static [Other] = &[
        other(("whole", None), Value::None, "--whole", Role::Always),
        other(
            ("zip", Some('z')),
            Value::None,
            "-z (--zip)",
            Role::Idle("data are sent as they are"),
        ),
        other(
            ("-H", Some('H')),
            Value::None,
            "-H",
            Role::Refused("links become files", "leave it out"),
        ),
    ];
}

const TABLE: Table = Table {
    what: "a copy",
    ways: &[Way::Here, Way::Ssh, Way::Through],
    rows: ROWS,
    others: Another::OPTIONS,
    apart: &["paths"],
};

fn command() -> Command {
    let flag = |id: &'static str| Arg::new(id).action(ArgAction::SetTrue);
    let command = Command::new("cp").arg(Arg::new("paths")).arg(flag("jump").short('J'));
    let command = command.arg(flag("cipher").long("cipher"));
    let command = command.arg(flag("manifest").long("manifest")).arg(flag("start").long("start"));
    let port = Arg::new("port").short('P').default_value("22");
    let command = command.arg(port).arg(flag("keep").short('p'));
    OtherArgs::<Another>::augment_args(Given::augment_args(command))
}

fn checked(ids: &[&str], ways: &[Way]) -> Result<Vec<String>> {
    TABLE.check(&Given::of(ids), ways)
}

#[test]
fn a_table_lacks_what_the_command_line_has_more_and_what_is_silent() {
    assert_eq!(TABLE.lacks(&command()), Vec::<String>::new());
    let more = command().arg(Arg::new("new").long("new"));
    assert_eq!(TABLE.lacks(&more), ["new has no row"]);
    let lacks = |one: &[Row]| {
        // A table lasts as long as the program.
        let rows: &'static [Row] = Box::leak(one.into());
        let found = Table { rows, ..TABLE }.lacks(&command());
        found.into_iter().filter(|lack| !lack.ends_with("has no row")).collect::<Vec<_>>()
    };
    let jump = |flag, effects| row(("jump", flag), Protects, effects, NONE);
    let odd = row(("odd", "--odd"), Protects, &[Y, Y, Y], NONE);
    assert_eq!(lacks(&[odd]), ["odd is not typed as --odd", "no odd"]);
    assert_eq!(lacks(&[jump("-j", &[Y, Y, Y])]), ["jump is not typed as -j"]);
    assert_eq!(lacks(&[jump("-J", &[Y, Y])])[0], "-J has 2 cells");
    let partly = jump("-J", &[Y, InPart("no"), Y]);
    assert_eq!(lacks(&[partly]), ["-J is silent for a copy through ssh"]);
}

#[test]
fn an_option_is_honoured_refused_by_name_or_noted() {
    assert_eq!(checked(&["keep"], &[Way::Here]).unwrap(), Vec::<String>::new());
    assert_eq!(checked(&["keep"], &[Way::Ssh]).unwrap(), ["owners are not kept"]);
    assert_eq!(
        checked(&["port"], &[Way::Here]).unwrap(),
        ["-P has no effect on a copy within this machine"]
    );
    let error = checked(&["manifest"], &[Way::Through]).unwrap_err();
    let text =
        "--manifest is not possible for a copy between two other machines: hashes are not known";
    assert_eq!(headline(&error), text);
    assert!(error.chain().any(|link| link.to_string() == "try: b3sum"), "{error:?}");
    assert_eq!(ExitCode::of(&error, &[]), ExitCode::Usage);
}

#[test]
fn an_option_for_one_of_several_ways_is_no_mistake() {
    let ways = [Way::Here, Way::Ssh];
    assert_eq!(checked(&["jump", "port"], &ways).unwrap(), Vec::<String>::new());
    assert!(checked(&["jump"], &[Way::Here]).is_err());
    assert_eq!(checked(&["port", "start"], &[Way::Through]).unwrap(), Vec::<String>::new());
    assert!(checked(&["manifest"], &[Way::Ssh, Way::Through]).is_err());
    assert!(checked(&["cipher"], &[Way::Ssh]).unwrap().is_empty());
    assert!(checked(&["cipher", "jump"], &[Way::Ssh]).is_err());
}

#[test]
fn only_what_was_typed_is_given() {
    let of = |words: &[&str]| {
        let matches = command().try_get_matches_from(words).unwrap();
        Given::from_arg_matches(&matches).unwrap()
    };
    assert_eq!(of(&["cp", "a"]), Given::of(&["paths"]));
    assert_eq!(of(&["cp", "-P", "22", "-J", "a"]), Given::of(&["paths", "port", "jump"]));
}

#[test]
fn options_of_another_program_are_so_anyway_noted_or_refused_by_name() {
    assert_eq!(checked(&["whole"], &[Way::Here]).unwrap(), Vec::<String>::new());
    let note = "-z (--zip) has no effect: data are sent as they are";
    assert_eq!(checked(&["zip"], &[Way::Here]).unwrap(), [note]);
    let error = checked(&["-H"], &[Way::Here]).unwrap_err();
    assert_eq!(headline(&error), "no option -H: links become files");
    assert_eq!(ExitCode::of(&error, &[]), ExitCode::Usage);
}
