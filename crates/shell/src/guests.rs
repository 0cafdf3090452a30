//! Options of lftp, psftp, scp and rsync that `hikyaku sftp` does not have. It has all of OpenSSH's sftp.

use hikyaku_console::Role::{Always, Idle, Refused};
use hikyaku_console::Value::{None as No, One};
use hikyaku_console::{Other, Others, other};

/// lftp, psftp, scp and rsync.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Guests;

impl Others for Guests {
    const OPTIONS: &'static [Other] = OPTIONS;
}

/// An option with another long name, which options of one letter have within the program.
const fn also(aliases: &'static [&'static str], option: Other) -> Other {
    Other { aliases, ..option }
}

#[rustfmt::skip]
const OPTIONS: &[Other] = &[
    other(("-2", Some('2')), No, "-2", Always),
    other(("-1", Some('1')), No, "-1", Refused("version 1 of ssh is not secure", "leave it out")),
    other(("-z", Some('z')), No, "-z", Refused("", "-C, which compresses what goes through ssh")),
    other(("user", Some('u')), One, "-u (--user)", Refused("", "USER@HOST")),
    other(("password", Some('w')), One, "-pw (--password)", Refused("all users of this host can read a command line", "-i FILE, or ssh-agent")),
    other(("-e", Some('e')), One, "-e", Refused("", "echo 'COMMAND' | hikyaku sftp -b - HOST")),
    other(("command", None), One, "--command", Refused("", "echo 'COMMAND' | hikyaku sftp -b - HOST")),
    also(&["batch"], other(("batch-file", None), One, "--batch", Refused("", "-b FILE"))),
    other(("debug", Some('d')), No, "-d (--debug)", Refused("", "-vv")),
    other(("-n", Some('n')), No, "-n", Refused("a session changes what its commands say", "hikyaku cp -n")),
    other(("-t", Some('t')), No, "-t", Refused("", "-p, which keeps times and modes")),
    other(("-T", Some('T')), No, "-T", Idle("each name that the server sends is checked")),
    other(("-O", Some('O')), No, "-O", Refused("", "hikyaku cp")),
    other(("-k", Some('k')), No, "-k", Refused("the host key is always checked", "-o StrictHostKeyChecking=accept-new")),
    other(("bwlimit", None), One, "--bwlimit", Refused("", "--rate 10MB")),
    other(("limit-rate", None), One, "--limit-rate", Refused("", "--rate 10MB")),
    also(&["resume"], other(("continue", None), No, "--continue (--resume)", Refused("", "-a"))),
    other(("append-verify", None), No, "--append-verify", Refused("", "-a")),
    other(("partial", None), No, "--partial", Always),
    other(("progress", None), No, "--progress", Idle("the transfer is shown on a terminal")),
    also(&["recursive"], other(("recurse", None), No, "--recursive", Refused("", "-r"))),
    also(&["preserve"], other(("times", None), No, "--times (--preserve)", Refused("", "-p"))),
    other(("parallel", None), One, "--parallel", Refused("", "-R COUNT, the requests at once")),
    other(("streams", None), One, "--streams", Refused("", "-R COUNT, the requests at once")),
    other(("block-size", None), One, "--block-size", Refused("", "-B SIZE")),
    other(("delete", None), No, "--delete", Refused("a session deletes what its commands say", "hikyaku sync -r --delete")),
    other(("exclude", None), One, "--exclude", Refused("", "hikyaku cp -r --exclude PATTERN")),
    other(("include", None), One, "--include", Refused("", "hikyaku cp -r --include PATTERN")),
    other(("dry-run", None), No, "--dry-run", Refused("a session changes what its commands say", "hikyaku cp -n")),
];
