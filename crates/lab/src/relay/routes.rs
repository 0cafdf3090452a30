//! Selects the links that a packet takes between ports.
//!
//! Ports are connected in one of two ways. In a star, port 0 is the client and ports 1 to N are the
//! servers: all traffic takes the common link, and a server with a rate or delay of its own has an
//! access link behind it. In a mesh, each port is the gateway of a site, and every pair of sites
//! has a link.

use super::line::Line;
use crate::address;
use crate::lab::Access;
use crate::site::pairs;
use hikyaku_link::Direction::{Down, Up};
use hikyaku_link::{LinkSpec, PathSpec};
use hikyaku_units::Instant;
use std::net::IpAddr;

/// How the ports are connected.
#[derive(Clone, Debug)]
pub(crate) enum Topology {
    /// A client and servers behind a common link; each server may have an access link.
    Star { access: Vec<Access> },
    /// This many sites with a link for every pair; the paths are in the order of [`pairs`].
    Mesh { sites: u32 },
}

/// All links by index: path K has link 2K as "up" and link 2K + 1 as "down"; the access links
/// follow.
#[derive(Debug)]
pub(crate) struct Routes {
    pub(crate) lines: Vec<Line>,
    ways: Ways,
}

#[derive(Debug)]
enum Ways {
    Star {
        /// The access links of each server, up and down, if it has any.
        access: Vec<Option<(usize, usize)>>,
    },
    Mesh {
        sites: u32,
    },
}

/// The common link of a star, from the client to the servers.
const MAIN_UP: usize = 0;
/// The common link of a star, from the servers to the client.
const MAIN_DOWN: usize = 1;
/// The client's port in a star.
pub(crate) const CLIENT: u32 = 0;

/// What follows a link on a packet's route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    Line(usize),
    Port,
}

/// The indices of the links of path `index`, up and down.
pub(crate) fn lines_of(index: usize) -> (usize, usize) {
    (2 * index, 2 * index + 1)
}

impl Routes {
    /// Creates the links of `paths`; a star has one path.
    pub(crate) fn new(topology: &Topology, paths: &[PathSpec], seed: u64) -> Self {
        let mut lines = Vec::new();
        for (path, index) in paths.iter().zip(0_u64..) {
            // The seeds of different paths are 2^32 apart. Seeds that users choose seldom differ by
            // that much, so that two labs do not share random sequences.
            let seed = seed.wrapping_mul(2).wrapping_add(index << 32);
            lines.push(Line::new(path.link(Up), seed));
            lines.push(Line::new(path.link(Down), seed + 1));
        }
        let ways = match topology {
            Topology::Mesh { sites } => Ways::Mesh { sites: *sites },
            Topology::Star { access } => {
                let mut own = |access: &Access| {
                    let both = [Up, Down].map(|direction| {
                        let LinkSpec { queue, queue_packets, .. } = paths[0].link(direction);
                        let Access { rate, delay } = *access;
                        let spec =
                            LinkSpec { rate, delay, queue, queue_packets, ..Default::default() };
                        lines.push(Line::new(spec, seed));
                        lines.len() - 1
                    });
                    (both[0], both[1])
                };
                let has_own = |access: &&Access| **access != Access::default();
                let access = access.iter().map(|access| Some(access).filter(has_own).map(&mut own));
                Ways::Star { access: access.collect() }
            }
        };
        Self { lines, ways }
    }

    /// The first link and the destination port of a packet that arrived from `port`. `None` if it
    /// is not addressed to a host of the lab, such as multicast.
    pub(crate) fn first(&self, port: u32, destination: IpAddr) -> Option<(usize, u32)> {
        match &self.ways {
            Ways::Star { access } => {
                let to = address::port_of(destination)?;
                if port == CLIENT {
                    return (to != CLIENT && to as usize <= access.len()).then_some((MAIN_UP, to));
                }
                let line = access[port as usize - 1].map_or(MAIN_DOWN, |(_, down)| down);
                (to == CLIENT).then_some((line, to))
            }
            Ways::Mesh { sites } => {
                let to = address::site_of(destination).filter(|to| *to < *sites && *to != port)?;
                let (up, down) = lines_of(pairs::index(*sites, port, to));
                Some((if port < to { up } else { down }, to))
            }
        }
    }

    /// What follows link `line` on the route to `port`.
    pub(crate) fn next(&self, line: usize, port: u32) -> Next {
        let Ways::Star { access } = &self.ways else { return Next::Port };
        match line {
            MAIN_DOWN => Next::Port,
            MAIN_UP => {
                let access = access.get(port as usize - 1).copied().flatten();
                access.map_or(Next::Port, |(up, _)| Next::Line(up))
            }
            // A packet to the client that leaves an access link still has to take the common link.
            _ if port == CLIENT => Next::Line(MAIN_DOWN),
            _ => Next::Port,
        }
    }

    /// The link on which the next packet arrives, and when.
    #[inline]
    pub(crate) fn earliest(&self) -> Option<(Instant, usize)> {
        let arrivals = self.lines.iter().enumerate();
        arrivals.filter_map(|(index, line)| line.next_at().map(|at| (at, index))).min()
    }

    /// The indices of each server's access links, up and down.
    pub(crate) fn access(&self) -> &[Option<(usize, usize)>] {
        match &self.ways {
            Ways::Star { access } => access,
            Ways::Mesh { .. } => &[],
        }
    }
}
