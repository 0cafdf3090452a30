//! The bytes of a file that is written, in parts: those that are here, and those that went to the server.

use bytes::Bytes;
use std::collections::BTreeMap;

/// The parts of a file. Ranges that were never written are zeros.
#[derive(Debug)]
pub(crate) struct Parts {
    sizes: Sizes,
    length: u64,
    all: BTreeMap<u64, Part>,
}

/// The sizes of parts. The last one may have fewer bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Sizes {
    /// All have this one.
    Equal(u64),
    /// The first thousand have this one, and each thousand that follows twice that of the one before: a file whose size is not
    /// known fits into the parts that an upload may have.
    Doubling(u64),
}

#[derive(Debug)]
enum Part {
    /// Bytes up to the last one that was written, and which of them were.
    Here(Vec<u8>, Ranges),
    /// It was whole and went to the server.
    Away,
}

/// Why bytes cannot be written or read here.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum NotHere {
    /// They went to the server, and no part can be changed or read there.
    Away,
    /// More parts than are held at once are not whole.
    Scattered,
    /// An upload has no more parts.
    TooLong,
}

/// Parts that are not whole: a writer from the begin to the end has one.
pub(crate) const OPEN_MAX: usize = 16;
/// Parts of an upload (Amazon S3 user guide, "Multipart upload limits").
const PARTS_MAX: u64 = 10_000;
/// Parts of one size where their sizes grow.
const STEP: u64 = 1_000;

impl Sizes {
    /// The bytes of the first part.
    const fn first(self) -> u64 {
        match self {
            Self::Equal(size) | Self::Doubling(size) => size,
        }
    }

    /// The number of the part that has the byte at `at`, and where that part begins.
    const fn part_at(self, at: u64) -> (u64, u64) {
        match self {
            Self::Equal(size) => (at / size, at - at % size),
            Self::Doubling(first) => {
                let level = (at / (first * STEP) + 1).ilog2();
                let below = first * STEP * ((1 << level) - 1);
                let within = (at - below) / (first << level);
                (level as u64 * STEP + within, below + within * (first << level))
            }
        }
    }

    /// The bytes of a part that is not the last one, and where it begins.
    const fn size_of(self, number: u64) -> (u64, u64) {
        match self {
            Self::Equal(size) => (size, number * size),
            Self::Doubling(first) => {
                let level = number / STEP;
                let size = first << level;
                (size, first * STEP * ((1 << level) - 1) + number % STEP * size)
            }
        }
    }

    /// The parts of a file of this length.
    const fn count(self, length: u64) -> u64 {
        match length.checked_sub(1) {
            Some(last) => self.part_at(last).0 + 1,
            None => 0,
        }
    }
}

impl Parts {
    /// No bytes, in parts of these sizes.
    pub(crate) const fn new(sizes: Sizes) -> Self {
        Self { sizes, length: 0, all: BTreeMap::new() }
    }

    pub(crate) const fn length(&self) -> u64 {
        self.length
    }

    /// Whether all of it fits into one part.
    pub(crate) const fn is_small(&self) -> bool {
        self.length <= self.sizes.first()
    }

    pub(crate) fn write(&mut self, at: u64, bytes: &[u8]) -> Result<(), NotHere> {
        let end = at.checked_add(bytes.len() as u64).ok_or(NotHere::TooLong)?;
        if self.sizes.count(end) > PARTS_MAX {
            return Err(NotHere::TooLong);
        }
        for (number, within, piece) in self.pieces(at, bytes.len()) {
            let open = self.all.values().filter(|part| matches!(part, Part::Here(..))).count();
            let part = self.all.entry(number);
            if matches!(part, std::collections::btree_map::Entry::Vacant(_)) && open >= OPEN_MAX {
                return Err(NotHere::Scattered);
            }
            match part.or_insert_with(|| Part::Here(Vec::new(), Ranges::default())) {
                Part::Away => return Err(NotHere::Away),
                Part::Here(content, written) => {
                    let end = within + piece.len();
                    content.resize(content.len().max(end), 0);
                    content[within..end].copy_from_slice(&bytes[piece]);
                    written.add(within, end);
                }
            }
        }
        self.length = self.length.max(end);
        Ok(())
    }

