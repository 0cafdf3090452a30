//! Options of scp, rsync and cp that `hikyaku cp` does not have.

use hikyaku_console::Role::{Always, Idle, Refused};
use hikyaku_console::Value::{None as No, One};
use hikyaku_console::{Other, Others, other};

/// scp, rsync, and cp of GNU.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Guests;

impl Others for Guests {
    const OPTIONS: &'static [Other] = OPTIONS;
}

#[rustfmt::skip]
const OPTIONS: &[Other] = &[
    other(("-X", Some('X')), One, "-X", Idle("the number and size of requests are chosen by the transfer")),
    other(("-z", Some('z')), No, "-z", Idle("data are sent as they are")),
    other(("progress", None), No, "--progress", Idle("the transfer is shown on a terminal")),
    other(("partial", None), No, "--partial", Always),
    other(("human-readable", None), No, "--human-readable", Always),
    other(("whole-file", None), No, "--whole-file", Always),
    other(("bwlimit", None), One, "--bwlimit", Refused("", "--rate 10MB")),
    other(("limit-rate", None), One, "--limit-rate", Refused("", "--rate 10MB")),
    other(("perms", None), No, "--perms", Refused("", "-p")),
    other(("rsh", Some('e')), One, "-e (--rsh)", Refused("", "-S PROGRAM, -P PORT or -o OPTION")),
    other(("links", None), No, "--links", Refused("", "-a, which keeps links")),
    other(("delete", None), No, "--delete", Refused("a copy deletes nothing", "hikyaku sync -r --delete")),
    other(("checksum", None), No, "--checksum", Refused("", "hikyaku sync -c")),
    other(("size-only", None), No, "--size-only", Refused("", "hikyaku sync --size-only")),
    other(("existing", None), No, "--existing", Refused("", "hikyaku sync --existing")),
    other(("remove-source-files", None), No, "--remove-source-files", Refused("", "hikyaku sync --remove-source-files")),
    other(("max-size", None), One, "--max-size", Refused("", "hikyaku sync --max-size SIZE")),
    other(("min-size", None), One, "--min-size", Refused("", "hikyaku sync --min-size SIZE")),
    other(("backup", None), No, "--backup", Refused("", "hikyaku sync -b")),
    other(("no-clobber", None), No, "--no-clobber", Refused("", "--ignore-existing")),
    other(("force", Some('f')), No, "-f (--force)", Refused("files are replaced without it", "leave it out")),
    other(("transfers", None), One, "--transfers", Idle("several files are copied at once")),
];
