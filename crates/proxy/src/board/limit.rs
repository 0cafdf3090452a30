//! What holds the rate of a flow, inferred from what its two gateways wait for and from the buffers between them.

use super::doing::Doing;
use crate::meter::Reading;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// What holds the rate of a flow.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Limit {
    /// Nothing passes, and nobody waits for room.
    Idle,
    /// The path between the gateways.
    Path,
    /// The program here: it does not read, or does not write, any faster.
    Program,
    /// The program's processor: one of its threads computes all the time.
    Processor,
    /// The disk here: the program cannot write its file any faster.
    Disk,
    /// The server, or the TCP connection between it and the far gateway.
    FarTcp,
    /// The far gateway has not said what it waits for.
    PathOrFarTcp,
}

/// What was seen of a flow for some time.
#[derive(Clone, Copy)]
pub(crate) struct Observed {
    /// How long it was looked at.
    pub(crate) time: Duration,
    /// From the program to the far gateway.
    pub(crate) outgoing: Reading,
    /// From the far gateway to the program.
    pub(crate) incoming: Reading,
    /// How much of the memory of the program's socket is in use, from 0 to 1. 0 if it is not known.
    pub(crate) socket: f64,
    /// What the far gateway has waited for meanwhile, if it has said so.
    pub(crate) far: Option<FarParts>,
    /// What the kernel does with pages of the program's file.
    pub(crate) disk: Disk,
    /// What the program does, if it is the program that holds the flow ([`Observed::is_held_by_program`]).
    pub(crate) doing: Doing,
}

/// The parts of the time, from 0 to 1, that a flow has waited at the far gateway.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub(crate) struct FarParts {
    /// For bytes of the server.
    pub(crate) server: f64,
    /// For room on the path.
    pub(crate) path: f64,
    /// For the server to take bytes of the program.
    pub(crate) reader: f64,
}

/// Whether programs that write files wait for the disk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Disk {
    /// They do not, or it is not known.
    Keeps,
    /// So many pages are dirty that the kernel makes writers wait, and this flow's file is among them.
    Behind,
}

/// A direction that waits for this part of the time is held by what it waits for.
const HELD: f64 = 0.5;
/// The same where there may be many short waits beside the work of moving bytes.
const HELD_SINK: f64 = 0.25;

/// A socket is full that has no room for a large segment: its memory is counted in pages, of which some are not used up.
const FULL: f64 = 0.8;

impl Observed {
    /// What holds the direction in which more has passed.
    pub(crate) fn limit(&self) -> Limit {
        match self.incoming.bytes >= self.outgoing.bytes {
            true => self.of_download(),
            false => self.of_upload(),
        }
    }

    /// Whether the program holds a download: it does not read any faster.
    pub(crate) fn is_held_by_program(&self) -> bool {
        let is_full = self.part(self.incoming.sink) >= HELD_SINK || self.socket >= FULL;
        self.incoming.bytes >= self.outgoing.bytes && is_full
    }

    fn of_download(&self) -> Limit {
        if self.is_held_by_program() {
            return match (self.disk, self.doing) {
                (Disk::Behind, _) | (_, Doing::Writing) => Limit::Disk,
                (Disk::Keeps, Doing::Computing) => Limit::Processor,
                (Disk::Keeps, Doing::Other) => Limit::Program,
            };
        }
        if self.incoming.bytes == 0 {
            return Limit::Idle;
        }
        match self.far {
            None => Limit::PathOrFarTcp,
            Some(far) if far.path >= HELD_SINK || far.path >= far.server => Limit::Path,
            Some(far) if far.server >= HELD => Limit::FarTcp,
            Some(_) => Limit::Path,
        }
    }

    fn of_upload(&self) -> Limit {
        if self.part(self.outgoing.sink) < HELD_SINK {
            return Limit::Program;
        }
        match self.far {
            Some(far) if far.reader >= HELD_SINK => Limit::FarTcp,
            Some(_) => Limit::Path,
            None => Limit::PathOrFarTcp,
        }
    }

    fn part(&self, of: Duration) -> f64 {
        of.as_secs_f64() / self.time.as_secs_f64().max(f64::MIN_POSITIVE)
    }
}

#[cfg(test)]
mod tests;
