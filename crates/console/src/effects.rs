//! What each option of a command does on each way that its data may go: it is honoured, refused, or noted in one line.
//! Nothing is contacted or written before the options of a command are checked here.
//!
//! A command has one [`Table`]. It is complete: a test compares it with the options that the command line knows
//! ([`Table::lacks`]).

mod given;
mod others;
mod way;

pub use given::Given;
pub use others::{Other, OtherArgs, Others, Role, Value, other};
pub use way::{BY_SSH, Way};

use crate::misuse;
use anyhow::Result;
use clap::Command;
use std::collections::BTreeSet;

/// How serious it is that an option has no effect.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Class {
    /// It protects data, names what is written, or protects other traffic: without effect it is refused.
    Protects,
    /// It asks for metadata: what cannot be kept is noted.
    Metadata,
    /// Anything else: without effect it is noted.
    Convenience,
}

/// What an option does on a way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Effect {
    /// What it says.
    Honoured,
    /// The same, if one of the options of these names is given too; otherwise nothing.
    HonouredWith(&'static [&'static str]),
    /// The same, unless one of the options of these names is given too; then nothing.
    HonouredUnless(&'static [&'static str]),
    /// It is honoured in part: what is not.
    InPart(&'static str),
    /// Nothing: there is nothing that it could be about.
    Nothing,
    /// It cannot be done, and must not be ignored.
    Refused,
}

/// The effects of an option on the ways of a table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Effects {
    /// The effect of its name, on all of them.
    All,
    /// The effect of its name where ssh logs in, and otherwise none.
    Ssh,
    /// One effect for each of [`Table::ways`].
    Each(&'static [Effect]),
}

/// An option, and what it does on each way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Row {
    /// Its name in the program.
    pub id: &'static str,
    /// As a user types it.
    pub flag: &'static str,
    /// How serious it is that it has no effect.
    pub class: Class,
    /// Its effect on each way.
    pub effects: Effects,
    /// Why it is refused, or never has an effect; empty if the way says it.
    pub why: &'static str,
    /// What to do where it is refused.
    pub instead: &'static str,
}

/// A row: its name in the program and as a user types it, its class, what it does on each way, and why and what to do
/// where it has no effect.
pub const fn row(
    (id, flag): (&'static str, &'static str),
    class: Class,
    effects: &'static [Effect],
    (why, instead): (&'static str, &'static str),
) -> Row {
    Row { id, flag, class, effects: Effects::Each(effects), why, instead }
}

/// The remedy for an option without an effect: there is no reason beside it.
pub const LEAVE: (&str, &str) = ("", "leave it out");

/// A row of an option that is honoured on every way.
pub const fn all(names: (&'static str, &'static str), class: Class) -> Row {
    Row { effects: Effects::All, ..row(names, class, &[], LEAVE) }
}

/// A row of an option about ssh.
pub const fn ssh(names: (&'static str, &'static str), class: Class) -> Row {
    Row { effects: Effects::Ssh, ..row(names, class, &[], ("", "leave it out: ssh is not used")) }
}

/// The options of a command.
#[derive(Clone, Copy, Debug)]
pub struct Table {
    /// What the command does, as its messages say it: "a copy".
    pub what: &'static str,
    /// The columns.
    pub ways: &'static [Way],
    /// The rows, in the order of the help.
    pub rows: &'static [Row],
    /// Options of another program that the command takes, and does not have.
    pub others: &'static [Other],
    /// Arguments that are no options of a way: operands, and options that are commands of their own.
    pub apart: &'static [&'static str],
}

impl Table {
    /// What the option of a row does on a way, beside the other options of the command.
    pub fn effect(&self, row: &Row, way: Way, given: &[&str]) -> Effect {
        let is_given = |ids: &[&str]| ids.iter().any(|id| given.contains(id));
        let decided = |is_honoured| if is_honoured { Effect::Honoured } else { Effect::Nothing };
        let column = self.ways.iter().position(|known| *known == way);
        let effect = column.and_then(|column| match row.effects {
            Effects::All => Some(Effect::Honoured),
            Effects::Ssh => Some(way.of_ssh()),
            Effects::Each(effects) => effects.get(column).copied(),
        });
        match effect.unwrap_or(Effect::Nothing) {
            Effect::HonouredWith(others) => decided(is_given(others)),
            Effect::HonouredUnless(others) => decided(!is_given(others)),
            effect => effect,
        }
    }

    /// What goes this way, in a message.
    pub fn named(&self, way: Way) -> String {
        format!("{} {}", self.what, way.name())
    }

