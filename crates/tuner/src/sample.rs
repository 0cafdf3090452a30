//! The input of a tuner, and its output.

use core::time::Duration;
use hikyaku_units::DataSize;

/// The limit of a transfer while a sample was taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LimitedBy {
    /// The network, or nothing that is known.
    Network,
    /// Reading or writing files at this end.
    Disk,
}

/// The measurements of a chunk's transfer.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Sample {
    /// Connections that carried the chunk.
    pub n: u32,
    /// Bytes of the file that arrived.
    pub bytes: DataSize,
    /// Time from sending the command to the completion of the chunk.
    pub elapsed: Duration,
    /// The limit of the transfer.
    pub limited_by: LimitedBy,
}

/// How much the next chunk has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Next {
    /// This many bytes.
    Bytes(DataSize),
    /// All that is left: the number is final, and no sample is wanted.
    Rest,
}

/// The phase of a tuner.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Phase {
    /// [`Paper`](crate::Paper): the number is multiplied until goodput falls.
    Bracket,
    /// [`Paper`](crate::Paper): golden section between three numbers.
    Search,
    /// [`Paper`](crate::Paper): the search has ended.
    Found,
    /// [`Controller::climb`](crate::Controller::climb): the number of the beginning.
    First,
    /// [`Controller::climb`](crate::Controller::climb): the number was doubled.
    Grow,
    /// [`Controller::climb`](crate::Controller::climb): the number stays, or falls by and by to the one that stays.
    Hold,
    /// [`Controller::climb`](crate::Controller::climb): some more, to see whether they bring more.
    Try,
    /// [`Controller::climb`](crate::Controller::climb): some less, because a queue stands.
    Less,
    /// [`Controller::climb`](crate::Controller::climb): half of them, to see whether all are needed.
    Prove,
    /// [`Fixed`](crate::Fixed).
    Fixed,
}

impl Phase {
    /// Its name in events and logs.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Bracket => "bracket",
            Self::Search => "search",
            Self::Found => "found",
            Self::First => "first",
            Self::Grow => "grow",
            Self::Hold => "hold",
            Self::Try => "try",
            Self::Less => "less",
            Self::Prove => "prove",
            Self::Fixed => "fixed",
        }
    }
}

/// The settings until the next sample.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Decision {
    /// Connections to use; at least 1.
    pub n: u32,
    /// Size of the next chunk.
    pub next: Next,
    /// The phase of the tuner, for logs.
    pub phase: Phase,
}
