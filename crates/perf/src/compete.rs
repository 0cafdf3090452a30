//! Competitors: flows of TCP or of our own beside the measured ones, between the same two ends, so that
//! one command tells what each takes from the other.
//!
//! A test with competitors has three parts of the same length: they alone, all together, the measured
//! flows alone. So they run without a pause for two parts, and an ordinary test begins when the first is
//! over and lasts for the other two. The receiving end's clock decides, as always: it says when they
//! begin, counts them, and then lets the measured sender begin.
//!
//! The server listens for TCP no longer than it takes for those that were agreed upon to come, and
//! takes only who shows the token that it told the client over the encrypted connection (`tcp`).

mod begin;
mod flows;
mod parts;
mod tcp;
mod verdict;

pub(crate) use begin::{Competition, Lines, await_start, begin, relay};
pub(crate) use parts::{CompetitorCount, Part};
pub(crate) use tcp::{Meet, Meeting, connect, resolve};
pub(crate) use verdict::{Goodputs, Standing, total};

use crate::message::Plain;
use hikyaku_net::Policy;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

#[cfg(test)]
mod tests;

/// What competes, in the order in which users gave it.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Compete {
    pub(crate) groups: Vec<Group>,
}

/// Flows that are alike.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct Group {
    pub(crate) kind: Kind,
    pub(crate) count: u32,
    /// TCP's congestion control, or our policy; without one the usual of the end that sends.
    pub(crate) manner: Option<Plain>,
}

/// Whose flows they are.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Kind {
    Tcp,
    Hikyaku,
}

/// The most competitors, of all kinds together: each is a thread and a socket at a server that anybody
/// may ask.
pub(crate) const MAX_COMPETITORS: u32 = 64;
/// Room for a name of a congestion control in the kernel, and for a policy.
const MAX_NAME: usize = 15;
const GRAMMAR: &str = "must be like tcp:4:cubic, tcp:2, hikyaku:1:scavenger, or several by commas";

impl Compete {
    /// How many are of this kind.
    pub(crate) fn count(&self, kind: Kind) -> u32 {
        let counts = self.groups.iter().filter(|group| group.kind == kind).map(|group| group.count);
        counts.fold(0, u32::saturating_add)
    }

    /// How many there are.
    pub(crate) fn all(&self) -> u32 {
        self.count(Kind::Tcp).saturating_add(self.count(Kind::Hikyaku))
    }

    /// Whether both have the same flows, whatever their manner.
    pub(crate) fn is_as_many(&self, other: &Self) -> bool {
        let shape = |of: &Self| of.groups.iter().map(|g| (g.kind, g.count)).collect::<Vec<_>>();
        shape(self) == shape(other)
    }

    /// One after another: the group of each.
    pub(crate) fn flows(&self) -> impl Iterator<Item = &Group> {
        self.groups.iter().flat_map(|group| std::iter::repeat_n(group, group.count as usize))
    }
}

impl Group {
    /// What tells it from others: `tcp cubic`.
    pub(crate) fn name(&self) -> String {
        match &self.manner {
            Some(manner) => format!("{} {}", self.kind, manner.0),
            None => self.kind.to_string(),
        }
    }
}

impl FromStr for Compete {
    type Err = String;
    // fuzz: none, the user's own words
    fn from_str(text: &str) -> Result<Self, String> {
        let groups: Result<Vec<Group>, String> = text.split(',').map(str::parse).collect();
        Ok(Self { groups: groups? })
    }
}

impl FromStr for Group {
    type Err = String;
    // fuzz: none, the user's own words
    fn from_str(text: &str) -> Result<Self, String> {
        let mut parts = text.splitn(3, ':');
        let kind = match parts.next() {
            Some("tcp") => Kind::Tcp,
            Some("hikyaku") => Kind::Hikyaku,
            _ => return Err(GRAMMAR.to_owned()),
        };
        let count = parts.next().and_then(|count| count.parse().ok());
        let count = count.filter(|count| *count > 0).ok_or(GRAMMAR)?;
        let manner = match (kind, parts.next()) {
            (_, None) => None,
            (Kind::Tcp, Some(name)) => Some(control(name)?),
            (Kind::Hikyaku, Some(policy)) => {
                let known: Result<Policy, _> = policy.parse();
                known.map_err(|error| error.to_string())?;
                Some(policy)
            }
        };
        Ok(Self { kind, count, manner: manner.map(|text| Plain(text.to_owned())) })
    }
}

/// The name of a congestion control as kernels write it.
fn control(name: &str) -> Result<&str, String> {
    let is_usual = |c: char| c.is_ascii_alphanumeric() || "_-".contains(c);
    if (1..=MAX_NAME).contains(&name.len()) && name.chars().all(is_usual) {
        Ok(name)
    } else {
        Err(format!("'{name}' is no name of a congestion control"))
    }
}

impl fmt::Display for Compete {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, group) in self.groups.iter().enumerate() {
            let comma = if index > 0 { "," } else { "" };
            write!(f, "{comma}{}:{}", group.kind, group.count)?;
            if let Some(manner) = &group.manner {
                write!(f, ":{}", manner.0)?;
            }
        }
        Ok(())
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Tcp => "tcp",
            Self::Hikyaku => "hikyaku",
        })
    }
}
