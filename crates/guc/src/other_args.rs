//! globus-url-copy's options that are not options of `hikyaku guc`: each asks for what is always so, or is refused with what
//! comes nearest.

use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, Error, FromArgMatches};

/// What becomes of an option.
#[derive(Clone, Copy)]
enum Role {
    /// It asks for what is always so.
    Idle,
    /// It is refused: what comes nearest.
    Refused(&'static str),
}

/// Whether an option has a value.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Value {
    None,
    One,
}

use Role::{Idle, Refused};
use Value::{None as No, One};

const NO_SUBJECT: Role = Refused(
    "a server's certificate has to be valid for the host name of its URL; try: that name in the URL",
);
const NO_CREDENTIAL: Role = Refused("try: X509_USER_PROXY=FILE in the environment");
const NO_MODULE: Role = Refused("try: the server's own storage module, without it");
const NO_STACK: Role = Refused("data go by TCP from and to files; try: without it");
const NO_ASSERTION: Role = Refused("assertions are not sent; try: a certificate that may log in");
const NO_PIPE: Role = Refused("no command is run on a server; try: a file");
const NO_SYNC: Role = Refused(
    "each file is copied, whatever the target has; try: the names of those that are missing",
);
const NO_DUMP: Role = Refused("no list of files is written; try: -c, and the errors it tells");

/// Long name, another one and a short one, if it has them, whether it has a value, and its role.
type Row = (&'static str, Option<&'static str>, Option<char>, Value, Role);

