//! What each option of `hikyaku sync` does on each way.

use crate::rsync::Rsync;
use hikyaku_console::Class::{Convenience, Metadata, Protects};
use hikyaku_console::Effect::{
    self, Honoured as Y, HonouredWith, InPart, Nothing as N, Refused as R,
};
use hikyaku_console::{LEAVE, Others, Row, Table, Way, all, row, ssh};

/// The options of `hikyaku sync`.
pub const TABLE: Table = Table {
    what: "a synchronization",
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
        Way::FromFtp,
        Way::ToFtp,
        Way::FromGridFtp,
        Way::ToGridFtp,
        Way::FromHost,
        Way::ToHost,
    ],
    rows: ROWS,
    others: Rsync::OPTIONS,
    apart: &["paths"],
};

const DELETING: Effect = HonouredWith(&["delete", "delete_excluded"]);
const KEEPING: Effect = HonouredWith(&["backup"]);
const BUCKET: Effect =
    InPart("permission bits, symbolic links and times of directories are not kept in a bucket");
const MODES: Effect = InPart("permission bits are not kept in a bucket");
const TIMES: Effect = InPart("times of directories are not kept in a bucket");

const FTP: Effect = InPart(
    "permission bits and times are kept as far as the FTP server sets them, symbolic links are not",
);
const FTP_MODES: Effect = InPart("permission bits are kept as far as the FTP server sets them");
const FTP_TIMES: Effect = InPart("times are kept as far as the FTP server sets them");

/// The options in the order of the help. The columns: here, ssh, between two others, SFTP, from and to daemons, from and into
/// Gfarm, from and into a bucket, from and to a server of `ftp://`, from and to one of `gsiftp://`, and from and to a host by
/// ssh where the other end is a storage. A far side is known to have no hikyaku only when one was looked for, so `--remote-path` and
/// `--bootstrap` are honoured there, too.
#[rustfmt::skip]
const ROWS: &[Row] = &[
    row(("archive", "-a"), Metadata, &[Y, Y, Y, Y, Y, Y, Y, Y, BUCKET, BUCKET, FTP, FTP, FTP, FTP, Y, Y], LEAVE),
    all(("recursive", "-r"), Protects),
    row(("links", "-l"), Protects, &[Y, Y, Y, Y, Y, Y, Y, Y, Y, R, Y, R, Y, R, Y, Y], ("the target has no symbolic links", "leave it out")),
    row(("perms", "-p"), Metadata, &[Y, Y, Y, Y, Y, Y, Y, Y, MODES, MODES, FTP_MODES, FTP_MODES, FTP_MODES, FTP_MODES, Y, Y], LEAVE),
    row(("times", "-t"), Metadata, &[Y, Y, Y, Y, Y, Y, Y, Y, TIMES, TIMES, FTP_TIMES, FTP_TIMES, FTP_TIMES, FTP_TIMES, Y, Y], LEAVE),
    all(("no_perms", "--no-perms"), Metadata),
    all(("no_times", "--no-times"), Metadata),
    all(("no_links", "--no-links"), Protects),
    all(("dry_run", "-n"), Protects),
    all(("itemize_changes", "-i"), Convenience),
    all(("verbose", "-v"), Convenience),
    all(("quiet", "-q"), Convenience),
    all(("json", "--json"), Convenience),
    all(("json_lines", "--json-lines"), Convenience),
    all(("eight_bit", "-8"), Convenience),
    row(("backup", "-b"), Protects, &[Y, Y, Y, Y, Y, Y, Y, Y, Y, R, Y, Y, Y, Y, Y, Y], ("files of a bucket cannot be renamed", "leave it out")),
    row(("suffix", "--suffix"), Convenience,
        &[KEEPING, KEEPING, KEEPING, KEEPING, KEEPING, KEEPING, KEEPING, KEEPING, KEEPING, N, KEEPING, KEEPING, KEEPING, KEEPING, KEEPING, KEEPING],
        ("nothing is kept without -b", "leave it out")),
    all(("update", "-u"), Protects),
    all(("existing", "--existing"), Protects),
    all(("ignore_existing", "--ignore-existing"), Protects),
    all(("size_only", "--size-only"), Protects),
    all(("ignore_times", "-I"), Protects),
    all(("checksum", "-c"), Protects),
    all(("files_from", "--files-from"), Protects),
    all(("from0", "-0"), Protects),
    all(("modify_window", "--modify-window"), Protects),
    all(("max_size", "--max-size"), Protects),
    all(("min_size", "--min-size"), Protects),
    all(("exclude", "--exclude"), Protects),
    all(("include", "--include"), Protects),
    all(("exclude-from", "--exclude-from"), Protects),
    all(("include-from", "--include-from"), Protects),
    all(("filter", "-f"), Protects),
    all(("delete", "--delete"), Protects),
    all(("delete_excluded", "--delete-excluded"), Protects),
    // A limit of deletions holds where nothing is deleted.
    all(("max_delete", "--max-delete"), Protects),
    row(("delete_all", "--delete-all"), Protects, &[DELETING; 16], ("nothing is deleted without --delete", "--delete --delete-all")),
    all(("remove_source_files", "--remove-source-files"), Protects),
    ssh(("rsh", "-e"), Convenience),
    ssh(("ssh_port", "--ssh-port"), Convenience),
    ssh(("identity", "--identity"), Convenience),
    ssh(("jump", "--jump"), Protects),
    ssh(("ssh_config", "--ssh-config"), Convenience),
    ssh(("ssh_option", "--ssh-option"), Convenience),
    ssh(("ssh_program", "--ssh"), Convenience),
    ssh(("remote_path", "--remote-path"), Convenience),
    ssh(("bootstrap", "--bootstrap"), Convenience),
    ssh(("far_binary", "--far-binary"), Convenience),
    all(("no_udp", "--no-udp"), Protects),
    row(("via", "--via"), Protects, &[N, Y, Y, Y, Y, Y, N, N, N, N, N, N, N, N, Y, Y], LEAVE),
    row(("pipes", "--connections"), Convenience, &[N, Y, Y, N, Y, Y, N, N, Y, Y, N, N, N, N, Y, Y], LEAVE),
    row(("v4", "-4"), Protects, &[N, Y, Y, Y, Y, Y, Y, Y, N, N, Y, Y, Y, Y, Y, Y], ("", "an IPv4 address in place of the name")),
    row(("v6", "-6"), Protects, &[N, Y, Y, Y, Y, Y, Y, Y, N, N, Y, Y, Y, Y, Y, Y], ("", "an IPv6 address in place of the name")),
    all(("rate", "--rate"), Protects),
    all(("bwlimit", "--bwlimit"), Protects),
    row(("timeout", "--timeout"), Convenience, &[N, Y, Y, Y, Y, Y, Y, Y, Y, Y, Y, Y, Y, Y, Y, Y], LEAVE),
    row(("endpoint", "--endpoint"), Convenience, &[N, N, N, N, N, N, N, N, Y, Y, N, N, N, N, N, N], LEAVE),
];
