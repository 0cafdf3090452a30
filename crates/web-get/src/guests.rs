//! Options of curl, wget and aria2c that `hikyaku get` does not have.

use hikyaku_console::Role::{Always, Idle, Refused};
use hikyaku_console::Value::{None as No, One};
use hikyaku_console::{Other, Others, other};

/// curl, wget and aria2c.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Guests;

impl Others for Guests {
    const OPTIONS: &'static [Other] = OPTIONS;
}

#[rustfmt::skip]
const OPTIONS: &[Other] = &[
    other(("location", Some('L')), No, "-L (--location)", Always),
    other(("remote-name", Some('O')), No, "-O (--remote-name)", Always),
    other(("remote-name-all", None), No, "--remote-name-all", Always),
    other(("continue", Some('c')), No, "-c (--continue)", Always),
    other(("continue-at", Some('C')), One, "-C (--continue-at)", Always),
    other(("show-error", Some('S')), No, "-S (--show-error)", Always),
    other(("fail", None), No, "--fail", Always),
    other(("globoff", Some('g')), No, "-g (--globoff)", Always),
    other(("parallel", Some('Z')), No, "-Z (--parallel)", Always),
    other(("no-clobber", None), No, "--no-clobber", Always),
    other(("file-allocation", None), One, "--file-allocation", Idle("space is reserved by the file system")),
    other(("compressed", None), No, "--compressed", Idle("files are fetched as the servers have them")),
    other(("progress-bar", Some('#')), No, "-# (--progress-bar)", Idle("the transfer is shown on a terminal")),
    other(("silent", Some('s')), No, "-s (--silent)", Refused("", "-q")),
    other(("verbose", Some('v')), No, "-v (--verbose)", Refused("", "--vb")),
    other(("insecure", Some('k')), No, "-k (--insecure)", Refused("certificates are always checked", "--ca FILE")),
    other(("no-check-certificate", None), No, "--no-check-certificate", Refused("certificates are always checked", "--ca FILE")),
    other(("cacert", None), One, "--cacert", Refused("", "--ca FILE")),
    other(("ca-certificate", None), One, "--ca-certificate", Refused("", "--ca FILE")),
    other(("referer", Some('e')), One, "-e (--referer)", Refused("", "-H 'Referer: URL'")),
    other(("cookie", Some('b')), One, "-b (--cookie)", Refused("", "-H 'Cookie: NAME=VALUE'")),
    other(("request", Some('X')), One, "-X (--request)", Refused("files are only fetched", "curl -X")),
    other(("range", Some('r')), One, "-r (--range)", Refused("files are fetched whole", "curl -r")),
    other(("input-file", Some('i')), One, "-i (--input-file)", Refused("", "xargs hikyaku get <FILE")),
    other(("directory-prefix", Some('P')), One, "-P (--directory-prefix)", Refused("", "-d DIR")),
    other(("output-dir", None), One, "--output-dir", Refused("", "-d DIR")),
    other(("output-document", None), One, "--output-document", Refused("", "-o FILE")),
    other(("-x", Some('x')), One, "-x", Refused("aria2c's is the number of connections, curl's is a proxy", "-n N, or --proxy URL")),
    other(("max-connection-per-server", None), One, "--max-connection-per-server", Refused("", "-n N")),
    other(("split", None), One, "--split", Refused("", "-n N")),
    other(("max-concurrent-downloads", None), One, "--max-concurrent-downloads", Refused("", "-j N")),
    other(("max-download-limit", None), One, "--max-download-limit", Refused("", "--limit-rate RATE")),
    other(("max-overall-download-limit", None), One, "--max-overall-download-limit", Refused("", "--limit-rate RATE")),
    other(("rate", None), One, "--rate", Refused("", "--limit-rate RATE")),
    other(("checksum", None), One, "--checksum", Refused("", "--sha256 HEX")),
    other(("retry", None), One, "--retry", Refused("", "--retries N")),
    other(("tries", Some('t')), One, "-t (--tries)", Refused("", "--retries N")),
    other(("connect-timeout", None), One, "--connect-timeout", Refused("", "--timeout TIME")),
    other(("max-time", Some('m')), One, "-m (--max-time)", Refused("", "timeout SECONDS hikyaku get URL")),
    other(("timestamping", Some('N')), No, "-N (--timestamping)", Refused("times are not compared", "-f, which replaces the file")),
];
