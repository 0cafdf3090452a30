//! Which options a user has typed.

use clap::parser::ValueSource;
use clap::{ArgMatches, Args, Command, Error, FromArgMatches, Id};
use std::collections::BTreeSet;

/// The options that were typed, by their names in the program. Those with a default only are not among them.
///
/// As an argument of a command it is the first field: the others take their values out of what was parsed.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Given(BTreeSet<String>);

impl Given {
    /// These options, as if they were typed.
    pub fn of(ids: &[&str]) -> Self {
        Self(ids.iter().map(|id| (*id).to_owned()).collect())
    }

    /// All of them but one.
    #[must_use]
    pub fn without(&self, id: &str) -> Self {
        Self(self.0.iter().filter(|given| *given != id).cloned().collect())
    }

    /// These and another one.
    #[must_use]
    pub fn with(mut self, id: &str) -> Self {
        self.0.insert(id.to_owned());
        self
    }

    /// Their names.
    pub fn ids(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }
}

impl FromArgMatches for Given {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let typed = matches.ids().map(Id::as_str);
        let typed = typed.filter(|id| matches.value_source(id) == Some(ValueSource::CommandLine));
        Ok(Self(typed.map(str::to_owned).collect()))
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
