//! rsync's options that are not options of `hikyaku sync`: each asks for what is always so, has no effect for a reason, or is
//! refused with what comes nearest.

use hikyaku_console::Role::{Always, Idle, Refused};
use hikyaku_console::Value::{None as No, One};
use hikyaku_console::{Other, Others, Role, other};

/// rsync.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rsync;

impl Others for Rsync {
    const OPTIONS: &'static [Other] = OPTIONS;
}

const NOT_COMPRESSED: Role = Idle("data are sent as they are");
const LISTED: Role = Idle("directories are listed while others are compared");
const NO_OWNERS: Role =
    Refused("owners and devices are not kept", "hikyaku cp -a, which keeps owners by number");
const NO_LINKS: Role =
    Refused("links stay links (-l) or are left out", "hikyaku cp -r, which follows them");
const NO_APPEND: Role =
    Refused("a file is made anew", "without it: an interrupted run is resumed by itself");
const NO_PLACE: Role = Refused("unfinished files stand beside their names", "leave it out");
const NO_BASE: Role =
    Refused("files are compared with DST only", "hikyaku sync to a copy of that directory");
const NO_BATCH: Role =
    Refused("hikyaku does not speak rsync's protocol", "hikyaku sync to each target");

#[rustfmt::skip]
const OPTIONS: &[Other] = &[
    other(("compress", Some('z')), No, "-z (--compress)", NOT_COMPRESSED),
    other(("no-compress", None), No, "--no-compress", Always),
    other(("compress-level", None), One, "--compress-level", NOT_COMPRESSED),
    other(("compress-choice", None), One, "--compress-choice", NOT_COMPRESSED),
    other(("partial", None), No, "--partial", Always),
    other(("progress", None), No, "--progress", Idle("the transfer is shown on a terminal")),
    other(("-P", Some('P')), No, "-P", Idle("the transfer is shown on a terminal, and a copy that was interrupted is resumed")),
    other(("info", None), One, "--info", Idle("the transfer is shown on a terminal")),
    other(("stats", None), No, "--stats", Idle("-v says what was copied")),
    other(("human-readable", Some('h')), No, "-h (--human-readable)", Idle("sizes are printed as they are")),
    other(("whole-file", Some('W')), No, "-W (--whole-file)", Always),
    other(("no-whole-file", None), No, "--no-whole-file", Idle("whole files are sent")),
    other(("inc-recursive", None), No, "--inc-recursive", LISTED),
    other(("no-inc-recursive", None), No, "--no-inc-recursive", LISTED),
    other(("protect-args", Some('s')), No, "-s (--protect-args)", Always),
    other(("secluded-args", None), No, "--secluded-args", Always),
    other(("fsync", None), No, "--fsync", Always),
    other(("no-owner", None), No, "--no-owner", Always),
    other(("no-o", None), No, "--no-o", Always),
    other(("no-group", None), No, "--no-group", Always),
    other(("no-g", None), No, "--no-g", Always),
    other(("no-devices", None), No, "--no-devices", Always),
    other(("no-specials", None), No, "--no-specials", Always),
    other(("no-D", None), No, "--no-D", Always),
    other(("numeric-ids", None), No, "--numeric-ids", Idle("owners and groups are not kept")),
    other(("owner", Some('o')), No, "-o (--owner)", NO_OWNERS),
    other(("group", Some('g')), No, "-g (--group)", NO_OWNERS),
    other(("chown", None), One, "--chown", NO_OWNERS),
    other(("devices", None), No, "--devices", NO_OWNERS),
    other(("specials", None), No, "--specials", NO_OWNERS),
    other(("-D", Some('D')), No, "-D", NO_OWNERS),
    other(("hard-links", Some('H')), No, "-H (--hard-links)", Refused("hard links become files of their own", "leave it out")),
    other(("acls", Some('A')), No, "-A (--acls)", Refused("access lists are not kept", "-p, for permission bits")),
    other(("xattrs", Some('X')), No, "-X (--xattrs)", Refused("extended attributes are not kept", "hikyaku cp -a")),
    other(("sparse", Some('S')), No, "-S (--sparse)", Refused("holes are not kept", "hikyaku cp -a")),
    other(("executability", Some('E')), No, "-E (--executability)", Refused("", "-p")),
    other(("chmod", None), One, "--chmod", Refused("", "-p, or chmod afterwards")),
    other(("atimes", Some('U')), No, "-U (--atimes)", Refused("times of access are not kept", "-t")),
    other(("omit-dir-times", Some('O')), No, "-O (--omit-dir-times)", Refused("directories get the times of the source", "leave it out")),
    other(("omit-link-times", Some('J')), No, "-J (--omit-link-times)", Refused("links get the times of the source", "leave it out")),
    other(("copy-links", Some('L')), No, "-L (--copy-links)", NO_LINKS),
    other(("copy-dirlinks", Some('k')), No, "-k (--copy-dirlinks)", NO_LINKS),
    other(("keep-dirlinks", Some('K')), No, "-K (--keep-dirlinks)", Refused("links at the target are never followed", "the directory itself as DST")),
    other(("copy-unsafe-links", None), No, "--copy-unsafe-links", NO_LINKS),
    other(("safe-links", None), No, "--safe-links", NO_LINKS),
    other(("dirs", Some('d')), No, "-d (--dirs)", Refused("", "-r with --exclude '/*/*'")),
    other(("relative", Some('R')), No, "-R (--relative)", Refused("", "the same directories in DST")),
    other(("one-file-system", Some('x')), No, "-x (--one-file-system)", Refused("", "--exclude /MOUNT/, for each file system that is mounted below")),
    other(("prune-empty-dirs", Some('m')), No, "-m (--prune-empty-dirs)", Refused("", "leave it out")),
    other(("inplace", None), No, "--inplace", Refused("a file is made anew", "hikyaku cp --inplace")),
    other(("append", None), No, "--append", NO_APPEND),
    other(("append-verify", None), No, "--append-verify", NO_APPEND),
    other(("partial-dir", None), One, "--partial-dir", NO_PLACE),
    other(("temp-dir", Some('T')), One, "-T (--temp-dir)", NO_PLACE),
    other(("backup-dir", None), One, "--backup-dir", Refused("", "-b --suffix SUFFIX")),
    other(("link-dest", None), One, "--link-dest", NO_BASE),
    other(("compare-dest", None), One, "--compare-dest", NO_BASE),
    other(("copy-dest", None), One, "--copy-dest", NO_BASE),
    other(("fuzzy", Some('y')), No, "-y (--fuzzy)", NO_BASE),
    other(("ignore-errors", None), No, "--ignore-errors", Refused("nothing is deleted in a directory that was not read whole", "--exclude /THAT/")),
    other(("force", None), No, "--force", Refused("a directory gives way to a file only if it is deleted", "--delete")),
    other(("delete-missing-args", None), No, "--delete-missing-args", Refused("", "--delete on the directory above")),
    other(("cvs-exclude", Some('C')), No, "-C (--cvs-exclude)", Refused("", "--exclude-from FILE")),
    other(("-F", Some('F')), No, "-F", Refused("files of rules in each directory are not read", "--exclude-from FILE")),
    other(("write-batch", None), One, "--write-batch", NO_BATCH),
    other(("read-batch", None), One, "--read-batch", NO_BATCH),
    other(("daemon", None), No, "--daemon", Refused("hikyaku does not speak rsync's protocol", "hikyaku serve")),
    other(("rsync-path", None), One, "--rsync-path", Refused("no rsync is started", "--remote-path PATH, where hikyaku is")),
    other(("block-size", Some('B')), One, "-B (--block-size)", Refused("whole files are sent", "leave it out")),
    other(("out-format", None), One, "--out-format", Refused("", "-i")),
    other(("log-file", None), One, "--log-file", Refused("", "-i >FILE")),
    other(("list-only", None), No, "--list-only", Refused("", "hikyaku sftp HOST, and ls -l")),
    other(("password-file", None), One, "--password-file", Refused("ssh knows who you are", "-e 'ssh -i KEY'")),
    other(("port", None), One, "--port", Refused("", "-e 'ssh -p PORT'")),
];
