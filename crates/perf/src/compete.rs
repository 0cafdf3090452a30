//! Competing flows: TCP or hikyaku flows that run beside the measured ones, between the same two
//! ends, to measure how much each side takes from the other.
//!
//! A test with competing flows has three parts of equal length: the competing flows alone, all
//! flows together, the measured flows alone. The competing flows therefore run without a pause
//! during the first two parts, and an ordinary test starts when the first part is over and covers
//! the other two. As in every test the receiving end's clock decides: it tells the competing flows
//! to begin, counts their bytes, and one part later lets the measured sender begin.
//!
//! The server listens for TCP only until the agreed number of connections has arrived. It accepts
//! only connections that present the token which the server sent to the client over the encrypted
//! connection (`tcp`).

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

/// The competing flows, in the order in which the user gave them.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Compete {
    pub(crate) groups: Vec<Group>,
}

/// Flows of the same kind and congestion control.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct Group {
    pub(crate) kind: Kind,
    pub(crate) count: u32,
    /// TCP's congestion control or the hikyaku policy. `None` stands for the default of the sending
    /// end.
    pub(crate) manner: Option<Plain>,
}

/// The protocol of competing flows.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Kind {
    Tcp,
    Hikyaku,
}

/// Limit on competing flows, of all kinds together: each costs a thread and a socket at a server
/// that may be open to everybody.
pub(crate) const MAX_COMPETITORS: u32 = 64;
/// Longest name of a congestion control in Linux (TCP_CA_NAME_MAX without its zero byte).
const MAX_NAME: usize = 15;
const GRAMMAR: &str =
    "must be like tcp:4:cubic, tcp:2 or hikyaku:1:scavenger, or several separated by commas";

impl Compete {
    /// Number of flows of this kind.
    pub(crate) fn count(&self, kind: Kind) -> u32 {
        let counts = self.groups.iter().filter(|group| group.kind == kind).map(|group| group.count);
        counts.fold(0, u32::saturating_add)
    }

    /// Number of all flows.
    pub(crate) fn all(&self) -> u32 {
        self.count(Kind::Tcp).saturating_add(self.count(Kind::Hikyaku))
    }

    /// Whether both have the same kinds and numbers of flows, whatever their congestion control.
    pub(crate) fn is_as_many(&self, other: &Self) -> bool {
        let shape = |of: &Self| of.groups.iter().map(|g| (g.kind, g.count)).collect::<Vec<_>>();
        shape(self) == shape(other)
    }

    /// The group of each single flow, in order.
    pub(crate) fn flows(&self) -> impl Iterator<Item = &Group> {
        self.groups.iter().flat_map(|group| std::iter::repeat_n(group, group.count as usize))
    }
}

impl Group {
    /// The name under which a flow is reported, such as `tcp cubic`.
    pub(crate) fn name(&self) -> String {
        match &self.manner {
            Some(manner) => format!("{} {}", self.kind, manner.0),
            None => self.kind.to_string(),
        }
    }
}

impl FromStr for Compete {
    type Err = String;
    // fuzz: none, input comes from the local user
    fn from_str(text: &str) -> Result<Self, String> {
        let groups: Result<Vec<Group>, String> = text.split(',').map(str::parse).collect();
        Ok(Self { groups: groups? })
    }
}

impl FromStr for Group {
    type Err = String;
    // fuzz: none, input comes from the local user
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

/// Checks that a name has the form of a congestion control's name in Linux.
fn control(name: &str) -> Result<&str, String> {
    let is_usual = |c: char| c.is_ascii_alphanumeric() || "_-".contains(c);
    if (1..=MAX_NAME).contains(&name.len()) && name.chars().all(is_usual) {
        Ok(name)
    } else {
        Err(format!("'{name}' is not a name of a congestion control"))
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
