//! What each option of `hikyaku sync` does on each way.

use crate::rsync::Rsync;
use hikyaku_console::Class::{Convenience, Metadata, Protects};
use hikyaku_console::Effect::{self, Honoured as Y, HonouredWith, Nothing as N, Refused as R};
use hikyaku_console::{Others, Row, Table, Way, row};

/// The options of `hikyaku sync`.
pub const TABLE: Table = Table {
    what: "a synchronization",
    ways: &[Way::Here, Way::Ssh, Way::Sftp],
    rows: ROWS,
    others: Rsync::OPTIONS,
    apart: &["paths"],
};

const DELETING: Effect = HonouredWith(&["delete", "delete_excluded"]);
const KEEPING: Effect = HonouredWith(&["backup"]);
const NONE: (&str, &str) = ("", "leave it out");

/// The options in the order of the help. The columns: here, ssh, SFTP. A far side is known to have no hikyaku only when one was
/// looked for, so `--remote-path` and
/// `--bootstrap` are honoured there, too.
#[rustfmt::skip]
const ROWS: &[Row] = &[
    row(("archive", "-a"), Protects, &[Y, Y, Y], NONE),
    row(("recursive", "-r"), Protects, &[Y, Y, Y], NONE),
    row(("links", "-l"), Protects, &[Y, Y, Y], NONE),
    row(("perms", "-p"), Metadata, &[Y, Y, Y], NONE),
    row(("times", "-t"), Metadata, &[Y, Y, Y], NONE),
    row(("no_perms", "--no-perms"), Metadata, &[Y, Y, Y], NONE),
    row(("no_times", "--no-times"), Metadata, &[Y, Y, Y], NONE),
    row(("no_links", "--no-links"), Protects, &[Y, Y, Y], NONE),
    row(("dry_run", "-n"), Protects, &[Y, Y, Y], NONE),
    row(("itemize_changes", "-i"), Convenience, &[Y, Y, Y], NONE),
    row(("verbose", "-v"), Convenience, &[Y, Y, Y], NONE),
    row(("quiet", "-q"), Convenience, &[Y, Y, Y], NONE),
    row(("eight_bit", "-8"), Convenience, &[Y, Y, Y], NONE),
    row(("backup", "-b"), Protects, &[Y, Y, Y], NONE),
    row(("suffix", "--suffix"), Convenience, &[KEEPING, KEEPING, KEEPING], ("nothing is kept without -b", "leave it out")),
    row(("update", "-u"), Protects, &[Y, Y, Y], NONE),
    row(("existing", "--existing"), Protects, &[Y, Y, Y], NONE),
    row(("ignore_existing", "--ignore-existing"), Protects, &[Y, Y, Y], NONE),
    row(("size_only", "--size-only"), Protects, &[Y, Y, Y], NONE),
    row(("ignore_times", "-I"), Protects, &[Y, Y, Y], NONE),
    row(("checksum", "-c"), Protects, &[Y, R, R],
        ("contents are compared on this machine only", "-I, which copies all files")),
    row(("files_from", "--files-from"), Protects, &[Y, Y, Y], NONE),
    row(("from0", "-0"), Protects, &[Y, Y, Y], NONE),
    row(("modify_window", "--modify-window"), Protects, &[Y, Y, Y], NONE),
    row(("max_size", "--max-size"), Protects, &[Y, Y, Y], NONE),
    row(("min_size", "--min-size"), Protects, &[Y, Y, Y], NONE),
    row(("exclude", "--exclude"), Protects, &[Y, Y, Y], NONE),
    row(("include", "--include"), Protects, &[Y, Y, Y], NONE),
    row(("exclude-from", "--exclude-from"), Protects, &[Y, Y, Y], NONE),
    row(("include-from", "--include-from"), Protects, &[Y, Y, Y], NONE),
    row(("filter", "-f"), Protects, &[Y, Y, Y], NONE),
    row(("delete", "--delete"), Protects, &[Y, Y, Y], NONE),
    row(("delete_excluded", "--delete-excluded"), Protects, &[Y, Y, Y], NONE),
    // A limit of deletions holds where nothing is deleted.
    row(("max_delete", "--max-delete"), Protects, &[Y, Y, Y], NONE),
    row(("delete_all", "--delete-all"), Protects, &[DELETING, DELETING, DELETING],
        ("nothing is deleted without --delete", "--delete --delete-all")),
    row(("remove_source_files", "--remove-source-files"), Protects, &[Y, Y, Y], NONE),
    row(("rsh", "-e"), Convenience, &[N, Y, Y], NONE),
    row(("ssh_port", "--ssh-port"), Convenience, &[N, Y, Y], NONE),
    row(("identity", "--identity"), Convenience, &[N, Y, Y], NONE),
    row(("jump", "--jump"), Protects, &[N, Y, Y], ("", "leave it out: ssh is not used")),
    row(("ssh_config", "--ssh-config"), Convenience, &[N, Y, Y], NONE),
    row(("ssh_option", "--ssh-option"), Convenience, &[N, Y, Y], NONE),
    row(("ssh_program", "--ssh"), Convenience, &[N, Y, Y], NONE),
    row(("remote_path", "--remote-path"), Convenience, &[N, Y, Y], NONE),
    row(("bootstrap", "--bootstrap"), Convenience, &[N, Y, Y], NONE),
    row(("far_binary", "--far-binary"), Convenience, &[N, Y, Y], NONE),
    row(("no_udp", "--no-udp"), Protects, &[Y, Y, Y], NONE),
    row(("rate", "--rate"), Protects, &[Y, Y, Y], NONE),
    row(("bwlimit", "--bwlimit"), Protects, &[Y, Y, Y], NONE),
    row(("timeout", "--timeout"), Convenience, &[N, Y, N], NONE),
];
