//! rsync's options that are not options of `hikyaku sync`: each has no effect, for a reason, or is refused with what
//! comes nearest.

use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, Error, FromArgMatches};

/// What becomes of an option.
#[derive(Clone, Copy)]
enum Role {
    /// It has no effect: the reason.
    Idle(&'static str),
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

const NOT_COMPRESSED: Role = Idle("data are sent as they are");
const SHOWN: Role =
    Idle("the transfer is shown on a terminal, and a copy that was interrupted is resumed");
const WHOLE: Role = Idle("whole files are sent");
const OWNERS: Role = Idle("owners, groups and devices are not kept");
const NO_OWNERS: Role =
    Refused("owners and devices are not kept; try: hikyaku cp -a, which keeps owners by number");
const NO_BASE: Role =
    Refused("files are compared with DST only; try: hikyaku sync to a copy of that directory");
const NO_LINKS: Role =
    Refused("links stay links (-l) or are left out; try: hikyaku cp -r, which follows them");
const NO_BATCH: Role = Refused("hikyaku does not speak rsync's protocol");
const NO_DELTA: Role = Refused("whole files are sent; try: without it");
const NO_DIR_RULES: Role =
    Refused("files of rules in each directory are not read; try: --exclude-from FILE");

/// Long name (or the short one, where there is no long one), short name, whether it has a value, and its role.
const OPTIONS: [(&str, Option<char>, Value, Role); 74] = [
    ("compress", Some('z'), Value::None, NOT_COMPRESSED),
    ("no-compress", None, Value::None, NOT_COMPRESSED),
    ("compress-level", None, Value::One, NOT_COMPRESSED),
    ("compress-choice", None, Value::One, NOT_COMPRESSED),
    ("partial", None, Value::None, SHOWN),
    ("progress", None, Value::None, SHOWN),
    ("-P", Some('P'), Value::None, SHOWN),
    ("info", None, Value::One, SHOWN),
    ("stats", None, Value::None, SHOWN),
    ("human-readable", Some('h'), Value::None, SHOWN),
    ("whole-file", Some('W'), Value::None, WHOLE),
    ("no-whole-file", None, Value::None, WHOLE),
    ("inc-recursive", None, Value::None, Idle("directories are listed while others are compared")),
    (
        "no-inc-recursive",
        None,
        Value::None,
        Idle("directories are listed while others are compared"),
    ),
    ("protect-args", Some('s'), Value::None, Idle("names never pass a shell")),
    ("secluded-args", None, Value::None, Idle("names never pass a shell")),
    ("fsync", None, Value::None, Idle("files are on the disk before they get their names")),
    ("no-owner", None, Value::None, OWNERS),
    ("no-o", None, Value::None, OWNERS),
    ("no-group", None, Value::None, OWNERS),
    ("no-g", None, Value::None, OWNERS),
    ("no-devices", None, Value::None, OWNERS),
    ("no-specials", None, Value::None, OWNERS),
    ("no-D", None, Value::None, OWNERS),
    ("numeric-ids", None, Value::None, OWNERS),
    ("owner", Some('o'), Value::None, NO_OWNERS),
    ("group", Some('g'), Value::None, NO_OWNERS),
    ("chown", None, Value::One, NO_OWNERS),
    ("devices", None, Value::None, NO_OWNERS),
    ("specials", None, Value::None, NO_OWNERS),
    ("-D", Some('D'), Value::None, NO_OWNERS),
    (
        "hard-links",
        Some('H'),
        Value::None,
        Refused("hard links become files of their own; try: without it"),
    ),
    (
        "acls",
        Some('A'),
        Value::None,
        Refused("access lists are not kept; try: -p, for permission bits"),
    ),
    (
        "xattrs",
        Some('X'),
        Value::None,
        Refused("extended attributes are not kept; try: hikyaku cp -a"),
    ),
    ("sparse", Some('S'), Value::None, Refused("holes are not kept; try: hikyaku cp -a")),
    ("executability", Some('E'), Value::None, Refused("try: -p")),
    ("chmod", None, Value::One, Refused("try: -p, or chmod afterwards")),
    ("atimes", Some('U'), Value::None, Refused("times of access are not kept; try: -t")),
    (
        "omit-dir-times",
        Some('O'),
        Value::None,
        Refused("try: without it; directories get the times of the source"),
    ),
    (
        "omit-link-times",
        Some('J'),
        Value::None,
        Refused("try: without it; links get the times of the source"),
    ),
    ("copy-links", Some('L'), Value::None, NO_LINKS),
    ("copy-dirlinks", Some('k'), Value::None, NO_LINKS),
    (
        "keep-dirlinks",
        Some('K'),
        Value::None,
        Refused("links at the target are never followed; try: the directory itself as DST"),
    ),
    ("copy-unsafe-links", None, Value::None, NO_LINKS),
    ("safe-links", None, Value::None, NO_LINKS),
    ("dirs", Some('d'), Value::None, Refused("try: -r with --exclude '/*/*'")),
    ("relative", Some('R'), Value::None, Refused("try: the same directories in DST")),
    (
        "one-file-system",
        Some('x'),
        Value::None,
        Refused("try: --exclude /MOUNT/, for each file system that is mounted below"),
    ),
    ("prune-empty-dirs", Some('m'), Value::None, Refused("try: without it")),
    ("inplace", None, Value::None, Refused("a file is made anew; try: hikyaku cp --inplace")),
    (
        "append",
        None,
        Value::None,
        Refused("a file is made anew; an interrupted run is resumed by itself"),
    ),
    (
        "append-verify",
        None,
        Value::None,
        Refused("a file is made anew; an interrupted run is resumed by itself"),
    ),
    (
        "partial-dir",
        None,
        Value::One,
        Refused("unfinished files stand beside their names; try: without it"),
    ),
    (
        "temp-dir",
        Some('T'),
        Value::One,
        Refused("unfinished files stand beside their names; try: without it"),
    ),
    ("backup-dir", None, Value::One, Refused("try: -b --suffix SUFFIX")),
    ("link-dest", None, Value::One, NO_BASE),
    ("compare-dest", None, Value::One, NO_BASE),
    ("copy-dest", None, Value::One, NO_BASE),
    ("fuzzy", Some('y'), Value::None, NO_BASE),
    (
        "ignore-errors",
        None,
        Value::None,
        Refused("nothing is deleted in a directory that was not read whole; try: --exclude /THAT/"),
    ),
    (
        "force",
        None,
        Value::None,
        Refused("a directory gives way to a file only if it is deleted; try: --delete"),
    ),
    ("delete-missing-args", None, Value::None, Refused("try: --delete on the directory above")),
    ("cvs-exclude", Some('C'), Value::None, Refused("try: --exclude-from FILE")),
    ("-F", Some('F'), Value::None, NO_DIR_RULES),
    ("write-batch", None, Value::One, NO_BATCH),
    ("read-batch", None, Value::One, NO_BATCH),
    (
        "daemon",
        None,
        Value::None,
        Refused("hikyaku does not speak rsync's protocol; try: hikyaku serve"),
    ),
    (
        "rsync-path",
        None,
        Value::One,
        Refused("no rsync is started; try: --remote-path PATH, where hikyaku is"),
    ),
    ("block-size", Some('B'), Value::One, NO_DELTA),
    ("out-format", None, Value::One, Refused("try: -i")),
    ("log-file", None, Value::One, Refused("try: -i >FILE")),
    ("list-only", None, Value::None, Refused("try: hikyaku sftp HOST, and ls -l")),
    ("password-file", None, Value::One, Refused("ssh knows who you are; try: -e 'ssh -i KEY'")),
    ("port", None, Value::One, Refused("try: -e 'ssh -p PORT'")),
];

/// Those that were typed and have no effect: name and reason.
#[derive(Clone, Debug, Default)]
pub(crate) struct OtherArgs(pub(crate) Vec<(String, &'static str)>);

/// An option as users know it.
fn shown(name: &str, short: Option<char>) -> String {
    match short {
        Some(short) if name.starts_with('-') => format!("-{short}"),
        Some(short) => format!("-{short} (--{name})"),
        None => format!("--{name}"),
    }
}

impl FromArgMatches for OtherArgs {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let mut idle = Vec::new();
        for (name, short, _, role) in OPTIONS {
            if matches.value_source(name) != Some(ValueSource::CommandLine) {
                continue;
            }
            match role {
                Idle(why) => idle.push((shown(name, short), why)),
                Refused(nearest) => {
                    let text = format!("{} is not an option here: {nearest}\n", shown(name, short));
                    return Err(Error::raw(ErrorKind::UnknownArgument, text));
                }
            }
        }
        Ok(Self(idle))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Args for OtherArgs {
    fn augment_args(command: Command) -> Command {
        OPTIONS.iter().fold(command, |command, (name, short, value, _)| {
            let arg = Arg::new(*name).hide(true);
            let arg = if name.starts_with('-') { arg } else { arg.long(*name) };
            let arg = match value {
                Value::None => arg.action(ArgAction::SetTrue),
                Value::One => arg.action(ArgAction::Append).allow_hyphen_values(true),
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
