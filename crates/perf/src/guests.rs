//! Options of iperf3 that `hikyaku perf` does not have.

use hikyaku_console::Role::{Always, Idle, Refused};
use hikyaku_console::Value::{None as No, One};
use hikyaku_console::{Other, Others, other};

/// iperf3.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Iperf3;

impl Others for Iperf3 {
    const OPTIONS: &'static [Other] = OPTIONS;
}

#[rustfmt::skip]
const OPTIONS: &[Other] = &[
    other(("udp", Some('u')), No, "-u (--udp)", Idle("the transport is hikyaku's, over UDP")),
    other(("-w", Some('w')), One, "-w", Idle("windows grow by themselves, up to --window")),
    other(("no-delay", Some('N')), No, "-N (--no-delay)", Always),
    other(("zerocopy", Some('Z')), No, "-Z (--zerocopy)", Always),
    other(("get-server-output", None), No, "--get-server-output", Idle("both ends print the receiver's count")),
    other(("udp-counters-64bit", None), No, "--udp-counters-64bit", Always),
    other(("forceflush", None), No, "--forceflush", Always),
    other(("format", Some('f')), One, "-f (--format)", Idle("figures are in bits")),
    other(("set-mss", Some('M')), One, "-M (--set-mss)", Refused("the size of packets is found on the path", "leave it out")),
    other(("tos", Some('S')), One, "-S (--tos)", Refused("", "--dscp CLASS")),
    other(("congestion", Some('C')), One, "-C (--congestion)", Refused("", "--policy POLICY, or --compete tcp:1:NAME for TCP's")),
    other(("blockcount", Some('k')), One, "-k (--blockcount)", Refused("", "-n BYTES")),
    other(("cport", None), One, "--cport", Refused("", "-B ADDRESS")),
    other(("daemon", Some('D')), No, "-D (--daemon)", Refused("", "systemd-run hikyaku perf -s")),
    other(("file", Some('F')), One, "-F (--file)", Refused("", "hikyaku cp FILE HOST:")),
    other(("pidfile", Some('I')), One, "-I (--pidfile)", Refused("", "leave it out")),
    other(("affinity", Some('A')), One, "-A (--affinity)", Refused("", "--cpu N")),
    other(("server-bitrate-limit", None), One, "--server-bitrate-limit", Refused("", "--max-rate RATE")),
    other(("server-max-duration", None), One, "--server-max-duration", Refused("", "--max-time SECONDS")),
    other(("fq-rate", None), One, "--fq-rate", Refused("", "--wire-rate RATE")),
    other(("rate", None), One, "--rate", Refused("", "-b RATE")),
    other(("connect-timeout", None), One, "--connect-timeout", Refused("", "timeout SECONDS hikyaku perf")),
    other(("sctp", None), No, "--sctp", Refused("", "leave it out")),
    other(("flowlabel", Some('L')), One, "-L (--flowlabel)", Refused("", "leave it out")),
    other(("timestamps", None), No, "--timestamps", Refused("", "--json-lines")),
];
