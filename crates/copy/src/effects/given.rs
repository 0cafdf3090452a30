//! Which options the command line has.

use super::OPTIONS;
use clap::parser::ValueSource;
use clap::{ArgMatches, Args, Command, Error, FromArgMatches};
use std::collections::BTreeSet;

/// The options that were typed, by their names in the program. Those with a default only are not among them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Given(BTreeSet<&'static str>);

impl Given {
    pub(crate) fn ids(&self) -> impl Iterator<Item = &'static str> + '_ {
        self.0.iter().copied()
    }

    /// These options, as if they were typed.
    #[cfg(test)]
    pub(super) fn of(ids: &[&'static str]) -> Self {
        Self(ids.iter().copied().collect())
    }
}

impl FromArgMatches for Given {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let is_typed = |id: &&str| matches.value_source(id) == Some(ValueSource::CommandLine);
        let typed = OPTIONS.iter().map(|row| row.id).filter(is_typed);
        Ok(Self(typed.collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Args for Given {
    fn augment_args(command: Command) -> Command {
        command
    }

    fn augment_args_for_update(command: Command) -> Command {
        command
    }
}
