//! What each option of `hikyaku get` does for a file and for an output.

use crate::guests::Guests;
use hikyaku_console::Class::{Convenience, Protects};
use hikyaku_console::Effect::{Honoured as Y, Nothing as N, Refused as R};
use hikyaku_console::{Others, Row, Table, Way, row};

/// The options of `hikyaku get`.
pub const TABLE: Table = Table {
    what: "a download",
    ways: &[Way::FromWeb, Way::WebToOutput],
    rows: ROWS,
    others: Guests::OPTIONS,
    apart: &["urls"],
};

const LEAVE: (&str, &str) = ("", "leave it out");
const ONE: (&str, &str) =
    ("an output takes one file in order, through one connection", "leave it out");

/// The options in the order of the help. The columns: to files, to an output.
#[rustfmt::skip]
const ROWS: &[Row] = &[
    row(("output", "-o"), Protects, &[Y, Y], LEAVE),
    row(("dir", "-d"), Protects, &[Y, R], ("an output has no directory", "leave it out, or -o FILE")),
    row(("mirror", "--mirror"), Protects, &[Y, Y], LEAVE),
    // An output is written into, whatever it has had before.
    row(("force", "-f"), Protects, &[Y, Y], LEAVE),
    row(("sha256", "--sha256"), Protects, &[Y, Y], LEAVE),
    row(("jobs", "-j"), Convenience, &[Y, N], ONE),
    // More than one connection is refused for an output.
    row(("connections", "-n"), Convenience, &[Y, Y], LEAVE),
    row(("max_connections", "--max-connections"), Protects, &[Y, Y], LEAVE),
    row(("tuner", "--tuner"), Convenience, &[Y, N], ONE),
    row(("limit_rate", "--limit-rate"), Protects, &[Y, Y], LEAVE),
    row(("rate", "--rate"), Protects, &[Y, Y], LEAVE),
    row(("header", "-H"), Protects, &[Y, Y], LEAVE),
    row(("user_agent", "-A"), Protects, &[Y, Y], LEAVE),
    row(("user", "-u"), Protects, &[Y, Y], LEAVE),
    row(("netrc", "--netrc"), Protects, &[Y, Y], LEAVE),
    row(("netrc_file", "--netrc-file"), Protects, &[Y, Y], LEAVE),
    row(("ca", "--ca"), Protects, &[Y, Y], LEAVE),
    row(("proxy", "--proxy"), Protects, &[Y, Y], LEAVE),
    row(("retries", "--retries"), Convenience, &[Y, Y], LEAVE),
    row(("retry_wait", "--retry-wait"), Convenience, &[Y, Y], LEAVE),
    row(("timeout", "--timeout"), Convenience, &[Y, Y], LEAVE),
    row(("congestion", "--congestion"), Convenience, &[Y, Y], LEAVE),
    row(("vb", "--vb"), Convenience, &[Y, Y], LEAVE),
    row(("quiet", "-q"), Convenience, &[Y, Y], LEAVE),
    // Standard output takes one of the two: the other is refused.
    row(("json", "--json"), Convenience, &[Y, Y], LEAVE),
    row(("json_lines", "--json-lines"), Convenience, &[Y, Y], LEAVE),
];
