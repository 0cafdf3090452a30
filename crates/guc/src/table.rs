//! What each option of `hikyaku guc` does on each way, and which way a copy goes.

use crate::other_args::GlobusUrlCopy;
use crate::url::Place;
use hikyaku_console::Class::{Convenience, Protects};
use hikyaku_console::Effect::{Honoured as Y, Nothing as N};
use hikyaku_console::{Others, Row, Table, Way, all, row};
use hikyaku_gridftp::{Login, Server};

/// The options of `hikyaku guc`.
pub const TABLE: Table = Table {
    what: "a copy",
    ways: &[
        Way::FromFtp,
        Way::ToFtp,
        Way::BetweenFtp,
        Way::FromGridFtp,
        Way::ToGridFtp,
        Way::BetweenGridFtp,
    ],
    rows: ROWS,
    others: GlobusUrlCopy::OPTIONS,
    apart: &["source", "target", "file_of_urls", "list"],
};

/// The way of a copy between these places; `None` if no server is one of them. Between two servers of which one takes no
/// certificate, nothing more can be done for the data than between two such servers.
pub(crate) fn way(source: &Place, target: &Place) -> Option<Way> {
    let is_certified = |place: &Place| match place {
        Place::Local(_) => None,
        Place::Remote(remote) => Some(remote.server.login == Login::Certificate),
    };
    Some(match (is_certified(source), is_certified(target)) {
        (Some(true), Some(true)) => Way::BetweenGridFtp,
        (Some(_), Some(_)) => Way::BetweenFtp,
        (Some(true), None) => Way::FromGridFtp,
        (Some(false), None) => Way::FromFtp,
        (None, Some(true)) => Way::ToGridFtp,
        (None, Some(false)) => Way::ToFtp,
        (None, None) => return None,
    })
}

/// The way of what comes from this server.
pub(crate) fn way_from(server: &Server) -> Way {
    match server.login {
        Login::Certificate => Way::FromGridFtp,
        Login::Anonymous | Login::Password { .. } => Way::FromFtp,
    }
}

const BLOCKS: (&str, &str) =
    ("the server that sends chooses the size of its blocks", "leave it out");
const NOT_HERE: (&str, &str) =
    ("the data of two servers do not pass this host", "two copies, the first one to this host");
const CERTIFICATE: (&str, &str) = ("", "gsiftp:// for every server, where a certificate logs in");

/// The options in the order of the help. The columns: from, to and between ftp://, from, to and between gsiftp://.
#[rustfmt::skip]
const ROWS: &[Row] = &[
    all(("parallel", "-p"), Convenience),
    all(("noapt", "-noapt"), Convenience),
    all(("apt_tuner", "-apt-tuner"), Convenience),
    all(("apt_n0", "-apt-n0"), Convenience),
    all(("apt_alpha", "-apt-alpha"), Convenience),
    all(("apt_delta", "-apt-delta"), Convenience),
    all(("max_connections", "--max-connections"), Protects),
    row(("rate", "--rate"), Protects, &[Y, Y, N, Y, Y, N], NOT_HERE),
    all(("v4", "-4"), Protects),
    all(("v6", "-6"), Protects),
    all(("tcp_bs", "-tcp-bs"), Convenience),
    row(("bs", "-bs"), Convenience, &[N, Y, N, N, Y, N], BLOCKS),
    all(("off", "-off"), Protects),
    all(("len", "-len"), Protects),
    all(("cc", "-cc"), Convenience),
    all(("pp", "-pp"), Convenience),
    all(("dry_run", "--dry-run"), Protects),
    all(("recurse", "-r"), Protects),
    all(("cd", "-cd"), Protects),
    all(("sync", "-sync"), Protects),
    all(("sync_level", "-sync-level"), Protects),
    all(("continue_on_error", "-c"), Protects),
    all(("inplace", "-inplace"), Protects),
    all(("cksm", "-cksm"), Protects),
    all(("rst_retries", "-rst-retries"), Convenience),
    all(("rst_interval", "-rst-interval"), Convenience),
    all(("st", "-st"), Convenience),
    all(("stripe", "-stripe"), Convenience),
    row(("dcpriv", "-dcpriv"), Protects, &[N, N, N, Y, Y, Y], CERTIFICATE),
    row(("dcsafe", "-dcsafe"), Protects, &[N, N, N, Y, Y, Y], CERTIFICATE),
    // Data of ftp:// are as this option accepts them.
    all(("nodcau", "-nodcau"), Protects),
    all(("trust_pasv", "--trust-pasv"), Protects),
    all(("vb", "-vb"), Convenience),
    all(("quiet", "-q"), Convenience),
    all(("dbg", "-dbg"), Convenience),
    all(("json", "--json"), Convenience),
    all(("json_lines", "--json-lines"), Convenience),
];
