//! The flags that add rules. Their order counts, across all of them.

use crate::filter::{BadRule, Rules};
use clap::{Arg, ArgAction, ArgMatches, Args, Command, Error, FromArgMatches};
use std::path::Path;

/// How a flag adds the rules of its value.
type Add = fn(&mut Rules, &str) -> Result<(), BadRule>;

/// Name, short name, value, help, and what it does.
const FLAGS: [(&str, Option<char>, &str, &str, Add); 5] = [
    ("exclude", None, "PATTERN", "Leave out names that match PATTERN", Rules::exclude),
    (
        "include",
        None,
        "PATTERN",
        "Take names that match PATTERN, where a later rule leaves them out",
        Rules::include,
    ),
    (
        "exclude-from",
        None,
        "FILE",
        "The patterns of FILE, a line each ('-' is standard input)",
        |rules, path| rules.exclude_from(Path::new(path)),
    ),
    ("include-from", None, "FILE", "The same", |rules, path| rules.include_from(Path::new(path))),
    (
        "filter",
        Some('f'),
        "RULE",
        "A rule: '+ PATTERN', '- PATTERN', 'P PATTERN' (never deleted), 'H PATTERN', '. FILE', '!'",
        Rules::filter,
    ),
];

/// The values of these flags in the order in which they were typed, each with the place of its flag in the table.
#[derive(Clone, Debug, Default)]
pub(crate) struct RuleArgs(Vec<(usize, String)>);

impl RuleArgs {
    pub(crate) fn rules(&self) -> Result<Rules, BadRule> {
        let mut rules = Rules::default();
        for (flag, value) in &self.0 {
            let (.., add) = FLAGS[*flag];
            add(&mut rules, value)?;
        }
        Ok(rules)
    }
}

impl FromArgMatches for RuleArgs {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let mut all = Vec::new();
        for (flag, (name, ..)) in FLAGS.iter().enumerate() {
            let places = matches.indices_of(name).into_iter().flatten();
            let values = matches.get_many::<String>(name).into_iter().flatten();
            all.extend(places.zip(values).map(|(place, value)| (place, (flag, value.clone()))));
        }
        all.sort_by_key(|(place, _)| *place);
        Ok(Self(all.into_iter().map(|(_, value)| value).collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Args for RuleArgs {
    fn augment_args(command: Command) -> Command {
        FLAGS.iter().fold(command, |command, (name, short, value, help, _)| {
            let flag = Arg::new(*name).long(*name).value_name(*value).help(*help);
            let flag = flag.action(ArgAction::Append).allow_hyphen_values(true);
            command.arg(match short {
                Some(short) => flag.short(*short),
                None => flag,
            })
        })
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}