    /// The pieces of a range of bytes: the number of the part, where it begins there, and the range of the bytes.
    fn pieces(
        &self,
        at: u64,
        length: usize,
    ) -> impl Iterator<Item = (u64, usize, std::ops::Range<usize>)> + use<> {
        let (sizes, mut done) = (self.sizes, 0);
        std::iter::from_fn(move || {
            let here = at + done as u64;
            let (number, begin) = sizes.part_at(here);
            let within = here - begin;
            let piece = (length - done).min((sizes.size_of(number).0 - within) as usize);
            let range = done..done + piece;
            done += piece;
            (piece > 0).then_some((number, within as usize, range))
        })
    }

    /// Bytes that were written; fewer than asked for at the end.
    pub(crate) fn read(&self, at: u64, into: &mut [u8]) -> Result<usize, NotHere> {
        let end = self.length.min(at.saturating_add(into.len() as u64));
        let length = end.saturating_sub(at) as usize;
        for (number, within, piece) in self.pieces(at, length) {
            let into = &mut into[piece];
            into.fill(0);
            match self.all.get(&number) {
                Some(Part::Away) => return Err(NotHere::Away),
                Some(Part::Here(content, _)) => {
                    let there = content.get(within..).unwrap_or_default();
                    let there = &there[..there.len().min(into.len())];
                    into[..there.len()].copy_from_slice(there);
                }
                None => {}
            }
        }
        Ok(length)
    }

    /// Cuts it, or extends it by zeros.
    pub(crate) fn set_length(&mut self, length: u64) -> Result<(), NotHere> {
        if self.sizes.count(length) > PARTS_MAX {
            return Err(NotHere::TooLong);
        }
        let is_cut = |(number, part): (&u64, &Part)| {
            let (size, begin) = self.sizes.size_of(*number);
            matches!(part, Part::Away) && begin + size > length
        };
        if length < self.length && self.all.iter().any(is_cut) {
            return Err(NotHere::Away);
        }
        let (last, begin) = self.sizes.part_at(length);
        let within = (length - begin) as usize;
        self.all.retain(|number, _| *number < last || (*number == last && within > 0));
        if let Some(Part::Here(content, written)) = self.all.get_mut(&last) {
            content.truncate(within);
            written.cut(within);
        }
        self.length = length;
        Ok(())
    }

    fn is_away(&self, number: u64) -> bool {
        matches!(self.all.get(&number), Some(Part::Away))
    }

    /// Hands out the parts that are whole. They are not here any more.
    pub(crate) fn take_whole(&mut self) -> Vec<(u64, Bytes)> {
        let (sizes, mut taken) = (self.sizes, Vec::new());
        for (number, part) in &mut self.all {
            if let Part::Here(content, written) = part
                && written.covers(sizes.size_of(*number).0 as usize)
            {
                taken.push((*number, Bytes::from(std::mem::take(content))));
                *part = Part::Away;
            }
        }
        taken
    }

    /// Hands out one of the parts that are here or were never written; `None` if there is none. The bytes do not change
    /// any more.
    pub(crate) fn take_next(&mut self) -> Option<(u64, Bytes)> {
        let number = (0..self.sizes.count(self.length)).find(|number| !self.is_away(*number))?;
        let (size, begin) = self.sizes.size_of(number);
        let length = (self.length - begin).min(size) as usize;
        let mut content = match self.all.insert(number, Part::Away) {
            Some(Part::Here(content, _)) => content,
            _ => Vec::new(),
        };
        content.resize(length, 0);
        Some((number, content.into()))
    }
}

/// Ranges of bytes, in order and apart from each other.
#[derive(Debug, Default)]
struct Ranges(Vec<(usize, usize)>);

impl Ranges {
    fn add(&mut self, start: usize, end: usize) {
        let (mut start, mut end) = (start, end);
        self.0.retain(|&(from, to)| {
            let is_apart = to < start || from > end;
            if !is_apart {
                (start, end) = (start.min(from), end.max(to));
            }
            is_apart
        });
        let place = self.0.partition_point(|&(from, _)| from < start);
        self.0.insert(place, (start, end));
    }

    fn cut(&mut self, end: usize) {
        self.0.retain(|&(from, _)| from < end);
        if let Some(last) = self.0.last_mut() {
            last.1 = last.1.min(end);
        }
    }

    fn covers(&self, size: usize) -> bool {
        self.0.first().is_some_and(|&(from, to)| from == 0 && to >= size)
    }
}

#[cfg(test)]
mod tests;
