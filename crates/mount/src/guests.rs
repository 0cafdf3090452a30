//! Options of sshfs and mount(8) that `hikyaku mount` does not have.

use hikyaku_console::Role::{Always, Idle, Refused};
use hikyaku_console::Value::{None as No, One};
use hikyaku_console::{Other, Others, other};

/// sshfs and mount(8).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Guests;

impl Others for Guests {
    const OPTIONS: &'static [Other] = OPTIONS;
}

#[rustfmt::skip]
const OPTIONS: &[Other] = &[
    other(("-s", Some('s')), No, "-s", Idle("the mount answers several requests at once")),
    other(("-C", Some('C')), No, "-C", Idle("data are sent as they are")),
    other(("-n", Some('n')), No, "-n", Always),
    other(("-w", Some('w')), No, "-w", Always),
    other(("-r", Some('r')), No, "-r", Refused("", "-o ro")),
    other(("read-only", None), No, "--read-only", Refused("", "-o ro")),
    other(("-p", Some('p')), One, "-p", Refused("", "hikyaku://HOST:PORT/PATH")),
    other(("-t", Some('t')), One, "-t", Refused("", "mount -t hikyaku SOURCE DIRECTORY")),
    other(("-d", Some('d')), No, "-d (--debug)", Refused("", "-f")),
    other(("-F", Some('F')), One, "-F", Refused("a daemon is reached without ssh", "leave it out")),
];
