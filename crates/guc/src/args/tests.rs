//! Tests of the command line.

use super::*;
use crate::table::TABLE;
use clap::Parser;
use hikyaku_console::Way;

#[derive(Parser)]
struct Line {
    #[command(flatten)]
    args: GucArgs,
}

/// The arguments of a command line.
pub(crate) fn parse(words: &[&str]) -> GucArgs {
    let words = std::iter::once("guc").chain(words.iter().copied()).map(OsString::from);
    Line::parse_from(with_long_options(words)).args
}

#[test]
fn options_of_globus_url_copy_are_taken_or_refused_by_name() {
    let line = |words: &[&str]| {
        let words = ["guc"].iter().chain(words).chain(&["ftp://h/a", "b"]);
        let words = with_long_options(words.map(OsString::from));
        let args = Line::try_parse_from(words).map_err(anyhow::Error::from)?.args;
        TABLE.check(&args.given, &[Way::FromFtp])
    };
    let taken = [
        &["-rst"][..],
        &["-restart"],
        &["-fast"],
        &["-b"],
        &["-binary"],
        &["-v"],
        &["-verbose"],
        &["-no-g2"],
        &["-nogridftp2"],
        &["-ipv6"],
        &["-vb", "-fast", "-rst", "-p", "8"],
    ];
    for words in taken {
        let notes = line(words);
        assert!(notes.as_ref().is_ok_and(Vec::is_empty), "{words:?}: {notes:?}");
    }
    let refused = [
        &["-a"][..],
        &["-ascii"],
        &["-f", "list"],
        &["-sync"],
        &["-sync-level", "1"],
        &["-list", "ftp://h/"],
        &["-dp"],
        &["-delayed-pasv"],
        &["-rst-timeout", "5"],
        &["-t", "5"],
        &["-df", "x"],
        &["-do", "x"],
        &["-rp"],
        &["-s", "/CN=x"],
        &["-ss", "/CN=x"],
        &["-ds", "/CN=x"],
        &["-notpt"],
        &["-sbs", "1"],
        &["-udt"],
        &["-cred", "x"],
        &["-verify-checksum"],
        &["-checksum-alg", "md5"],
        &["-af", "x"],
        &["-SP", "x"],
    ];
    for words in refused {
        let text = format!("{:#}", line(words).unwrap_err());
        let name = words[0].trim_start_matches('-');
        assert!(text.contains(name) && text.contains("try: "), "{words:?}: {text}");
        assert!(!text.contains("unexpected argument"), "{words:?}: {text}");
    }
}

#[test]
fn options_with_one_dash_become_long_ones() {
    let words = ["-p", "4", "-tcp-bs", "65536", "-vb", "-n0", "8", "-p4", "--", "-vb", "-"];
    let want = ["-p", "4", "--tcp-bs", "65536", "--vb", "--n0", "8", "-p4", "--", "-vb", "-"];
    assert_eq!(with_long_options(words.map(OsString::from)), want);
}
