//! Errors of the command line, in the shape of all errors of this program: the cause, and what to try.

use crate::alias::Alias;
use crate::args;
use crate::native;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, Command, Error};
use hikyaku_units::ParseUnitError;
use std::ffi::OsString;
use std::fmt;
use std::num::{IntErrorKind, ParseFloatError, ParseIntError};

/// A mistake in a command line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Misuse {
    text: String,
    remedy: String,
}

impl fmt::Display for Misuse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}\ntry: {}", self.text, self.remedy)
    }
}

/// Most letters by which a word may differ from the one that is meant.
const DISTANCE_MAX: usize = 2;

impl Misuse {
    /// Of the command line of this process.
    pub(crate) fn of(error: &Error) -> Self {
        let typed: Vec<OsString> = std::env::args_os().collect();
        match args::called_as().as_deref().and_then(Alias::of) {
            Some(alias) => Self::new(error, &alias.command(), &[]),
            None => Self::new(error, &args::command(), typed.get(1..).unwrap_or_default()),
        }
    }

    /// Of a program whose words behind its name are `typed`.
    pub(crate) fn new(error: &Error, program: &Command, typed: &[OsString]) -> Self {
        let (command, path) = named(program, typed);
        let help = match path.split_once(' ') {
            _ if program.get_name() != "hikyaku" => format!("{path} --help"),
            Some((_, verb)) => format!("hikyaku help {verb}"),
            None => "hikyaku help".to_owned(),
        };
        let of = |kind| error.get(kind).map(plain).unwrap_or_default();
        let wrong = of(ContextKind::InvalidArg);
        let (text, remedy) = match error.kind() {
            ErrorKind::UnknownArgument if wrong.starts_with('-') => {
                match native::refusal(
                    path.strip_prefix("hikyaku ").unwrap_or_default(),
                    flag(&wrong),
                ) {
                    Some((why, instead)) => {
                        (format!("no option {wrong}: {why}"), instead.map(str::to_owned))
                    }
                    None => (format!("no option {wrong}"), similar_option(command, &wrong)),
                }
            }
            ErrorKind::UnknownArgument => (format!("one argument too many: {wrong}"), None),
            ErrorKind::InvalidSubcommand if error.get(ContextKind::InvalidSubcommand).is_some() => {
                let wrong = of(ContextKind::InvalidSubcommand);
                let names = command.get_subcommands().map(Command::get_name);
                let similar = similar(names, &wrong).map(|name| format!("{path} {name}"));
                (format!("no subcommand '{wrong}'"), similar)
            }
            ErrorKind::ValueValidation if !wrong.is_empty() => {
                let cause = std::error::Error::source(error);
                let unit = cause.and_then(|cause| cause.downcast_ref::<ParseUnitError>());
                let cause = cause.map(in_words).unwrap_or_default();
                let remedy = unit.and_then(ParseUnitError::remedy);
                let cause = match &remedy {
                    Some(remedy) => {
                        cause.trim_end_matches(remedy).trim_end_matches(": ").to_owned()
                    }
                    None => cause,
                };
                (format!("{}: {cause}", flag(&wrong)), remedy)
            }
            ErrorKind::InvalidValue if !of(ContextKind::InvalidValue).is_empty() => {
                let (value, known) = (of(ContextKind::InvalidValue), of(ContextKind::ValidValue));
                let similar = similar(known.split(", "), &value).map(str::to_owned);
                let text = format!("{}: '{value}' is none of {known}", flag(&wrong));
                (text, similar.map(|value| format!("{} {value}", flag(&wrong))))
            }
            ErrorKind::TooFewValues if !wrong.is_empty() => {
                (format!("too few values for {}", required(&wrong)), None)
            }
            ErrorKind::MissingRequiredArgument if !wrong.is_empty() => (
                format!(
                    "missing: {}",
                    wrong.split(", ").map(required).collect::<Vec<_>>().join(", ")
                ),
                None,
            ),
            _ => first_sentence(&error.render().to_string()),
        };
        Self { text, remedy: remedy.unwrap_or(help) }
    }
}

