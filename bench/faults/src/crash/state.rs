//! What the disk may hold after a power failure: of what was not synced anything may have lasted.
//!
//! Names: a change may be missing, and then so are those that stand on it. Bytes: each page of a file
//! is as it was after any of the writes to it; the length is as it was after any change of it. Names
//! and bytes do not wait for each other.

use super::disk::{Bytes, Disk, Lasting, Names, Node};
use super::record::{Number, Slot};
use fastrand::Rng;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// How much of what is not sure has lasted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Share {
    Nothing,
    Everything,
    /// What came first; as file systems with a journal do it.
    Beginning,
    /// Of each by chance, so many in sixteen.
    Some(u8),
}

/// A way in which power may fail.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Failure {
    pub(crate) names: Share,
    pub(crate) bytes: Share,
    /// What a page is: disks write sectors, and a page may be torn between them.
    pub(crate) unit: usize,
}

const PAGE: usize = 4096;
const SECTOR: usize = 512;

/// Those that are tried at every point, whatever the seed.
pub(crate) const ALWAYS: [Failure; 4] = [
    Failure { names: Share::Nothing, bytes: Share::Nothing, unit: PAGE },
    Failure { names: Share::Everything, bytes: Share::Everything, unit: PAGE },
    Failure { names: Share::Everything, bytes: Share::Nothing, unit: PAGE },
    Failure { names: Share::Nothing, bytes: Share::Everything, unit: PAGE },
];

impl Failure {
    /// One by chance.
    pub(crate) fn any(rng: &mut Rng) -> Self {
        let share = |rng: &mut Rng| match rng.u8(..6) {
            0 => Share::Nothing,
            1 => Share::Everything,
            2 => Share::Beginning,
            _ => Share::Some(rng.u8(1..16)),
        };
        let unit = if rng.u8(..4) == 0 { SECTOR } else { PAGE };
        Self { names: share(rng), bytes: share(rng), unit }
    }

    /// What is left of `disk`.
    pub(crate) fn strike(self, disk: &Disk, rng: &mut Rng) -> Lasting {
        let mut left = disk.lasting.clone();
        for change in self.lasting_names(&disk.names, rng) {
            left.rename(change);
        }
        for (number, changes) in &disk.bytes {
            self.strike_file(&mut left, (*number, changes), rng);
        }
        left
    }

    fn lasting_names<'d>(self, names: &'d [Names], rng: &mut Rng) -> Vec<&'d Names> {
        let first = rng.usize(..=names.len());
        let mut missing: BTreeSet<&Slot> = BTreeSet::new();
        let mut lasting = Vec::new();
        for (at, change) in names.iter().enumerate() {
            let slots = change.slots();
            if self.names.has(at, first, rng) && !slots.iter().any(|slot| missing.contains(slot)) {
                lasting.push(change);
            } else {
                missing.extend(slots);
            }
        }
        lasting
    }

    fn strike_file(self, left: &mut Lasting, (number, changes): (Number, &[Bytes]), rng: &mut Rng) {
        let Some(Node::File(old)) = left.nodes.get_mut(&number) else { return };
        let mut pages: BTreeMap<usize, Vec<Piece<'_>>> = BTreeMap::new();
        let mut lengths = vec![old.len()];
        for (order, change) in changes.iter().enumerate() {
            match change {
                Bytes::Length(length) => lengths.push(*length as usize),
                Bytes::Write(at, bytes) => self.cut(order, *at as usize, bytes, &mut pages),
                Bytes::Zero(range) => {
                    let known = pages.keys().next_back().map_or(0, |page| (page + 1) * self.unit);
                    let end = (range.end as usize).min(known.max(old.len()));
                    let zeros = (range.start as usize..end).step_by(self.unit);
                    for at in zeros {
                        let page = at / self.unit;
                        let piece =
                            Piece { order, at, what: What::Zeros(end.min((page + 1) * self.unit)) };
                        pages.entry(page).or_default().push(piece);
                    }
                }
            }
        }
        let bytes = Arc::make_mut(old);
        let first = rng.usize(..=changes.len());
        for pieces in pages.values() {
            // A page holds all that was written to it until it was written back.
            let lasting = pieces.iter().rposition(|piece| self.bytes.has(piece.order, first, rng));
            for piece in &pieces[..lasting.map_or(0, |last| last + 1)] {
                piece.apply(bytes);
            }
        }
        let length = match self.bytes {
            Share::Nothing => lengths[0],
            Share::Everything => lengths[lengths.len() - 1],
            Share::Beginning | Share::Some(_) => lengths[rng.usize(..lengths.len())],
        };
        bytes.resize(length, 0);
    }

    fn cut<'d>(
        self,
        order: usize,
        at: usize,
        bytes: &'d [u8],
        pages: &mut BTreeMap<usize, Vec<Piece<'d>>>,
    ) {
        let mut done = 0;
        while done < bytes.len() {
            let from = at + done;
            let here = (self.unit - from % self.unit).min(bytes.len() - done);
            let what = What::Bytes(&bytes[done..done + here]);
            pages.entry(from / self.unit).or_default().push(Piece { order, at: from, what });
            done += here;
        }
    }
}

impl Share {
    fn has(self, at: usize, first: usize, rng: &mut Rng) -> bool {
        match self {
            Self::Nothing => false,
            Self::Everything => true,
            Self::Beginning => at < first,
            Self::Some(sixteenths) => rng.u8(..16) < sixteenths,
        }
    }
}

/// A change within a page.
struct Piece<'d> {
    /// Which change of the file it is of.
    order: usize,
    at: usize,
    what: What<'d>,
}

enum What<'d> {
    Bytes(&'d [u8]),
    /// Up to there.
    Zeros(usize),
}

impl Piece<'_> {
    fn apply(&self, bytes: &mut Vec<u8>) {
        match self.what {
            What::Bytes(new) => super::disk::put(bytes, self.at, new),
            What::Zeros(end) => {
                let end = end.min(bytes.len());
                bytes[self.at.min(end)..end].fill(0);
            }
        }
    }
}
