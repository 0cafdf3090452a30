//! What each option of `hikyaku sftp` does on each way.

use crate::guests::Guests;
use hikyaku_console::Class::{Convenience, Protects};
use hikyaku_console::Effect::{Honoured as Y, Nothing as N};
use hikyaku_console::{LEAVE, Others, Row, Table, Way, all, row, ssh};

/// The options of `hikyaku sftp`.
pub const TABLE: Table = Table {
    what: "a session",
    ways: &[Way::Ssh, Way::Sftp, Way::Direct],
    rows: ROWS,
    others: Guests::OPTIONS,
    apart: &["destination", "local"],
};

/// The options in the order of the help. The columns: with hikyaku at the far side, by ssh's subsystem, with `-D`. Metadata of a
/// session are those of SFTP on all of them.
#[rustfmt::skip]
const ROWS: &[Row] = &[
    all(("batch", "-b"), Protects),
    all(("noisy", "-N"), Convenience),
    all(("quiet", "-q"), Convenience),
    all(("verbose", "-v"), Convenience),
    row(("direct", "-D"), Protects, &[N, N, Y], LEAVE),
    row(("subsystem", "-s"), Protects, &[N, Y, N], ("", "--via sftp, or leave it out")),
    ssh(("compress", "-C"), Convenience),
    all(("resume", "-a"), Protects),
    all(("sync", "-f"), Protects),
    all(("preserve", "-p"), Protects),
    all(("recursive", "-r"), Protects),
    all(("limit", "-l"), Protects),
    all(("rate", "--rate"), Protects),
    all(("bytes", "-B"), Convenience),
    all(("requests", "-R"), Convenience),
    all(("extra", "-X"), Convenience),
    ssh(("ssh_port", "-P"), Convenience),
    ssh(("identity", "-i"), Convenience),
    ssh(("jump", "-J"), Protects),
    ssh(("ssh_config", "-F"), Convenience),
    ssh(("ssh_option", "-o"), Convenience),
    ssh(("ssh_program", "-S"), Convenience),
    ssh(("cipher_spec", "-c"), Convenience),
    ssh(("v4", "-4"), Protects),
    ssh(("v6", "-6"), Protects),
    ssh(("agent", "-A"), Convenience),
    row(("via", "--via"), Protects, &[Y, Y, N], ("", "leave it out: -D says what serves")),
    all(("strict", "--strict"), Protects),
    all(("no_udp", "--no-udp"), Protects),
    row(("pipes", "--connections"), Convenience, &[Y, N, N], LEAVE),
    row(("udp_ports", "--udp-ports"), Protects, &[Y, N, N], ("", "leave it out, or --no-udp")),
    row(("remote_path", "--remote-path"), Convenience, &[Y, N, N], LEAVE),
    ssh(("timeout", "--timeout"), Convenience),
    row(("bootstrap", "--bootstrap"), Convenience, &[Y, N, N], LEAVE),
    row(("far_binary", "--far-binary"), Convenience, &[Y, N, N], LEAVE),
];