    /// The text of the error where an option is refused.
    pub fn refusal(&self, row: &Row, way: Way) -> String {
        match row.why {
            "" => format!("{} has no effect on {}", row.flag, self.named(way)),
            why => format!("{} is not possible for {}: {why}", row.flag, self.named(way)),
        }
    }

    /// The line where an option is noted.
    pub fn note(&self, row: &Row, way: Way) -> String {
        match row.why {
            "" => format!("{} has no effect on {}", row.flag, self.named(way)),
            why => format!("{} has no effect: {why}", row.flag),
        }
    }

    /// Checks the options of a command that goes these ways. Returns what is to be noted.
    ///
    /// # Errors
    ///
    /// An option that protects something has no effect on any of them, or cannot be had on one of them.
    pub fn check(&self, given: &Given, ways: &[Way]) -> Result<Vec<String>> {
        let ids: Vec<&str> = given.ids().collect();
        let mut notes = Vec::new();
        for row in self.rows.iter().filter(|row| ids.contains(&row.id)) {
            let effects = || ways.iter().map(|way| (*way, self.effect(row, *way, &ids)));
            let first = effects().find(|(_, effect)| *effect == Effect::Refused);
            let is_honoured =
                effects().any(|(_, effect)| matches!(effect, Effect::Honoured | Effect::InPart(_)));
            let idle = ways.first().filter(|_| !is_honoured);
            let refused = |way| misuse(self.refusal(row, way), row.instead);
            match (first, idle, row.class) {
                (Some((way, _)), ..) => return Err(refused(way)),
                (None, Some(way), Class::Protects) => return Err(refused(*way)),
                (None, Some(way), Class::Metadata | Class::Convenience) => {
                    notes.push(self.note(row, *way));
                }
                (None, None, _) => {}
            }
            notes.extend(effects().filter_map(|(_, effect)| match effect {
                Effect::InPart(lacks) => Some(lacks.to_owned()),
                _ => None,
            }));
        }
        notes.extend(Other::check(self.others, given)?);
        notes.dedup();
        Ok(notes)
    }

    /// What is wrong with the table as one of the options of `command`: options without a row, rows without an option,
    /// rows of which a user types something else, and cells that leave an option silent. Empty if it is complete.
    pub fn lacks(&self, command: &Command) -> Vec<String> {
        let mut command = command.clone();
        command.build();
        let named = |id: &str| command.get_arguments().find(|argument| argument.get_id() == id);
        let others = self.others.iter().map(|other| other.id);
        let rows: BTreeSet<&str> = self.rows.iter().map(|row| row.id).chain(others).collect();
        let mut lacks: Vec<String> = command
            .get_arguments()
            .map(|argument| argument.get_id().as_str())
            .filter(|id| !["help", "version"].contains(id) && !self.apart.contains(id))
            .filter(|id| !rows.contains(id))
            .map(|id| format!("{id} has no row"))
            .collect();
        if rows.len() < self.rows.len() + self.others.len() {
            lacks.push("an option has two rows".to_owned());
        }
        for row in self.rows {
            let flag = row.flag.trim_start_matches('-');
            let is_its = named(row.id).is_some_and(|argument| {
                argument.get_long() == Some(flag)
                    || argument.get_short().is_some_and(|short| flag == short.to_string())
            });
            if !is_its {
                lacks.push(format!("{} is not typed as {}", row.id, row.flag));
            }
            match row.effects {
                Effects::Each(effects) if effects.len() != self.ways.len() => {
                    lacks.push(format!("{} has {} cells", row.flag, effects.len()));
                }
                _ => {}
            }
            lacks.extend(self.silent(row));
        }
        lacks.extend(rows.iter().filter(|id| named(id).is_none()).map(|id| format!("no {id}")));
        lacks
    }

    /// The cells of a row in which the option neither does what it says nor is refused or noted.
    fn silent<'a>(&'a self, row: &'a Row) -> impl Iterator<Item = String> + 'a {
        let is_told = |way: Way| {
            let checked = self.check(&Given::of(&[row.id]), &[way]);
            match (self.effect(row, way, &[row.id]), row.class) {
                (Effect::Honoured, _) => checked.is_ok_and(|notes| notes.is_empty()),
                (Effect::Refused, _) | (Effect::Nothing, Class::Protects) => checked.is_err(),
                (Effect::Nothing, _) | (Effect::InPart(_), Class::Metadata) => {
                    checked.is_ok_and(|notes| notes.len() == 1)
                }
                (Effect::InPart(_) | Effect::HonouredWith(_) | Effect::HonouredUnless(_), _) => {
                    false
                }
            }
        };
        let silent = self.ways.iter().filter(move |way| !is_told(**way));
        silent.map(|way| format!("{} is silent for {}", row.flag, self.named(*way)))
    }
}

#[cfg(test)]
mod tests;
