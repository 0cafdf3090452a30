//! What each option does on each way that a copy may go: it is honoured, refused, or noted in one line. Nothing is contacted
//! or written before the options of a command are checked here.
//!
//! The table is complete: a test compares it with the options that the command line knows.

mod given;
mod table;

pub(crate) use given::Given;
pub use table::{OPTIONS, Row};

use crate::cluster::{Sources, Transfer};
use crate::location::Location;

/// How serious it is that an option has no effect.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Class {
    /// It protects data, names what is copied, or protects other traffic: without effect it is refused.
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
    /// The same, if the option of this name is given too; otherwise nothing.
    HonouredWith(&'static str),
    /// It is honoured in part: what is not.
    InPart(&'static str),
    /// Nothing: there is nothing that it could be about.
    Nothing,
    /// It cannot be done, and must not be ignored.
    Refused,
}

/// A way that a copy goes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Way {
    /// Within this machine.
    Here,
    /// From or to a machine that has hikyaku, through ssh.
    Ssh,
    /// Between two other machines.
    Through,
    /// From or to a machine by SFTP.
    Sftp,
    /// From daemons.
    FromDaemons,
    /// To daemons.
    ToDaemons,
    /// From a Gfarm file system.
    FromGfarm,
    /// Into a Gfarm file system.
    ToGfarm,
    /// From a bucket.
    FromBucket,
    /// Into a bucket.
    ToBucket,
}

impl Way {
    /// All of them, in the order of the table.
    pub const ALL: [Self; 10] = [
        Self::Here,
        Self::Ssh,
        Self::Through,
        Self::Sftp,
        Self::FromDaemons,
        Self::ToDaemons,
        Self::FromGfarm,
        Self::ToGfarm,
        Self::FromBucket,
        Self::ToBucket,
    ];

    /// What it is called in a message.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Here => "a copy within this machine",
            Self::Ssh => "a copy through ssh",
            Self::Through => "a copy between two other machines",
            Self::Sftp => "a copy by SFTP",
            Self::FromDaemons => "a copy from daemons",
            Self::ToDaemons => "a copy to daemons",
            Self::FromGfarm => "a copy from Gfarm",
            Self::ToGfarm => "a copy into Gfarm",
            Self::FromBucket => "a copy from a bucket",
            Self::ToBucket => "a copy into a bucket",
        }
    }
}

impl Row {
    /// What the option does on a way, beside the other options of the command.
    pub fn effect(&self, way: Way, given: &[&str]) -> Effect {
        match self.effects[way as usize] {
            Effect::HonouredWith(other) if given.contains(&other) => Effect::Honoured,
            Effect::HonouredWith(_) => Effect::Nothing,
            effect => effect,
        }
    }

    /// The text of the error where it is refused.
    pub fn refusal(&self, way: Way) -> String {
        match self.why {
            "" => format!("{} has no effect on {}", self.flag, way.name()),
            why => format!("{} is not possible for {}: {why}", self.flag, way.name()),
        }
    }

    /// The line where it is noted.
    pub fn note(&self, way: Way) -> String {
        match self.why {
            "" => format!("{} has no effect on {}", self.flag, way.name()),
            why => format!("{} has no effect: {why}", self.flag),
        }
    }
}

/// An option that has no effect and must not be ignored.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Ineffective(String);

/// An error about options: what is wrong, and what to do.
pub(crate) fn ineffective(text: impl Into<String>, remedy: &str) -> anyhow::Error {
    let text = text.into();
    let error = anyhow::Error::new(Ineffective(text.clone()));
    error.context(format!("try: {remedy}")).context(text)
}

/// Checks the options of a command that goes these ways. Returns what is to be noted.
///
/// # Errors
///
/// An option that protects something has no effect on any of them, or cannot be had on one of them.
pub(crate) fn check(given: &Given, ways: &[Way]) -> anyhow::Result<Vec<String>> {
    let ids: Vec<&str> = given.ids().collect();
    let mut notes = Vec::new();
    for row in OPTIONS.iter().filter(|row| ids.contains(&row.id)) {
        let effects = || ways.iter().map(|way| (*way, row.effect(*way, &ids)));
        let first = effects().find(|(_, effect)| *effect == Effect::Refused);
        let is_honoured =
            effects().any(|(_, effect)| matches!(effect, Effect::Honoured | Effect::InPart(_)));
        let idle = ways.first().filter(|_| !is_honoured);
        match (first, idle, row.class) {
            (Some((way, _)), ..) => return Err(row.refused(way)),
            (None, Some(way), Class::Protects) => return Err(row.refused(*way)),
            (None, Some(way), Class::Metadata | Class::Convenience) => notes.push(row.note(*way)),
            (None, None, _) => {}
        }
        notes.extend(effects().filter_map(|(_, effect)| match effect {
            Effect::InPart(lacks) => Some(lacks.to_owned()),
            _ => None,
        }));
    }
    notes.dedup();
    Ok(notes)
}

impl Row {
    fn refused(&self, way: Way) -> anyhow::Error {
        ineffective(self.refusal(way), self.instead)
    }
}

/// The ways of a copy between these places, where `is_sftp` says that SFTP was asked for.
pub(crate) fn ways(sources: &[Location], target: &Location, is_sftp: bool) -> Vec<Way> {
    let way = |source: &Location| match (source, target) {
        (Location::Remote(_), Location::Remote(_)) => Way::Through,
        (Location::Remote(_), _) | (_, Location::Remote(_)) if is_sftp => Way::Sftp,
        (Location::Remote(_), _) | (_, Location::Remote(_)) => Way::Ssh,
        _ => Way::Here,
    };
    let mut ways: Vec<Way> = sources.iter().map(way).collect();
    ways.dedup();
    ways
}

impl Transfer {
    /// The way that it goes.
    pub(crate) const fn way(&self) -> Way {
        match self {
            Self::Down(Sources::Daemons(_), _) => Way::FromDaemons,
            Self::Down(Sources::Gfarm(_), _) => Way::FromGfarm,
            Self::Down(Sources::S3(_), _) => Way::FromBucket,
            Self::Up(..) => Way::ToDaemons,
            Self::UpToGfarm(..) => Way::ToGfarm,
            Self::UpToS3(..) => Way::ToBucket,
        }
    }
}

#[cfg(test)]
mod tests;
