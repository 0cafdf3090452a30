//! Options of the program whose command line a command takes, and that the command does not have.

use super::Given;
use crate::misuse;
use anyhow::Result as Checked;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, Error, FromArgMatches};
use std::marker::PhantomData;

/// What becomes of an option that the command does not have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    /// It asks for what is always so.
    Always,
    /// It has no effect: the reason.
    Idle(&'static str),
    /// It is refused: the reason, which may be empty, and what comes nearest.
    Refused(&'static str, &'static str),
}

/// Whether an option has a value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Value {
    /// It is a flag.
    None,
    /// It has one.
    One,
}

/// An option of the other program.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Other {
    /// Its name in the program, which is its long one; one that begins with `-` has only a short one.
    pub id: &'static str,
    /// Other long names.
    pub aliases: &'static [&'static str],
    /// Its short name.
    pub short: Option<char>,
    /// Whether it has a value.
    pub value: Value,
    /// What becomes of it.
    pub role: Role,
    /// As its users know it.
    pub flag: &'static str,
}

/// An option: its long name, or `-` and the short one where there is no long one; its short one; whether it has a value; as its
/// users know it; and what becomes of it.
pub const fn other(
    (id, short): (&'static str, Option<char>),
    value: Value,
    flag: &'static str,
    role: Role,
) -> Other {
    Other { id, aliases: &[], short, value, role, flag }
}

impl Other {
    /// Checks those of these options that were given. Returns what is to be noted.
    ///
    /// # Errors
    ///
    /// One of them is refused.
    pub fn check(options: &[Self], given: &Given) -> Checked<Vec<String>> {
        let ids: Vec<&str> = given.ids().collect();
        let mut notes = Vec::new();
        for option in options.iter().filter(|option| ids.contains(&option.id)) {
            match option.role {
                Role::Always => {}
                Role::Idle(why) => notes.push(format!("{} has no effect: {why}", option.flag)),
                Role::Refused(why, instead) => {
                    let because = if why.is_empty() { String::new() } else { format!(": {why}") };
                    return Err(misuse(format!("no option {}{because}", option.flag), instead));
                }
            }
        }
        Ok(notes)
    }
}

/// The program whose options are taken.
pub trait Others {
    /// Those that the command does not have.
    const OPTIONS: &'static [Other];
}

/// They as arguments of a command. [`Table::check`](super::Table::check) decides what becomes of those that were typed; a
/// command without a table asks [`OtherArgs::check`].
#[derive(Clone, Debug)]
pub struct OtherArgs<T> {
    given: Given,
    program: PhantomData<T>,
}

impl<T: Others> OtherArgs<T> {
    /// Checks those that were typed. Returns what is to be noted.
    ///
    /// # Errors
    ///
    /// One of them is refused.
    pub fn check(&self) -> Checked<Vec<String>> {
        Other::check(T::OPTIONS, &self.given)
    }
}

impl<T> FromArgMatches for OtherArgs<T> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        Ok(Self { given: Given::from_arg_matches(matches)?, program: PhantomData })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        self.given.update_from_arg_matches(matches)
    }
}

impl<T: Others> Args for OtherArgs<T> {
    fn augment_args(command: Command) -> Command {
        T::OPTIONS.iter().fold(command, |command, other| {
            let arg = Arg::new(other.id).hide(true).aliases(other.aliases);
            let arg = if other.id.starts_with('-') { arg } else { arg.long(other.id) };
            let arg = match other.value {
                Value::None => arg.action(ArgAction::SetTrue),
                Value::One => arg.action(ArgAction::Append).allow_hyphen_values(true),
            };
            command.arg(match other.short {
                Some(short) => arg.short(short),
                None => arg,
            })
        })
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}
