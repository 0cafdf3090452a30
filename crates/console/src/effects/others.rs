//! Options of the program whose command line a command takes, and that the command does not have.

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

/// The program whose options are taken.
pub trait Others {
    /// Those that the command does not have.
    const OPTIONS: &'static [Other];
}

/// They as arguments of a command. [`Table::check`](super::Table::check) decides what becomes of those that were typed.
#[derive(Clone, Copy, Debug)]
pub struct OtherArgs<T>(PhantomData<T>);

impl<T> FromArgMatches for OtherArgs<T> {
    fn from_arg_matches(_: &ArgMatches) -> Result<Self, Error> {
        Ok(Self(PhantomData))
    }

    fn update_from_arg_matches(&mut self, _: &ArgMatches) -> Result<(), Error> {
        Ok(())
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
