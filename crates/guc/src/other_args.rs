//! globus-url-copy's options that are not options of `hikyaku guc`: each asks for what is always so, or is refused with what
//! comes nearest.

use hikyaku_console::Role::{Always, Refused};
use hikyaku_console::Value::{None as No, One};
use hikyaku_console::{Other, Others, Role, Value};

/// globus-url-copy.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GlobusUrlCopy;

impl Others for GlobusUrlCopy {
    const OPTIONS: &'static [Other] = OPTIONS;
}

const NO_SUBJECT: Role = Refused(
    "a server's certificate has to be valid for the host name of its URL",
    "that name in the URL",
);
const NO_CREDENTIAL: Role = Refused("", "X509_USER_PROXY=FILE in the environment");
const NO_MODULE: Role = Refused("", "the server's own storage module, without it");
const NO_STACK: Role = Refused("data go by TCP from and to files", "without it");
const NO_ASSERTION: Role = Refused("assertions are not sent", "a certificate that may log in");
const NO_PIPE: Role = Refused("no command is run on a server", "a file");
const NO_DUMP: Role = Refused("no list of files is written", "-c, and the errors it tells");

/// An option by its names: the long one, another long one, a short one, and as its users know it.
const fn option(
    (id, alias, short, flag): (&'static str, &'static [&'static str], Option<char>, &'static str),
    value: Value,
    role: Role,
) -> Other {
    Other { id, aliases: alias, short, value, role, flag }
}

const OPTIONS: &[Other] = &[
    option(("rst", &["restart"], None, "-rst (-restart)"), No, Always),
    option(("fast", &[], None, "-fast"), No, Always),
    option(("binary", &[], Some('b'), "-b (-binary)"), No, Always),
    option(("no-g2", &["nogridftp2"], None, "-no-g2 (-nogridftp2)"), No, Always),
    option(("ipv6", &[], None, "-ipv6"), No, Always),
    option(
        ("ascii", &[], Some('a'), "-a (-ascii)"),
        No,
        Refused("files are copied as they are", "without it"),
    ),
    option(
        ("time", &[], Some('t'), "-t"),
        One,
        Refused("", "timeout SECONDS hikyaku guc ...; the same command goes on"),
    ),
    option(
        ("rst-timeout", &[], None, "-rst-timeout"),
        One,
        Refused("", "-rst-retries N with -rst-interval TIME, whose product is the time"),
    ),
    option(("df", &["dumpfile"], None, "-df (-dumpfile)"), One, NO_DUMP),
    option(("do", &["dump-only"], None, "-do (-dump-only)"), One, NO_DUMP),
    option(
        ("rp", &["relative-paths"], None, "-rp (-relative-paths)"),
        No,
        Refused("", "ftp://HOST/~/PATH for a path below the home directory"),
    ),
    option(("subject", &[], Some('s'), "-s (-subject)"), One, NO_SUBJECT),
    option(("ss", &["source-subject"], None, "-ss (-source-subject)"), One, NO_SUBJECT),
    option(("ds", &["dest-subject"], None, "-ds (-dest-subject)"), One, NO_SUBJECT),
    option(
        ("notpt", &["no-third-party-transfers"], None, "-notpt (-no-third-party-transfers)"),
        No,
        Refused(
            "data of two servers never pass this host",
            "two copies, the first one to this host",
        ),
    ),
    option(
        ("sbs", &["striped-block-size"], None, "-sbs (-striped-block-size)"),
        One,
        Refused("data nodes send blocks of 1 MiB in turn", "without it"),
    ),
    option(("udt", &[], None, "-udt"), No, NO_STACK),
    option(
        ("dp", &["delayed-pasv"], None, "-dp (-delayed-pasv)"),
        No,
        Refused("a server tells its address before it is told a file", "without it"),
    ),
    option(("mn", &["module-name"], None, "-mn (-module-name)"), One, NO_MODULE),
    option(("mp", &["module-parameters"], None, "-mp (-module-parameters)"), One, NO_MODULE),
    option(("smn", &["src-module-name"], None, "-smn (-src-module-name)"), One, NO_MODULE),
    option(
        ("smp", &["src-module-parameters"], None, "-smp (-src-module-parameters)"),
        One,
        NO_MODULE,
    ),
    option(("dmn", &["dst-module-name"], None, "-dmn (-dst-module-name)"), One, NO_MODULE),
    option(
        ("dmp", &["dst-module-parameters"], None, "-dmp (-dst-module-parameters)"),
        One,
        NO_MODULE,
    ),
    option(("aa", &["authz-assert"], None, "-aa (-authz-assert)"), One, NO_ASSERTION),
    option(("saa", &["src-authz-assert"], None, "-saa (-src-authz-assert)"), One, NO_ASSERTION),
    option(("daa", &["dst-authz-assert"], None, "-daa (-dst-authz-assert)"), One, NO_ASSERTION),
    option(
        ("cache-aa", &["cache-authz-assert"], None, "-cache-aa (-cache-authz-assert)"),
        No,
        NO_ASSERTION,
    ),
    option(
        ("cache-saa", &["cache-src-authz-assert"], None, "-cache-saa (-cache-src-authz-assert)"),
        No,
        NO_ASSERTION,
    ),
    option(
        ("cache-daa", &["cache-dst-authz-assert"], None, "-cache-daa (-cache-dst-authz-assert)"),
        No,
        NO_ASSERTION,
    ),
    option(
        ("nlb", &["nl-bottleneck"], None, "-nlb (-nl-bottleneck)"),
        No,
        Refused("", "-vb, or hikyaku doctor, which tells what limits a path"),
    ),
    option(("src-pipe", &["SP"], None, "-src-pipe (-SP)"), One, NO_PIPE),
    option(("dst-pipe", &["DP"], None, "-dst-pipe (-DP)"), One, NO_PIPE),
    option(("pipe", &[], None, "-pipe"), One, NO_PIPE),
    option(
        ("dcstack", &["data-channel-stack"], None, "-dcstack (-data-channel-stack)"),
        One,
        NO_STACK,
    ),
    option(
        ("fsstack", &["file-system-stack"], None, "-fsstack (-file-system-stack)"),
        One,
        NO_STACK,
    ),
    option(
        (
            "src-dcstack",
            &["source-data-channel-stack"],
            None,
            "-src-dcstack (-source-data-channel-stack)",
        ),
        One,
        NO_STACK,
    ),
    option(
        (
            "src-fsstack",
            &["source-file-system-stack"],
            None,
            "-src-fsstack (-source-file-system-stack)",
        ),
        One,
        NO_STACK,
    ),
    option(
        (
            "dst-dcstack",
            &["dest-data-channel-stack"],
            None,
            "-dst-dcstack (-dest-data-channel-stack)",
        ),
        One,
        NO_STACK,
    ),
    option(
        (
            "dst-fsstack",
            &["dest-file-system-stack"],
            None,
            "-dst-fsstack (-dest-file-system-stack)",
        ),
        One,
        NO_STACK,
    ),
    option(("cred", &[], None, "-cred"), One, NO_CREDENTIAL),
    option(("src-cred", &["sc"], None, "-src-cred (-sc)"), One, NO_CREDENTIAL),
    option(("dst-cred", &["dc"], None, "-dst-cred (-dc)"), One, NO_CREDENTIAL),
    option(
        ("data-cred", &[], None, "-data-cred"),
        One,
        Refused("each run makes a key of its own for data connections", "without it"),
    ),
    option(
        ("af", &["alias-file"], None, "-af (-alias-file)"),
        One,
        Refused("", "one command for each host"),
    ),
    option(
        ("checksum-alg", &[], None, "-checksum-alg"),
        One,
        Refused("", "-cksm sha256, which compares each copy"),
    ),
    option(
        ("verify-checksum", &[], None, "-verify-checksum"),
        No,
        Refused("", "-cksm sha256, which compares each copy"),
    ),
    option(("usage", &[], None, "-usage"), No, Refused("", "--help")),
    option(("versions", &[], None, "-versions"), No, Refused("", "--version")),
];
