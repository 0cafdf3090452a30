//! What each option of `hikyaku cp` does on each way, and which ways a copy goes.

use crate::guests::Guests;
use hikyaku_console::Class::{Convenience, Metadata, Protects};
use hikyaku_console::Effect::{
    self, Honoured as Y, HonouredUnless, HonouredWith, InPart, Nothing as N, Refused as R,
};
use hikyaku_console::{BY_SSH, LEAVE, Others, Row, Table, Way, all, row, ssh};
use hikyaku_stores::{FtpScheme, Location};

/// The options of `hikyaku cp`.
pub const TABLE: Table = Table {
    what: "a copy",
    ways: &[
        Way::Here,
        Way::Ssh,
        Way::Through,
        Way::Sftp,
        Way::FromDaemons,
        Way::ToDaemons,
        Way::FromGfarm,
        Way::ToGfarm,
        Way::FromBucket,
        Way::ToBucket,
        Way::FromWeb,
        Way::FromFtp,
        Way::ToFtp,
        Way::FromGridFtp,
        Way::ToGridFtp,
        Way::FromHost,
        Way::ToHost,
    ],
    rows: ROWS,
    others: Guests::OPTIONS,
    apart: &["paths", "unfinished", "abandon"],
};

/// The ways of a copy between these places, where `is_sftp` says that SFTP was asked for.
pub(crate) fn ways(sources: &[Location], target: &Location, is_sftp: bool) -> Vec<Way> {
    let way = |source: &Location| match (source, target) {
        (Location::Remote(_), Location::Remote(_)) => Way::Through,
        (Location::Remote(_), _) | (_, Location::Remote(_)) if is_sftp => Way::Sftp,
        (Location::Remote(_), _) | (_, Location::Remote(_)) => Way::Ssh,
        _ => Way::Here,
    };
    let mut ways: Vec<Way> = sources.iter().map(way).collect();
    ways.dedup();
    ways
}

/// The side of a storage on a way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Towards {
    /// Data go into it.
    Storage,
    /// Data come out of it.
    Away,
}

/// The way of data between this machine and a storage.
pub(crate) fn way(storage: &Location, towards: Towards) -> Way {
    let (from, to) = match storage {
        Location::Local(_) => (Way::Here, Way::Here),
        Location::Remote(_) => (Way::FromHost, Way::ToHost),
        Location::Servers(_) => (Way::FromDaemons, Way::ToDaemons),
        Location::Gfarm(_) => (Way::FromGfarm, Way::ToGfarm),
        Location::S3(_) => (Way::FromBucket, Way::ToBucket),
        Location::Ftp(path) => match path.scheme() {
            FtpScheme::Ftp => (Way::FromFtp, Way::ToFtp),
            FtpScheme::GsiFtp => (Way::FromGridFtp, Way::ToGridFtp),
        },
        // Nothing is written to one.
        Location::Web(_) => (Way::FromWeb, Way::FromWeb),
    };
    match towards {
        Towards::Storage => to,
        Towards::Away => from,
    }
}

/// With daemons on the nodes.
const DAEMONS: Effect = HonouredWith(&["gfarm_daemons"]);
/// Unless another carrier than UDP was asked for.
const BY_UDP: Effect = HonouredUnless(&["no_udp"]);
const MODES: Effect = InPart("modes and times of directories are not kept in a bucket");
const WEB: Effect =
    InPart("a web server shows the times of files, and no owners, modes or attributes");
const OWNERS: Effect = InPart("owners and extended attributes are not kept");
const BUCKET: Effect =
    InPart("owners, modes, times of directories and extended attributes are not kept in a bucket");

