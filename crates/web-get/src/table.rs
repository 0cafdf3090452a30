//! The effect of each option of `hikyaku get` on each way: from web servers to files and to an output, and from other storages.

use crate::guests::Guests;
use hikyaku_console::Class::{Convenience, Protects};
use hikyaku_console::Effect::{Honoured as Y, Nothing as N, Refused as R};
use hikyaku_console::{Others, Row, Table, Way, all, row};

/// The options of `hikyaku get`.
pub const TABLE: Table = Table {
    what: "a download",
    ways: &[
        Way::FromWeb,
        Way::WebToOutput,
        Way::FromDaemons,
        Way::FromGfarm,
        Way::FromBucket,
        Way::FromFtp,
        Way::FromGridFtp,
        Way::FromHost,
    ],
    rows: ROWS,
    others: Guests::OPTIONS,
    apart: &["urls"],
};

const LEAVE: (&str, &str) = ("", "leave it out");
const ONE: (&str, &str) = (
    "an output takes one file in order, and other storages have rules of their own",
    "leave it out",
);
const WEB: (&str, &str) = ("only web servers are asked by HTTP", "leave it out");
const LOGIN: (&str, &str) = ("this storage has a login of its own", "leave it out");
const TUNED: (&str, &str) = ("the number of connections is that of hikyaku cp", "-n N");

/// The options in the order of the help. The columns: from web servers to files and to an output, from daemons, from Gfarm, from
/// a bucket, from a server of `ftp://` and of `gsiftp://`, and from a host by ssh.
#[rustfmt::skip]
const ROWS: &[Row] = &[
    all(("output", "-o"), Protects),
    row(("dir", "-d"), Protects, &[Y, R, Y, Y, Y, Y, Y, Y], ("an output has no directory", "leave it out, or -o FILE")),
    row(("mirror", "--mirror"), Protects, &[Y, Y, R, R, R, R, R, R], ("a file of this storage has one address", "leave it out")),
    // The storage of a file is known from an address of the command line only.
    row(("input_file", "-i"), Protects, &[Y, R, R, R, R, R, R, R], ("a list has addresses of web servers", "hikyaku cp")),
    // An output is written into, whatever it has had before.
    all(("force", "-f"), Protects),
    row(("continued", "-c"), Convenience, &[Y, N, N, N, N, N, N, N], ("files of other programs are continued from web servers only", "leave it out")),
    all(("sha256", "--sha256"), Protects),
    row(("jobs", "-j"), Convenience, &[Y, N, N, N, N, N, N, N], ONE),
    // More than one connection is refused for an output.
    row(("connections", "-n"), Convenience, &[Y, Y, Y, N, Y, N, N, Y], LEAVE),
    row(("max_connections", "--max-connections"), Protects, &[Y, Y, R, R, R, R, R, R], TUNED),
    row(("tuner", "--tuner"), Convenience, &[Y, N, N, N, N, N, N, N], ONE),
    all(("limit_rate", "--limit-rate"), Protects),
    all(("rate", "--rate"), Protects),
    row(("header", "-H"), Protects, &[Y, Y, R, R, R, R, R, R], WEB),
    row(("user_agent", "-A"), Protects, &[Y, Y, R, R, R, R, R, R], WEB),
    row(("user", "-u"), Protects, &[Y, Y, R, R, R, R, R, R], LOGIN),
    row(("netrc", "--netrc"), Protects, &[Y, Y, R, R, R, R, R, R], LOGIN),
    row(("netrc_file", "--netrc-file"), Protects, &[Y, Y, R, R, R, R, R, R], LOGIN),
    row(("cookies", "--cookies"), Protects, &[Y, Y, R, R, R, R, R, R], WEB),
    row(("ca", "--ca"), Protects, &[Y, Y, R, R, R, R, R, R], WEB),
    row(("proxy", "--proxy"), Protects, &[Y, Y, R, R, R, R, R, R], WEB),
    row(("retries", "--retries"), Convenience, &[Y, Y, N, N, N, N, N, N], LEAVE),
    row(("retry_wait", "--retry-wait"), Convenience, &[Y, Y, N, N, N, N, N, N], LEAVE),
    all(("timeout", "--timeout"), Convenience),
    row(("congestion", "--congestion"), Convenience, &[Y, Y, N, N, N, N, N, N], LEAVE),
    all(("vb", "--vb"), Convenience),
    all(("quiet", "-q"), Convenience),
    // Standard output takes one of the two: the other is refused.
    all(("json", "--json"), Convenience),
    all(("json_lines", "--json-lines"), Convenience),
];
