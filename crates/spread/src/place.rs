//! Where an upload goes.

use crate::ids::ServerId;
use alloc::vec::Vec;
use hikyaku_units::{DataSize, Probability, Rate};

/// The rule by which targets are chosen.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Placement {
    /// The server that would be done with the file first. The default, because it needs no knowledge of the user's
    /// and keeps all servers busy until the end.
    #[default]
    Auto,
    /// One server after the other.
    RoundRobin,
    /// The server with the most free space.
    Space,
    /// By the hash of the file's name: the same file goes to the same server in every run, as long as that has
    /// room. If a server leaves, only its own files move.
    Hash,
    /// This server.
    Pin(ServerId),
}

/// A file to be placed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Upload {
    /// Its size.
    pub size: DataSize,
    /// A hash of its name, for [`Placement::Hash`].
    pub name_hash: u64,
}

/// A server that an upload may go to, as its last report says.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Candidate {
    /// Which server.
    pub server: ServerId,
    /// The measured rate to it; `None` if nothing was sent yet.
    pub rate: Option<Rate>,
    /// Bytes that were placed there and have not been sent.
    pub queued: DataSize,
    /// The size of its file system.
    pub total: DataSize,
    /// What is free of it.
    pub free: DataSize,
    /// What is promised of the free bytes.
    pub reserved: DataSize,
    /// How busy it is.
    pub strain: Strain,
}

/// How busy a server is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Strain {
    /// It does what it is asked.
    Light,
    /// Its load is above its number of cores, or its disk is busy for more than 90 % of the time. It counts as half
    /// as fast as it was measured.
    Heavy,
}

/// The share of time above which a disk is heavily busy.
const DISK_BUSY_MAX: f64 = 0.9;

/// The least space that stays free (1 GiB), or a twentieth of the file system if that is more.
const SPARE_BYTES_MIN: u64 = 1 << 30;

/// The part of the file system that stays free.
const SPARE_PART: u64 = 20;

impl Strain {
    /// The strain of a server with this load average, number of cores, and share of time in which its disk is busy.
    pub fn of(load: f64, cores: u32, disk_busy: Probability) -> Self {
        let is_heavy = load > f64::from(cores) || disk_busy.get() > DISK_BUSY_MAX;
        if is_heavy { Self::Heavy } else { Self::Light }
    }
}

impl Candidate {
    /// Whether the file fits and enough stays free.
    fn has_room(&self, size: DataSize) -> bool {
        let spare = (self.total.bytes() / SPARE_PART).max(SPARE_BYTES_MIN);
        let needed = u128::from(size.bytes()) + u128::from(spare);
        u128::from(self.unpromised()) >= needed
    }

    fn unpromised(&self) -> u64 {
        self.free.bytes().saturating_sub(self.reserved.bytes())
    }

    /// Seconds until the file would be there.
    fn seconds(&self, size: DataSize, usual: f64) -> f64 {
        let rate = self.rate.map_or(usual, Rate::bytes_per_sec);
        let rate = if self.strain == Strain::Heavy { rate / 2.0 } else { rate };
        (self.queued.bytes() as f64 + size.bytes() as f64) / rate.max(1.0)
    }
}

/// No server can take the file.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum PlaceError {
    /// There is no candidate.
    #[error("there is no server to put the file on; try: look at the cluster's status")]
    NoServer,
    /// All candidates are too full.
    #[error(
        "no server has {size} free beside the spare twentieth of its file system (1 GiB at least); try: free space, \
         or name more hosts"
    )]
    NoRoom {
        /// The size of the file.
        size: DataSize,
    },
    /// The server that the user chose is not among the candidates.
    #[error("the chosen server does not answer; try: choose another one, or let the client choose")]
    PinnedAway,
    /// The server that the user chose is too full.
    #[error(
        "the chosen server has not {size} free beside the spare twentieth of its file system (1 GiB at least); try: \
         free space on that server, or choose another one"
    )]
    PinnedFull {
        /// The size of the file.
        size: DataSize,
    },
}

/// Chooses targets of uploads.
///
/// A target is chosen when the file's draft is reserved. If the target is lost before the file has its name, the
/// caller chooses again among the others. The caller adds the size to [`Candidate::queued`] and
/// [`Candidate::reserved`] of the chosen server.
#[derive(Clone, Debug)]
pub struct Placer {
    rule: Placement,
    /// For [`Placement::RoundRobin`]: the last chosen server.
    last: Option<ServerId>,
}

impl Placer {
    /// A placer of this rule.
    pub const fn new(rule: Placement) -> Self {
        Self { rule, last: None }
    }

    /// The server for a file. Equal calls in equal order give equal answers; of equally good servers it is the
    /// first in the order of their ids.
    pub fn choose(
        &mut self,
        upload: &Upload,
        candidates: &[Candidate],
    ) -> Result<ServerId, PlaceError> {
        let size = upload.size;
        if let Placement::Pin(server) = self.rule {
            let pinned = candidates.iter().find(|candidate| candidate.server == server);
            let pinned = pinned.ok_or(PlaceError::PinnedAway)?;
            return if pinned.has_room(size) {
                Ok(server)
            } else {
                Err(PlaceError::PinnedFull { size })
            };
        }
        if candidates.is_empty() {
            return Err(PlaceError::NoServer);
        }
        let mut fit: Vec<&Candidate> =
            candidates.iter().filter(|candidate| candidate.has_room(size)).collect();
        fit.sort_by_key(|candidate| candidate.server);
        let chosen = match self.rule {
            Placement::RoundRobin => {
                let next = fit.iter().find(|candidate| Some(candidate.server) > self.last);
                next.or_else(|| fit.first()).copied()
            }
            Placement::Space => fit.iter().copied().rev().max_by_key(|found| found.unpromised()),
            Placement::Hash => {
                fit.iter().copied().max_by_key(|found| weight(upload.name_hash, found.server))
            }
            Placement::Auto | Placement::Pin(_) => {
                let usual = median_rate(candidates);
                let seconds = |found: &Candidate| found.seconds(size, usual);
                fit.iter().copied().min_by(|a, b| seconds(a).total_cmp(&seconds(b)))
            }
        };
        let chosen = chosen.ok_or(PlaceError::NoRoom { size })?.server;
        self.last = Some(chosen);
        Ok(chosen)
    }
}

/// The median of the known rates in bytes a second. Without any, all servers count as equal.
fn median_rate(candidates: &[Candidate]) -> f64 {
    let mut rates: Vec<Rate> = candidates.iter().filter_map(|candidate| candidate.rate).collect();
    rates.sort_unstable();
    rates.get(rates.len() / 2).map_or(1.0, |rate| rate.bytes_per_sec())
}

/// The weight of a server for a name (rendezvous hashing). The mixing is that of SplitMix64.
fn weight(name: u64, server: ServerId) -> u64 {
    let mut mixed = name ^ (u64::from(server.0) + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests;