/// The options in the order of the help. The columns: here, ssh, between two others, SFTP, from and to daemons, from and into
/// Gfarm, from and into a bucket, from a web server, from and to a server of `ftp://`, from and to one of `gsiftp://`, and from
/// and to a host by ssh where the other end is a storage.
#[rustfmt::skip]
const ROWS: &[Row] = &[
    row(("recursive", "-r"), Protects, &[Y, Y, Y, Y, Y, Y, Y, Y, Y, Y, R, Y, Y, Y, Y, Y, Y], LEAVE),
    row(("preserve", "-p"), Metadata, &[Y, Y, Y, Y, Y, Y, Y, Y, MODES, MODES, WEB, Y, Y, Y, Y, Y, Y], LEAVE),
    row(("times", "--times"), Metadata, &[Y, Y, Y, Y, Y, Y, Y, Y, MODES, MODES, WEB, Y, Y, Y, Y, Y, Y], LEAVE),
    row(("archive", "-a"), Metadata, &[Y, Y, Y, OWNERS, OWNERS, OWNERS, OWNERS, OWNERS, OWNERS, BUCKET, WEB, OWNERS, OWNERS, OWNERS, OWNERS, OWNERS, OWNERS], LEAVE),
    all(("quiet", "-q"), Convenience),
    all(("shown", "-I"), Convenience),
    all(("verbose", "-v"), Convenience),
    all(("limit", "-l"), Protects),
    all(("rate", "--rate"), Protects),
    ssh(("ssh_port", "-P"), Convenience),
    ssh(("identity", "-i"), Convenience),
    ssh(("jump", "-J"), Protects),
    ssh(("ssh_config", "-F"), Convenience),
    ssh(("ssh_option", "-o"), Convenience),
    ssh(("ssh_program", "-S"), Convenience),
    ssh(("cipher_spec", "-c"), Convenience),
    row(("v4", "-4"), Protects, &[N, Y, Y, Y, Y, Y, Y, Y, N, N, Y, Y, Y, Y, Y, Y, Y], ("", "an IPv4 address in place of the name")),
    row(("v6", "-6"), Protects, &[N, Y, Y, Y, Y, Y, Y, Y, N, N, Y, Y, Y, Y, Y, Y, Y], ("", "an IPv6 address in place of the name")),
    ssh(("agent", "-A"), Convenience),
    ssh(("batch", "-B"), Convenience),
    row(("through_here", "-3"), Convenience, &[N, N, Y, N, N, N, N, N, N, N, N, N, N, N, N, N, N], LEAVE),
    row(("directly", "-R"), Convenience, &[N; 17], ("data between two remote hosts go through this one", "leave it out")),
    row(("trust_names", "-T"), Convenience, &[N, Y, Y, N, N, N, N, N, N, N, N, N, N, N, N, N, N], LEAVE),
    row(("compress", "-C"), Convenience, &[N; 17], ("data are sent as they are", "leave it out")),
    row(("old", "-O"), Convenience, &[N; 17], ("there is one protocol", "leave it out")),
    row(("sftp_server", "-D"), Convenience, &[N; 17], ("no sftp server is used", "leave it out")),
    all(("dry_run", "--dry-run"), Protects),
    all(("exclude", "--exclude"), Protects),
    all(("include", "--include"), Protects),
    row(("files_from", "--files-from"), Protects, &[Y, Y, Y, Y, Y, Y, Y, Y, Y, Y, R, Y, Y, Y, Y, Y, Y], LEAVE),
    row(("from0", "--from0"), Protects, &[Y, Y, Y, Y, Y, Y, Y, Y, Y, Y, R, Y, Y, Y, Y, Y, Y], LEAVE),
    all(("update", "--update"), Protects),
    all(("ignore_existing", "--ignore-existing"), Protects),
    row(("verify", "--verify"), Protects, &[Y, Y, Y, Y, Y, R, Y, Y, Y, R, Y, Y, Y, Y, Y, Y, R],
        ("the target cannot read files again before they have their names", "leave it out: what arrives is checked all the same")),
    row(("manifest", "--manifest"), Protects, &[Y, Y, R, Y, Y, Y, Y, Y, Y, Y, Y, Y, Y, Y, Y, Y, Y],
        ("this end does not know the hashes of all files", "b3sum on the files after the copy")),
    row(("no_fsync", "--no-fsync"), Convenience, &[Y, Y, Y, Y, Y, N, Y, N, Y, N, Y, Y, N, Y, N, Y, N], LEAVE),
    row(("inplace", "--inplace"), Protects, &[Y, Y, Y, Y, Y, R, Y, Y, Y, R, Y, Y, R, Y, R, Y, Y],
        ("files are written beside the old ones and renamed", "leave it out, or remove the old file first")),
    all(("fresh", "--fresh"), Protects),
    row(("cipher", "--cipher"), Protects, &[N, BY_UDP, BY_UDP, N, N, N, N, N, N, N, N, N, N, N, N, BY_UDP, BY_UDP],
        ("", "leave it out: the ends agree on a cipher, or no data of the transport are sent")),
    row(("policy", "--policy"), Protects, &[N, BY_UDP, BY_UDP, N, N, N, N, N, N, N, N, N, N, N, N, BY_UDP, BY_UDP], ("", "--rate RATE, which limits every copy")),
    row(("window", "--window"), Convenience, &[N, Y, Y, N, Y, N, DAEMONS, N, N, N, N, N, N, N, N, Y, Y], LEAVE),
    row(("buffer", "--buffer"), Convenience, &[N, BY_UDP, BY_UDP, N, N, N, N, N, N, N, N, N, N, N, N, BY_UDP, BY_UDP], LEAVE),
    row(("udp_ports", "--udp-ports"), Protects, &[N, Y, Y, N, N, N, N, N, N, N, N, N, N, N, N, Y, Y], ("", "leave it out, or --no-udp")),
    all(("no_udp", "--no-udp"), Protects),
    row(("via", "--via"), Protects, &[N, Y, Y, Y, Y, Y, DAEMONS, N, N, N, N, N, N, N, N, Y, Y], LEAVE),
    row(("pipes", "--connections"), Convenience, &[N, Y, Y, N, Y, Y, DAEMONS, N, Y, Y, Y, N, N, N, N, Y, Y], LEAVE),
    row(("timeout", "--timeout"), Convenience, &[N, Y, Y, Y, Y, Y, Y, Y, Y, Y, Y, Y, Y, Y, Y, Y, Y], LEAVE),
    row(("retry_for", "--retry-for"), Convenience, &[N, Y, Y, Y, Y, Y, Y, Y, Y, Y, Y, Y, Y, Y, Y, Y, Y], LEAVE),
    row(("remote_path", "--remote-path"), Convenience, &[N, Y, Y, N, BY_SSH, BY_SSH, N, N, N, N, N, N, N, N, N, Y, Y], LEAVE),
    row(("start_servers", "--start-servers"), Protects, &[N, N, N, N, Y, Y, N, N, N, N, N, N, N, N, N, N, N],
        ("", "hikyaku://HOST,HOST/PATH for servers that are started for the copy")),
    row(("primary", "--primary"), Protects, &[N, N, N, N, Y, Y, N, N, N, N, N, N, N, N, N, N, N],
        ("", "hikyaku://HOST,HOST/PATH and --start-servers")),
    row(("bootstrap", "--bootstrap"), Convenience, &[N, Y, Y, N, N, N, N, N, N, N, N, N, N, N, N, Y, Y], LEAVE),
    row(("far_binary", "--far-binary"), Convenience, &[N, Y, Y, N, N, N, N, N, N, N, N, N, N, N, N, Y, Y], LEAVE),
    row(("server_rate", "--server-rate"), Protects, &[N, N, N, N, Y, Y, DAEMONS, N, N, N, N, N, N, N, N, N, N],
        ("", "--rate RATE, for all data of the copy")),
    row(("streams", "--streams"), Convenience, &[N, N, N, N, N, Y, N, N, N, N, N, N, N, N, N, N, N], LEAVE),
    row(("pause", "--pause"), Convenience, &[N, N, N, N, N, Y, N, N, N, N, N, N, N, N, N, N, N], LEAVE),
    row(("stagger", "--stagger"), Convenience, &[N, N, N, N, Y, Y, Y, N, Y, N, Y, Y, N, Y, N, Y, Y], LEAVE),
    row(("gfarm_daemons", "--gfarm-daemons"), Convenience, &[N, N, N, N, N, N, Y, N, N, N, N, N, N, N, N, N, N], LEAVE),
    row(("endpoint", "--endpoint"), Convenience, &[N, N, N, N, N, N, N, N, Y, Y, N, N, N, N, N, N, N], LEAVE),
    row(("cookies", "--cookies"), Protects, &[N, N, N, N, N, N, N, N, N, N, Y, N, N, N, N, N, N], ("", "leave it out: only web servers get cookies")),
    all(("json", "--json"), Convenience),
    all(("json_lines", "--json-lines"), Convenience),
    all(("stats", "--stats"), Convenience),
    all(("log_dir", "--log-dir"), Convenience),
];
