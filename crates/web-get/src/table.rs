//! What each option of `hikyaku get` does for a file and for an output.

use crate::guests::Guests;
use hikyaku_console::Class::{Convenience, Protects};
use hikyaku_console::Effect::{Honoured as Y, Nothing as N, Refused as R};
use hikyaku_console::{Others, Row, Table, Way, all, row};

/// The options of `hikyaku get`.
pub const TABLE: Table = Table {
    what: "a download",
    ways: &[Way::FromWeb, Way::WebToOutput],
    rows: ROWS,
    others: Guests::OPTIONS,
    apart: &["urls"],
};

const ONE: (&str, &str) =
    ("an output takes one file in order, through one connection", "leave it out");

/// The options in the order of the help. The columns: to files, to an output.
#[rustfmt::skip]
const ROWS: &[Row] = &[
    all(("output", "-o"), Protects),
    row(("dir", "-d"), Protects, &[Y, R], ("an output has no directory", "leave it out, or -o FILE")),
    all(("mirror", "--mirror"), Protects),
    // An output is written into, whatever it has had before.
    all(("force", "-f"), Protects),
    all(("sha256", "--sha256"), Protects),
    row(("jobs", "-j"), Convenience, &[Y, N], ONE),
    // More than one connection is refused for an output.
    all(("connections", "-n"), Convenience),
    all(("max_connections", "--max-connections"), Protects),
    row(("tuner", "--tuner"), Convenience, &[Y, N], ONE),
    all(("limit_rate", "--limit-rate"), Protects),
    all(("rate", "--rate"), Protects),
    all(("header", "-H"), Protects),
    all(("user_agent", "-A"), Protects),
    all(("user", "-u"), Protects),
    all(("netrc", "--netrc"), Protects),
    all(("netrc_file", "--netrc-file"), Protects),
    all(("ca", "--ca"), Protects),
    all(("proxy", "--proxy"), Protects),
    all(("retries", "--retries"), Convenience),
    all(("retry_wait", "--retry-wait"), Convenience),
    all(("timeout", "--timeout"), Convenience),
    all(("congestion", "--congestion"), Convenience),
    all(("vb", "--vb"), Convenience),
    all(("quiet", "-q"), Convenience),
    // Standard output takes one of the two: the other is refused.
    all(("json", "--json"), Convenience),
    all(("json_lines", "--json-lines"), Convenience),
];
