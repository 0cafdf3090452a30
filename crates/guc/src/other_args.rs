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
const NO_SYNC: Role =
    Refused("each file is copied, whatever the target has", "the names of those that are missing");
const NO_DUMP: Role = Refused("no list of files is written", "-c, and the errors it tells");

/// An option by its names: the long one, another long one, a short one, and as its users know it.
const fn other(
    (id, alias, short, flag): (&'static str, &'static [&'static str], Option<char>, &'static str),
    value: Value,
    role: Role,
) -> Other {
    Other { id, aliases: alias, short, value, role, flag }
}

const OPTIONS: &[Other] = &[
    other(("rst", &["restart"], None, "-rst (-restart)"), No, Always),
    other(("fast", &[], None, "-fast"), No, Always),
    other(("binary", &[], Some('b'), "-b (-binary)"), No, Always),
    other(("no-g2", &["nogridftp2"], None, "-no-g2 (-nogridftp2)"), No, Always),
    other(("ipv6", &[], None, "-ipv6"), No, Always),
    other(
        ("ascii", &[], Some('a'), "-a (-ascii)"),
        No,
        Refused("files are copied as they are", "without it"),
    ),
    other(
        ("file-of-urls", &[], Some('f'), "-f"),
        One,
        Refused("", "while read -r FROM TO; do hikyaku guc \"$FROM\" \"$TO\"; done <FILE"),
    ),
    other(
        ("time", &[], Some('t'), "-t"),
        One,
        Refused("", "timeout SECONDS hikyaku guc ...; the same command goes on"),
    ),
    other(
        ("rst-timeout", &[], None, "-rst-timeout"),
        One,
        Refused("", "-rst-retries N with -rst-interval TIME, whose product is the time"),
    ),
    other(("df", &["dumpfile"], None, "-df (-dumpfile)"), One, NO_DUMP),
    other(("do", &["dump-only"], None, "-do (-dump-only)"), One, NO_DUMP),
    other(
        ("rp", &["relative-paths"], None, "-rp (-relative-paths)"),
        No,
        Refused("", "ftp://HOST/~/PATH for a path below the home directory"),
    ),
    other(("subject", &[], Some('s'), "-s (-subject)"), One, NO_SUBJECT),
    other(("ss", &["source-subject"], None, "-ss (-source-subject)"), One, NO_SUBJECT),
    other(("ds", &["dest-subject"], None, "-ds (-dest-subject)"), One, NO_SUBJECT),
    other(
        ("notpt", &["no-third-party-transfers"], None, "-notpt (-no-third-party-transfers)"),
        No,
        Refused(
            "data of two servers never pass this host",
            "two copies, the first one to this host",
        ),
    ),
    other(
        ("list", &[], None, "-list"),
        One,
        Refused("no listing is printed", "-r, to copy what is there"),
    ),
    other(
        ("sbs", &["striped-block-size"], None, "-sbs (-striped-block-size)"),
        One,
        Refused("data nodes send blocks of 1 MiB in turn", "without it"),
    ),
    other(("udt", &[], None, "-udt"), No, NO_STACK),
    other(
        ("dp", &["delayed-pasv"], None, "-dp (-delayed-pasv)"),
        No,
        Refused("a server tells its address before it is told a file", "without it"),
    ),
    other(("mn", &["module-name"], None, "-mn (-module-name)"), One, NO_MODULE),
    other(("mp", &["module-parameters"], None, "-mp (-module-parameters)"), One, NO_MODULE),
    other(("smn", &["src-module-name"], None, "-smn (-src-module-name)"), One, NO_MODULE),
    other(
        ("smp", &["src-module-parameters"], None, "-smp (-src-module-parameters)"),
        One,
        NO_MODULE,
    ),
    other(("dmn", &["dst-module-name"], None, "-dmn (-dst-module-name)"), One, NO_MODULE),
    other(
        ("dmp", &["dst-module-parameters"], None, "-dmp (-dst-module-parameters)"),
        One,
        NO_MODULE,
    ),
    other(("aa", &["authz-assert"], None, "-aa (-authz-assert)"), One, NO_ASSERTION),
    other(("saa", &["src-authz-assert"], None, "-saa (-src-authz-assert)"), One, NO_ASSERTION),
    other(("daa", &["dst-authz-assert"], None, "-daa (-dst-authz-assert)"), One, NO_ASSERTION),
    other(
        ("cache-aa", &["cache-authz-assert"], None, "-cache-aa (-cache-authz-assert)"),
        No,
        NO_ASSERTION,
    ),
    other(
        ("cache-saa", &["cache-src-authz-assert"], None, "-cache-saa (-cache-src-authz-assert)"),
        No,
        NO_ASSERTION,
    ),
    other(
        ("cache-daa", &["cache-dst-authz-assert"], None, "-cache-daa (-cache-dst-authz-assert)"),
        No,
        NO_ASSERTION,
    ),
    other(
        ("nlb", &["nl-bottleneck"], None, "-nlb (-nl-bottleneck)"),
        No,
        Refused("", "-vb, or hikyaku doctor, which tells what limits a path"),
    ),
    other(("src-pipe", &["SP"], None, "-src-pipe (-SP)"), One, NO_PIPE),
    other(("dst-pipe", &["DP"], None, "-dst-pipe (-DP)"), One, NO_PIPE),
    other(("pipe", &[], None, "-pipe"), One, NO_PIPE),
    other(
        ("dcstack", &["data-channel-stack"], None, "-dcstack (-data-channel-stack)"),
        One,
        NO_STACK,
    ),
    other(
        ("fsstack", &["file-system-stack"], None, "-fsstack (-file-system-stack)"),
        One,
        NO_STACK,
    ),
    other(
        (
            "src-dcstack",
            &["source-data-channel-stack"],
            None,
            "-src-dcstack (-source-data-channel-stack)",
        ),
        One,
        NO_STACK,
    ),
    other(
        (
            "src-fsstack",
            &["source-file-system-stack"],
            None,
            "-src-fsstack (-source-file-system-stack)",
        ),
        One,
        NO_STACK,
    ),
    other(
        (
            "dst-dcstack",
            &["dest-data-channel-stack"],
            None,
            "-dst-dcstack (-dest-data-channel-stack)",
        ),
        One,
        NO_STACK,
    ),
    other(
        (
            "dst-fsstack",
            &["dest-file-system-stack"],
            None,
            "-dst-fsstack (-dest-file-system-stack)",
        ),
        One,
        NO_STACK,
    ),
    other(("cred", &[], None, "-cred"), One, NO_CREDENTIAL),
    other(("src-cred", &["sc"], None, "-src-cred (-sc)"), One, NO_CREDENTIAL),
    other(("dst-cred", &["dc"], None, "-dst-cred (-dc)"), One, NO_CREDENTIAL),
    other(
        ("data-cred", &[], None, "-data-cred"),
        One,
        Refused("each run makes a key of its own for data connections", "without it"),
    ),
    other(
        ("af", &["alias-file"], None, "-af (-alias-file)"),
        One,
        Refused("", "one command for each host"),
    ),
    other(("sync", &[], None, "-sync"), No, NO_SYNC),
    other(("sync-level", &[], None, "-sync-level"), One, NO_SYNC),
    other(
        ("checksum-alg", &[], None, "-checksum-alg"),
        One,
        Refused("", "-cksm sha256, which compares each copy"),
    ),
    other(
        ("verify-checksum", &[], None, "-verify-checksum"),
        No,
        Refused("", "-cksm sha256, which compares each copy"),
    ),
    other(("usage", &[], None, "-usage"), No, Refused("", "--help")),
    other(("versions", &[], None, "-versions"), No, Refused("", "--version")),
];
