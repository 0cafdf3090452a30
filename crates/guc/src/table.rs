//! What each option of `hikyaku guc` does on each way, and which way a copy goes.

use crate::other_args::GlobusUrlCopy;
use crate::url::Place;
use hikyaku_console::Class::{Convenience, Protects};
use hikyaku_console::Effect::{Honoured as Y, Nothing as N};
use hikyaku_console::{Others, Row, Table, Way, row};
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

const LEAVE: (&str, &str) = ("", "leave it out");
const BLOCKS: (&str, &str) =
    ("the server that sends chooses the size of its blocks", "leave it out");
const CERTIFICATE: (&str, &str) = ("", "gsiftp:// for every server, where a certificate logs in");

/// The options in the order of the help. The columns: from, to and between ftp://, from, to and between gsiftp://.
#[rustfmt::skip]
const ROWS: &[Row] = &[
    row(("parallel", "-p"), Convenience, &[Y, Y, Y, Y, Y, Y], LEAVE),
    row(("noapt", "-noapt"), Convenience, &[Y, Y, Y, Y, Y, Y], LEAVE),
    row(("apt_n0", "-apt-n0"), Convenience, &[Y, Y, Y, Y, Y, Y], LEAVE),
    row(("apt_alpha", "-apt-alpha"), Convenience, &[Y, Y, Y, Y, Y, Y], LEAVE),
    row(("apt_delta", "-apt-delta"), Convenience, &[Y, Y, Y, Y, Y, Y], LEAVE),
    row(("max_connections", "--max-connections"), Protects, &[Y, Y, Y, Y, Y, Y], LEAVE),
    row(("tcp_bs", "-tcp-bs"), Convenience, &[Y, Y, Y, Y, Y, Y], LEAVE),
    row(("bs", "-bs"), Convenience, &[N, Y, N, N, Y, N], BLOCKS),
    row(("off", "-off"), Protects, &[Y, Y, Y, Y, Y, Y], LEAVE),
    row(("len", "-len"), Protects, &[Y, Y, Y, Y, Y, Y], LEAVE),
    row(("cc", "-cc"), Convenience, &[Y, Y, Y, Y, Y, Y], LEAVE),
    row(("pp", "-pp"), Convenience, &[Y, Y, Y, Y, Y, Y], LEAVE),
    row(("recurse", "-r"), Protects, &[Y, Y, Y, Y, Y, Y], LEAVE),
    row(("cd", "-cd"), Protects, &[Y, Y, Y, Y, Y, Y], LEAVE),
    row(("sync", "-sync"), Protects, &[Y, Y, Y, Y, Y, Y], LEAVE),
    row(("sync_level", "-sync-level"), Protects, &[Y, Y, Y, Y, Y, Y], LEAVE),
    row(("continue_on_error", "-c"), Protects, &[Y, Y, Y, Y, Y, Y], LEAVE),
    row(("inplace", "-inplace"), Protects, &[Y, Y, Y, Y, Y, Y], LEAVE),
    row(("cksm", "-cksm"), Protects, &[Y, Y, Y, Y, Y, Y], LEAVE),
    row(("rst_retries", "-rst-retries"), Convenience, &[Y, Y, Y, Y, Y, Y], LEAVE),
    row(("rst_interval", "-rst-interval"), Convenience, &[Y, Y, Y, Y, Y, Y], LEAVE),
    row(("st", "-st"), Convenience, &[Y, Y, Y, Y, Y, Y], LEAVE),
    row(("stripe", "-stripe"), Convenience, &[Y, Y, Y, Y, Y, Y], LEAVE),
    row(("dcpriv", "-dcpriv"), Protects, &[N, N, N, Y, Y, Y], CERTIFICATE),
    row(("dcsafe", "-dcsafe"), Protects, &[N, N, N, Y, Y, Y], CERTIFICATE),
    // Data of ftp:// are as this option accepts them.
    row(("nodcau", "-nodcau"), Protects, &[Y, Y, Y, Y, Y, Y], LEAVE),
    row(("trust_pasv", "--trust-pasv"), Protects, &[Y, Y, Y, Y, Y, Y], LEAVE),
    row(("vb", "-vb"), Convenience, &[Y, Y, Y, Y, Y, Y], LEAVE),
    row(("quiet", "-q"), Convenience, &[Y, Y, Y, Y, Y, Y], LEAVE),
    row(("dbg", "-dbg"), Convenience, &[Y, Y, Y, Y, Y, Y], LEAVE),
    row(("json", "--json"), Convenience, &[Y, Y, Y, Y, Y, Y], LEAVE),
    row(("json_lines", "--json-lines"), Convenience, &[Y, Y, Y, Y, Y, Y], LEAVE),
];