/// The cause in plain words, where it is one of the standard library's or of clap's about a number.
fn in_words(cause: &(dyn std::error::Error + 'static)) -> String {
    if let Some(error) = cause.downcast_ref::<ParseIntError>() {
        let words = match error.kind() {
            IntErrorKind::Zero => "must be 1 or more",
            IntErrorKind::PosOverflow => "the number is too large",
            _ => "not a whole number",
        };
        return words.to_owned();
    }
    if cause.is::<ParseFloatError>() {
        return "not a number".to_owned();
    }
    let text = cause.to_string();
    let range = text.split_once(" is not in ").and_then(|(_, range)| range.split_once("..="));
    match range {
        Some((least, most)) => format!("must be from {least} to {most}"),
        None => text,
    }
}

/// The command that the words name, and how it is called.
fn named<'a>(program: &'a Command, typed: &[OsString]) -> (&'a Command, String) {
    let mut found = (program, program.get_name().to_owned());
    for word in typed.iter().filter_map(|word| word.to_str()).filter(|word| !word.starts_with('-'))
    {
        match found.0.find_subcommand(word) {
            Some(below) => found = (below, format!("{} {}", found.1, below.get_name())),
            None => break,
        }
    }
    found
}

fn plain(value: &ContextValue) -> String {
    match value {
        ContextValue::Strings(all) => all.join(", "),
        value => value.to_string(),
    }
}

/// An option without its values: `--rate <RATE>` is `--rate`; an operand without its brackets.
fn flag(arg: &str) -> &str {
    arg.split([' ', '=']).next().unwrap_or(arg).trim_matches(['<', '>', '[', ']'])
}

/// A missing operand without its brackets; of a group of options, their names.
fn required(arg: &str) -> String {
    match arg.starts_with("<-") {
        true => arg
            .split('|')
            .map(|part| flag(part.trim_start_matches('<')))
            .collect::<Vec<_>>()
            .join(" or "),
        false => arg.replace(['<', '>', '[', ']'], ""),
    }
}

/// The long option of the command that was most likely meant.
fn similar_option(command: &Command, typed: &str) -> Option<String> {
    let name = flag(typed).strip_prefix("--")?;
    let shown = command.get_arguments().filter(|arg| !arg.is_hide_set());
    similar(shown.filter_map(Arg::get_long), name).map(|long| format!("--{long}"))
}

fn similar<'a>(names: impl Iterator<Item = &'a str>, typed: &str) -> Option<&'a str> {
    let close = names.map(|name| (distance(name, typed), name));
    // Most letters agree: every word is at a distance of two from one of two letters.
    let close =
        close.filter(|(far, name)| *far <= DISTANCE_MAX && 2 * *far < name.len().min(typed.len()));
    close.min().map(|(_, name)| name)
}

/// The least number of letters that are added, removed or replaced between two words.
fn distance(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (line, letter) in one.chars().enumerate() {
        let mut before = line;
        row[0] = line + 1;
        for (column, known) in other.iter().enumerate() {
            let replaced = before + usize::from(letter != *known);
            before = row[column + 1];
            row[column + 1] = replaced.min(before + 1).min(row[column] + 1);
        }
    }
    row.last().copied().unwrap_or_default()
}

/// The cause in a text of clap or of a command, and what to try, if the text has that.
fn first_sentence(text: &str) -> (String, Option<String>) {
    let text = text.strip_prefix("error: ").unwrap_or(text);
    let ends = ["\n\nUsage:", "\n\nFor more information", "\n\n  tip:"];
    let end = ends.iter().filter_map(|end| text.find(end)).min().unwrap_or(text.len());
    let words = text[..end].split_whitespace().collect::<Vec<_>>().join(" ");
    match words.split_once("; try: ") {
        Some((cause, remedy)) => (cause.to_owned(), Some(remedy.to_owned())),
        None => (words, None),
    }
}

#[cfg(test)]
mod tests;
