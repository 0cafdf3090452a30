//! The places where a user may set a rate: what the program says of itself, and the table of what is measured.

use hikyaku_console::{Effect, Way};
use hikyaku_copy::TABLE as COPIES;
use std::collections::BTreeSet;
use std::process::Command;

/// A place, and the ways on which it limits.
pub(super) struct Row {
    pub(super) place: &'static str,
    pub(super) kind: Kind,
}

pub(super) enum Kind {
    /// It limits what goes on each of these ways.
    Limits(&'static [&'static str]),
    /// It is no limit of its own; why.
    Else(&'static str),
}

pub(super) const UDP: &str = "a daemon by UDP";
pub(super) const TCP: &str = "a daemon by TCP";
pub(super) const PIPES: &str = "a daemon by four TCP connections";
pub(super) const MOUNT: &str = "a mount";
pub(super) const FLOWS_UDP: &str = "flows by UDP";
pub(super) const FLOWS_TCP: &str = "flows without UDP";
pub(super) const FLOWS_SSH_UDP: &str = "flows through ssh by UDP";
pub(super) const FLOWS_SSH_TCP: &str = "flows through ssh without UDP";
pub(super) const SSH_UDP: &str = "ssh and UDP";
pub(super) const SSH_TCP: &str = "ssh and TCP";
pub(super) const CHANNEL: &str = "ssh's channel";
pub(super) const SFTP: &str = "SFTP";
pub(super) const LOCAL: &str = "this machine";
pub(super) const SERVER: &str = "a server of tests";
pub(super) const WEB: &str = "a web server";
pub(super) const FTP: &str = "a server of plain FTP";
pub(super) const PART: &str = "a part of a file of plain FTP";

