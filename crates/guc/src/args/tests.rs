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
        &["-sync"],
        &["-sync", "-sync-level", "1"],
    ];
    for words in taken {
        let notes = line(words);
        assert!(notes.as_ref().is_ok_and(Vec::is_empty), "{words:?}: {notes:?}");
    }
    let refused = [
        &["-a"][..],
        &["-ascii"],
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

/// The names of all options of globus-url-copy that are not above, by the text of its `-help`.
const NAMES: &str = "c continue-on-error f cd create-dest r recurse q quiet vb verbose-perf dbg debugftp rst-retries \
    rst-interval stall-timeout st dumpfile dump-only relative-paths subject source-subject dest-subject tcp-bs \
    tcp-buffer-size bs block-size p parallel no-third-party-transfers nodcau no-data-channel-authentication dcsafe \
    data-channel-safe dcpriv data-channel-private off partial-offset len partial-length list stripe striped-block-size mn \
    module-name mp module-parameters smn src-module-name smp src-module-parameters dmn dst-module-name dmp \
    dst-module-parameters aa authz-assert saa src-authz-assert daa dst-authz-assert cache-aa cache-authz-assert cache-saa \
    cache-src-authz-assert cache-daa cache-dst-authz-assert pipeline pp concurrency cc nl-bottleneck nlb src-pipe dst-pipe DP \
    pipe dcstack data-channel-stack fsstack file-system-stack src-dcstack source-data-channel-stack src-fsstack \
    source-file-system-stack dst-dcstack dest-data-channel-stack dst-fsstack dest-file-system-stack src-cred sc dst-cred dc \
    data-cred alias-file usage versions";

#[test]
fn every_option_of_globus_url_copy_has_a_row_or_a_meaning() {
    let command = Line::augment_args(clap::Command::new("guc"));
    let is_known = |name: &str| {
        let mut options = command.get_arguments();
        options.any(|option| {
            let aliases = option.get_all_aliases().unwrap_or_default();
            let letter = option.get_short().map(|letter| letter.to_string());
            option.get_long() == Some(name)
                || letter.as_deref() == Some(name)
                || aliases.contains(&name)
        })
    };
    let unknown: Vec<&str> = NAMES.split_whitespace().filter(|name| !is_known(name)).collect();
    assert_eq!(unknown, [""; 0]);
}

#[test]
fn options_of_the_published_rule_select_it() {
    let connections = |words: &[&str]| {
        let words = ["guc"].iter().chain(words).chain(&["ftp://h/a", "b"]);
        let words = with_long_options(words.map(OsString::from));
        Line::try_parse_from(words).map(|line| line.args.connections()).ok()
    };
    let default = PaperOptions::default();
    let published = |options| Some(Connections::Published(options));
    let cases = [
        (&[][..], Some(Connections::Tuned(Limits { first: 16, most: 64 }))),
        (
            &["-apt-tuner", "ours", "-max-connections", "5"],
            Some(Connections::Tuned(Limits { first: 16, most: 5 })),
        ),
        (&["-apt-tuner", "paper"], published(default)),
        (&["-apt-n0", "2"], published(PaperOptions { first: 2, ..default })),
        (&["-apt-alpha", "3"], published(PaperOptions { alpha: 3.0, ..default })),
        (
            &["-apt-delta", "1"],
            published(PaperOptions { chunk: Duration::from_secs(1), ..default }),
        ),
        (&["-p", "7"], Some(Connections::Fixed { n: 7, chunk: default.chunk })),
        (&["-noapt"], Some(Connections::Fixed { n: 1, chunk: default.chunk })),
        (&["-p", "7", "-apt-tuner", "paper"], None),
    ];
    for (words, want) in cases {
        assert_eq!(connections(words), want, "{words:?}");
    }
}
