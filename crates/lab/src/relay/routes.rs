//! Which links a packet takes between the ports.
//!
//! Port 0 is the client's, ports 1 to N are the servers'. All traffic takes the main link; a server
//! with a rate or a delay of its own has an access link behind it.

use super::line::Line;
use crate::address;
use crate::lab::Access;
use hikyaku_link::Direction::{Down, Up};
use hikyaku_link::{LinkSpec, PathSpec};
use hikyaku_units::Instant;
use std::net::IpAddr;

/// All links, by number.
#[derive(Debug)]
pub(crate) struct Routes {
    pub(crate) lines: Vec<Line>,
    /// Each server's own links, up and down, if it has them.
    access: Vec<Option<(usize, usize)>>,
}

/// The main link from the client to the servers.
pub(crate) const MAIN_UP: usize = 0;
/// The main link from the servers to the client.
pub(crate) const MAIN_DOWN: usize = 1;
/// The port of the client.
pub(crate) const CLIENT: u32 = 0;

/// Where a packet goes after a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    Line(usize),
    Port,
}

impl Routes {
    pub(crate) fn new(path: &PathSpec, access: &[Access], seed: u64) -> Self {
        let mut lines = vec![
            Line::new(path.link(Up), seed.wrapping_mul(2)),
            Line::new(path.link(Down), seed.wrapping_mul(2) + 1),
        ];
        let mut own = |access: &Access| {
            let both = [Up, Down].map(|direction| {
                let queue = path.link(direction).queue;
                let Access { rate, delay } = *access;
                let spec = LinkSpec { rate, delay, queue, ..Default::default() };
                lines.push(Line::new(spec, seed));
                lines.len() - 1
            });
            (both[0], both[1])
        };
        let has_own = |access: &&Access| **access != Access::default();
        let access = access.iter().map(|access| Some(access).filter(has_own).map(&mut own));
        let access = access.collect();
        Self { lines, access }
    }

    /// The first link and the destination port of a packet that came in at `port`, or `None` if it
    /// is not for anyone here: multicast and the like.
    pub(crate) fn first(&self, port: u32, destination: IpAddr) -> Option<(usize, u32)> {
        let to = address::port_of(destination)?;
        if port == CLIENT {
            return (to != CLIENT && to as usize <= self.access.len()).then_some((MAIN_UP, to));
        }
        let line = self.access[port as usize - 1].map_or(MAIN_DOWN, |(_, down)| down);
        (to == CLIENT).then_some((line, to))
    }

    /// What follows link `line` on the way to `port`.
    pub(crate) fn next(&self, line: usize, port: u32) -> Next {
        match line {
            MAIN_DOWN => Next::Port,
            MAIN_UP => {
                let access = self.access.get(port as usize - 1).copied().flatten();
                access.map_or(Next::Port, |(up, _)| Next::Line(up))
            }
            // What leaves an access link for the client still has the main link before it.
            _ if port == CLIENT => Next::Line(MAIN_DOWN),
            _ => Next::Port,
        }
    }

    /// The link on which a packet arrives next, and when.
    #[inline]
    pub(crate) fn earliest(&self) -> Option<(Instant, usize)> {
        let arrivals = self.lines.iter().enumerate();
        arrivals.filter_map(|(index, line)| line.next_at().map(|at| (at, index))).min()
    }

    /// The numbers of a server's own links, up and down.
    pub(crate) fn access(&self) -> impl Iterator<Item = Option<(usize, usize)>> + '_ {
        self.access.iter().copied()
    }
}