const OPTIONS: [Row; 53] = [
    ("rst", Some("restart"), None, No, Idle),
    ("fast", None, None, No, Idle),
    ("binary", None, Some('b'), No, Idle),
    ("no-g2", Some("nogridftp2"), None, No, Idle),
    ("ipv6", None, None, No, Idle),
    ("ascii", None, Some('a'), No, Refused("files are copied as they are; try: without it")),
    (
        "file-of-urls",
        None,
        Some('f'),
        One,
        Refused("try: while read -r FROM TO; do hikyaku guc \"$FROM\" \"$TO\"; done <FILE"),
    ),
    (
        "time",
        None,
        Some('t'),
        One,
        Refused("try: timeout SECONDS hikyaku guc ...; the same command goes on"),
    ),
    (
        "rst-timeout",
        None,
        None,
        One,
        Refused("try: -rst-retries N with -rst-interval TIME, whose product is the time"),
    ),
    ("df", Some("dumpfile"), None, One, NO_DUMP),
    ("do", Some("dump-only"), None, One, NO_DUMP),
    (
        "rp",
        Some("relative-paths"),
        None,
        No,
        Refused("try: ftp://HOST/~/PATH for a path below the home directory"),
    ),
    ("subject", None, Some('s'), One, NO_SUBJECT),
    ("ss", Some("source-subject"), None, One, NO_SUBJECT),
    ("ds", Some("dest-subject"), None, One, NO_SUBJECT),
    (
        "notpt",
        Some("no-third-party-transfers"),
        None,
        No,
        Refused(
            "data of two servers never pass this host; try: two copies, the first one to this host",
        ),
    ),
    ("list", None, None, One, Refused("no listing is printed; try: -r, to copy what is there")),
    (
        "sbs",
        Some("striped-block-size"),
        None,
        One,
        Refused("data nodes send blocks of 1 MiB in turn; try: without it"),
    ),
    ("udt", None, None, No, NO_STACK),
    (
        "dp",
        Some("delayed-pasv"),
        None,
        No,
        Refused("a server tells its address before it is told a file; try: without it"),
    ),
    ("mn", Some("module-name"), None, One, NO_MODULE),
    ("mp", Some("module-parameters"), None, One, NO_MODULE),
    ("smn", Some("src-module-name"), None, One, NO_MODULE),
    ("smp", Some("src-module-parameters"), None, One, NO_MODULE),
    ("dmn", Some("dst-module-name"), None, One, NO_MODULE),
    ("dmp", Some("dst-module-parameters"), None, One, NO_MODULE),
    ("aa", Some("authz-assert"), None, One, NO_ASSERTION),
    ("saa", Some("src-authz-assert"), None, One, NO_ASSERTION),
    ("daa", Some("dst-authz-assert"), None, One, NO_ASSERTION),
    ("cache-aa", Some("cache-authz-assert"), None, No, NO_ASSERTION),
    ("cache-saa", Some("cache-src-authz-assert"), None, No, NO_ASSERTION),
    ("cache-daa", Some("cache-dst-authz-assert"), None, No, NO_ASSERTION),
    (
        "nlb",
        Some("nl-bottleneck"),
        None,
        No,
        Refused("try: -vb, or hikyaku doctor, which tells what limits a path"),
    ),
    ("src-pipe", Some("SP"), None, One, NO_PIPE),
    ("dst-pipe", Some("DP"), None, One, NO_PIPE),
    ("pipe", None, None, One, NO_PIPE),
    ("dcstack", Some("data-channel-stack"), None, One, NO_STACK),
    ("fsstack", Some("file-system-stack"), None, One, NO_STACK),
    ("src-dcstack", Some("source-data-channel-stack"), None, One, NO_STACK),
    ("src-fsstack", Some("source-file-system-stack"), None, One, NO_STACK),
    ("dst-dcstack", Some("dest-data-channel-stack"), None, One, NO_STACK),
    ("dst-fsstack", Some("dest-file-system-stack"), None, One, NO_STACK),
    ("cred", None, None, One, NO_CREDENTIAL),
    ("src-cred", Some("sc"), None, One, NO_CREDENTIAL),
    ("dst-cred", Some("dc"), None, One, NO_CREDENTIAL),
    (
        "data-cred",
        None,
        None,
        One,
        Refused("each run makes a key of its own for data connections; try: without it"),
    ),
    ("af", Some("alias-file"), None, One, Refused("try: one command for each host")),
    ("sync", None, None, No, NO_SYNC),
    ("sync-level", None, None, One, NO_SYNC),
    ("checksum-alg", None, None, One, Refused("try: -cksm sha256, which compares each copy")),
    ("verify-checksum", None, None, No, Refused("try: -cksm sha256, which compares each copy")),
    ("usage", None, None, No, Refused("try: --help")),
    ("versions", None, None, No, Refused("try: --version")),
];

/// Those of the command line. None has an effect.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct OtherArgs;

/// An option as users of globus-url-copy know it.
fn shown(name: &str, other: Option<&str>, short: Option<char>) -> String {
    let other = other.map(|other| format!(" (-{other})")).unwrap_or_default();
    match short {
        // A name that stands for the short one only.
        Some(short) if !matches!(name, "ascii" | "binary" | "subject") => format!("-{short}"),
        Some(short) => format!("-{short} (-{name})"),
        None => format!("-{name}{other}"),
    }
}

impl FromArgMatches for OtherArgs {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        for (name, other, short, _, role) in OPTIONS {
            if matches.value_source(name) == Some(ValueSource::CommandLine)
                && let Refused(nearest) = role
            {
                let name = shown(name, other, short);
                let text = format!("{name} is not an option here: {nearest}\n");
                return Err(Error::raw(ErrorKind::UnknownArgument, text));
            }
        }
        Ok(Self)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Args for OtherArgs {
    fn augment_args(command: Command) -> Command {
        OPTIONS.iter().fold(command, |command, (name, other, short, value, _)| {
            let arg = Arg::new(*name).hide(true).long(*name).aliases(*other);
            let arg = match value {
                No => arg.action(ArgAction::SetTrue),
                One => arg.action(ArgAction::Append).allow_hyphen_values(true),
            };
            command.arg(match short {
                Some(short) => arg.short(*short),
                None => arg,
            })
        })
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}
