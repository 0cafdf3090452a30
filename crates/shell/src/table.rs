//! What each option of `hikyaku sftp` does on each way.

use crate::guests::Guests;
use hikyaku_console::Class::{Convenience, Protects};
use hikyaku_console::Effect::{Honoured as Y, Nothing as N};
use hikyaku_console::{Others, Row, Table, Way, row};

/// The options of `hikyaku sftp`.
pub const TABLE: Table = Table {
    what: "a session",
    ways: &[Way::Ssh, Way::Sftp, Way::Direct],
    rows: ROWS,
    others: Guests::OPTIONS,
    apart: &["destination", "local"],
};

const NONE: (&str, &str) = ("", "leave it out");

/// The options in the order of the help. The columns: with hikyaku at the far side, by ssh's subsystem, with `-D`. Metadata of a
/// session are those of SFTP on all of them.
#[rustfmt::skip]
const ROWS: &[Row] = &[
    row(("batch", "-b"), Protects, &[Y, Y, Y], NONE),
    row(("noisy", "-N"), Convenience, &[Y, Y, Y], NONE),
    row(("quiet", "-q"), Convenience, &[Y, Y, Y], NONE),
    row(("verbose", "-v"), Convenience, &[Y, Y, Y], NONE),
    row(("direct", "-D"), Protects, &[N, N, Y], NONE),
    row(("subsystem", "-s"), Protects, &[N, Y, N], ("", "--via sftp, or leave it out")),
    row(("compress", "-C"), Convenience, &[Y, Y, N], NONE),
    row(("resume", "-a"), Protects, &[Y, Y, Y], NONE),
    row(("sync", "-f"), Protects, &[Y, Y, Y], NONE),
    row(("preserve", "-p"), Protects, &[Y, Y, Y], NONE),
    row(("recursive", "-r"), Protects, &[Y, Y, Y], NONE),
    row(("limit", "-l"), Protects, &[Y, Y, Y], NONE),
    row(("rate", "--rate"), Protects, &[Y, Y, Y], NONE),
    row(("bytes", "-B"), Convenience, &[Y, Y, Y], NONE),
    row(("requests", "-R"), Convenience, &[Y, Y, Y], NONE),
    row(("extra", "-X"), Convenience, &[Y, Y, Y], NONE),
    row(("ssh_port", "-P"), Convenience, &[Y, Y, N], NONE),
    row(("identity", "-i"), Convenience, &[Y, Y, N], NONE),
    row(("jump", "-J"), Protects, &[Y, Y, N], ("", "leave it out: ssh is not used")),
    row(("ssh_config", "-F"), Convenience, &[Y, Y, N], NONE),
    row(("ssh_option", "-o"), Convenience, &[Y, Y, N], NONE),
    row(("ssh_program", "-S"), Convenience, &[Y, Y, N], NONE),
    row(("cipher_spec", "-c"), Convenience, &[Y, Y, N], NONE),
    row(("v4", "-4"), Protects, &[Y, Y, N], ("", "leave it out: ssh is not used")),
    row(("v6", "-6"), Protects, &[Y, Y, N], ("", "leave it out: ssh is not used")),
    row(("agent", "-A"), Convenience, &[Y, Y, N], NONE),
    row(("via", "--via"), Protects, &[Y, Y, N], ("", "leave it out: -D says what serves")),
    row(("strict", "--strict"), Protects, &[Y, Y, Y], NONE),
    row(("no_udp", "--no-udp"), Protects, &[Y, Y, Y], NONE),
    row(("pipes", "--connections"), Convenience, &[Y, N, N], NONE),
    row(("udp_ports", "--udp-ports"), Protects, &[Y, N, N], ("", "leave it out, or --no-udp")),
    row(("remote_path", "--remote-path"), Convenience, &[Y, N, N], NONE),
    row(("timeout", "--timeout"), Convenience, &[Y, N, N], NONE),
    row(("bootstrap", "--bootstrap"), Convenience, &[Y, N, N], NONE),
    row(("far_binary", "--far-binary"), Convenience, &[Y, N, N], NONE),
];
