//! Options of ssh that `hikyaku proxy` does not have.

use hikyaku_console::Role::{Always, Idle, Refused};
use hikyaku_console::Value::{None as No, One};
use hikyaku_console::{Other, Others, other};

/// ssh.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ssh;

impl Others for Ssh {
    const OPTIONS: &'static [Other] = OPTIONS;
}

#[rustfmt::skip]
const OPTIONS: &[Other] = &[
    other(("-T", Some('T')), No, "-T", Always),
    other(("-n", Some('n')), No, "-n", Always),
    other(("-a", Some('a')), No, "-a", Always),
    other(("-x", Some('x')), No, "-x", Always),
    other(("-k", Some('k')), No, "-k", Always),
    other(("-C", Some('C')), No, "-C", Idle("data are sent as they are")),
    other(("-A", Some('A')), No, "-A", Idle("no command is run on the far side")),
    other(("-c", Some('c')), One, "-c", Idle("ssh carries the start-up only")),
    other(("-m", Some('m')), One, "-m", Idle("ssh carries the start-up only")),
    other(("-t", Some('t')), No, "-t", Refused("no command is run on the far side", "ssh HOST")),
    other(("-X", Some('X')), No, "-X", Refused("no command is run on the far side", "ssh -X HOST")),
    other(("-Y", Some('Y')), No, "-Y", Refused("no command is run on the far side", "ssh -Y HOST")),
    other(("-s", Some('s')), No, "-s", Refused("no command is run on the far side", "ssh -s HOST")),
    other(("-W", Some('W')), One, "-W", Refused("", "-L PORT:HOST:HOSTPORT")),
    other(("-w", Some('w')), One, "-w", Refused("packets are not carried, only connections", "-L, -R, -D or --http")),
    other(("-l", Some('l')), One, "-l", Refused("", "USER@HOST")),
    other(("-S", Some('S')), One, "-S", Refused("", "--ssh PROGRAM")),
    other(("-E", Some('E')), One, "-E", Refused("", "2>FILE")),
    other(("-O", Some('O')), One, "-O", Refused("", "hikyaku proxy status, on, off or drain")),
    other(("-M", Some('M')), No, "-M", Refused("a gateway is reached by its name", "hikyaku proxy status")),
    other(("-b", Some('b')), One, "-b", Refused("", "-o BindAddress=ADDRESS")),
];