const fn limits(place: &'static str, ways: &'static [&'static str]) -> Row {
    Row { place, kind: Kind::Limits(ways) }
}

const fn other(place: &'static str, why: &'static str) -> Row {
    Row { place, kind: Kind::Else(why) }
}

pub(super) const CP: &str = "cp -l";
pub(super) const CP_SERVER: &str = "cp --server-rate";
pub(super) const SYNC: &str = "sync --rate";
pub(super) const SYNC_KIB: &str = "sync --bwlimit";
pub(super) const SHELL: &str = "sftp -l";
pub(super) const GET: &str = "get --limit-rate";
pub(super) const GUC: &str = "guc --rate";
pub(super) const PERF: &str = "perf -b";
pub(super) const PERF_SERVER: &str = "perf --max-rate";
pub(super) const PERF_PACKETS: &str = "perf --wire-rate";
pub(super) const PROXY: &str = "proxy --rate";
pub(super) const MOUNT_RATE: &str = "mount --rate";
pub(super) const SERVE: &str = "serve --rate";
pub(super) const KEY: &str = "max-rate= of a key";
pub(super) const SETTING: &str = "rate of the settings";

/// Gfarm and buckets need servers that not every machine has: `gfarm.rs` and `s3.rs` of these tests have them.
pub(super) static TABLE: &[Row] = &[
    limits(CP, &[LOCAL, SSH_UDP, SSH_TCP, CHANNEL, SFTP, UDP, TCP, PIPES]),
    limits(CP_SERVER, &[UDP, TCP, PIPES]),
    limits(SYNC, &[LOCAL, SSH_UDP, SFTP]),
    limits(SYNC_KIB, &[LOCAL, SSH_UDP, SFTP]),
    limits(SHELL, &[LOCAL, SSH_UDP, SSH_TCP, SFTP]),
    limits(GET, &[WEB]),
    limits(GUC, &[FTP, PART]),
    limits(PERF, &[SERVER, SSH_UDP]),
    limits(PERF_SERVER, &[SERVER]),
    limits(PERF_PACKETS, &[SERVER]),
    limits(PROXY, &[FLOWS_UDP, FLOWS_TCP, FLOWS_SSH_UDP, FLOWS_SSH_TCP]),
    limits(MOUNT_RATE, &[MOUNT]),
    limits(SERVE, &[UDP, TCP, PIPES, MOUNT, FLOWS_UDP, FLOWS_TCP]),
    limits(KEY, &[UDP, TCP, PIPES, MOUNT, FLOWS_UDP, FLOWS_TCP]),
    limits(SETTING, &[SSH_UDP, SSH_TCP, CHANNEL, SFTP, UDP, TCP, PIPES]),
    other("cp --rate", "`cp -l` by another name"),
    other("sftp --rate", "`sftp -l` by another name"),
    other("get --rate", "`get --limit-rate` by another name"),
    other("web --rate", "the option of `proxy` for the same gateway"),
    other("view --rate", "the option of `mount` for the same connections"),
    other("status --rate", "the same; some hundred bytes go to each server"),
    other("ls --rate", "the same; names go, and no contents"),
    other("perf --sweep", "each of the rates is that of a test with -b"),
    other("cp --policy", "fixed:RATE is sent whatever is lost: no limit, as operators.md says"),
    other("perf --policy", "the same"),
    other("policy of the settings", "the same"),
    other("perf --min", "the least that the test must receive"),
];

/// Each place with each of its ways.
pub(super) fn all() -> impl Iterator<Item = (&'static str, &'static str)> {
    TABLE.iter().flat_map(|row| match row.kind {
        Kind::Limits(ways) => ways.iter().map(|way| (row.place, *way)).collect(),
        Kind::Else(why) => {
            assert!(!why.is_empty());
            Vec::new()
        }
    })
}

/// On each way where `cp` keeps a rate, one is measured, or another test has the servers.
pub(super) fn assert_ways_of_copies() {
    let rates = |id: &str| ["limit", "server_rate"].contains(&id);
    for option in COPIES.rows.iter().filter(|option| rates(option.id)) {
        let place = if option.id == "limit" { CP } else { CP_SERVER };
        for way in COPIES.ways {
            let measured = match way {
                Way::Here => LOCAL,
                Way::Ssh | Way::Through => SSH_UDP,
                Way::Sftp => SFTP,
                Way::FromDaemons | Way::ToDaemons => UDP,
                Way::FromGfarm | Way::ToGfarm | Way::FromBucket | Way::ToBucket => continue,
                Way::FromWeb | Way::FromFtp | Way::ToFtp => continue,
                Way::FromGridFtp | Way::ToGridFtp | Way::FromHost | Way::ToHost => continue,
                way => panic!("copies know no way {}", way.name()),
            };
            if COPIES.effect(option, *way, &[]) == Effect::Honoured {
                assert!(all().any(|cell| cell == (place, measured)), "{place}: {way:?}");
            }
        }
    }
}

fn said(arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_hikyaku")).args(arguments).output().unwrap();
    assert!(output.status.success(), "{arguments:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// The names of values that are rates.
const VALUES: [&str; 5] = ["<RATE>", "<RATES>", "<LIMIT>", "<KIB>", "<POLICY>"];
/// What help says of rates, whatever the value is called.
const UNITS: [&str; 5] = ["kbit/s", "KiB a second", "bits a second", "fixed:RATE", "300mbit"];

/// All places that the program names: options of its commands, options of keys, and settings.
pub(super) fn of_program() -> BTreeSet<String> {
    let mut places = BTreeSet::new();
    let help = said(&["--help"]);
    // The lab's rates are those of links that it emulates.
    for verb in crate::common::commands(&help).iter().filter(|verb| *verb != "lab") {
        let help = said(&[verb, "--help"]);
        let mut option = None;
        let options = help.lines().skip_while(|line| !line.starts_with("Options:"));
        for line in options
            .take_while(|line| line.starts_with(' ') || line.is_empty() || line.ends_with(':'))
        {
            if line.trim_start().starts_with('-') && line.starts_with("  ") {
                option = line.split_whitespace().next().map(|name| name.trim_end_matches(','));
            }
            let is_rate = VALUES.iter().chain(&UNITS).any(|word| line.contains(word));
            if let Some(option) = option.filter(|_| is_rate) {
                places.insert(format!("{verb} {option}"));
            }
            if verb == "serve" && line.contains("=RATE") {
                let options = line.split(['[', ']', ',']).filter(|word| word.ends_with("=RATE"));
                places.extend(options.map(|word| {
                    let name = word.trim().trim_end_matches("RATE");
                    format!("{name} of a key")
                }));
            }
        }
    }
    for line in said(&["config", "list"]).lines() {
        if UNITS.iter().any(|word| line.contains(word)) {
            let name = line.split(' ').next().unwrap_or_default();
            places.insert(format!("{name} of the settings"));
        }
    }
    places
}
