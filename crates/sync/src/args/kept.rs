//! `-a`, its letters, and what takes one of them back. Their order counts, as in rsync: the last one decides.

use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, Error, FromArgMatches};

/// Name, long and short name, another name, and help. Those that take a letter back have another name, and are not shown.
type Flag = (&'static str, &'static str, Option<char>, Option<&'static str>, &'static str);

#[rustfmt::skip]
const FLAGS: [Flag; 8] = [
    ("archive", "archive", Some('a'), None, "As -rlpt; owners, groups, devices and hard links are not kept"),
    ("recursive", "recursive", Some('r'), None, "Directories with all that is in them"),
    ("links", "links", Some('l'), None, "Links stay links; without it they are left out"),
    ("perms", "perms", Some('p'), None, "Keep permission bits"),
    ("times", "times", Some('t'), None, "Keep modification times"),
    ("no_perms", "no-perms", None, Some("no-p"), "-a without -p"),
    ("no_times", "no-times", None, Some("no-t"), "-a without -t"),
    ("no_links", "no-links", None, Some("no-l"), "-a without -l"),
];

/// What is kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Kept {
    pub(super) archive: bool,
    pub(super) recursive: bool,
    pub(super) links: bool,
    pub(super) perms: bool,
    pub(super) times: bool,
}

impl FromArgMatches for Kept {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let place = |id: &str| {
            let is_typed = matches.value_source(id) == Some(ValueSource::CommandLine);
            matches.indices_of(id).filter(|_| is_typed).and_then(|mut places| places.next_back())
        };
        let archive = place("archive");
        let is_kept = |id: &str, not: &str| place(id).max(archive) > place(not);
        Ok(Self {
            archive: archive.is_some(),
            recursive: place("recursive").is_some(),
            links: is_kept("links", "no_links"),
            perms: is_kept("perms", "no_perms"),
            times: is_kept("times", "no_times"),
        })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Args for Kept {
    fn augment_args(command: Command) -> Command {
        FLAGS.iter().fold(command, |command, (id, long, short, other, help)| {
            let arg = Arg::new(*id).long(*long).aliases(*other).help(*help);
            let arg = arg.action(ArgAction::SetTrue).hide(other.is_some());
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
