//! Fetching by ranges until the file is right: what is wrong of it is fetched again from other servers.

use super::Ranged;
use crate::fetch::{Cut, Fetch, Ready, Unfetched};
use crate::metalink::Expect;
use crate::outcome::Damaged;
use crate::ranges::{Board, Piece};
use crate::standing::Fate;
use crate::verify::{Verdict, attempts, liars, verify};
use crate::worker::tell_dropped;
use anyhow::{Error, Result, anyhow};
use hikyaku_transfer::missing;
use std::ops::Range;

impl Ranged<'_> {
    /// Fetches what is missing, and checks the whole.
    pub(super) fn run(&mut self, ready: Ready, total: u64) -> Result<(), Unfetched> {
        self.fetch(Some(ready), Cut::ByRate)?;
        let mut rounds = 2 * self.sources.len() + 1;
        let mut sets = attempts(self.sources.len()).into_iter();
        loop {
            let verdict = verify(self.draft, total, self.expect);
            match verdict.map_err(|error| Unfetched::Local(error.into()))? {
                Verdict::Right => return Ok(()),
                Verdict::Wrong(parts) if rounds > 0 => {
                    rounds -= 1;
                    self.refetch_pieces(parts)?;
                }
                Verdict::Wrong(_) => return Err(self.damaged()),
                Verdict::Differs(_) => {
                    let Some(set) = self.next_set(&mut sets) else { return Err(self.damaged()) };
                    self.refetch_from(&set, total)?;
                }
            }
        }
    }

    fn damaged(&self) -> Unfetched {
        Unfetched::Local(damaged(self.expect, "removed").into())
    }

    fn fetch(&mut self, ready: Option<Ready>, cut: Cut) -> Result<(), Unfetched> {
        let board = std::mem::replace(&mut self.board, Board::new(Vec::new(), Vec::new()));
        let tools = self.tools;
        let fetch = Fetch::new(
            tools.client,
            (self.sources, &self.fates),
            self.known,
            (self.draft, self.journal),
            (tools.limit, tools.show),
            (tools.conduct, cut),
            tools.interrupted,
            board,
        );
        let (board, fates, result) = fetch.run(&mut self.tuner, ready);
        self.board = board;
        for (mine, now) in self.fates.iter_mut().zip(fates) {
            if now == Fate::Dropped {
                *mine = now;
            }
        }
        result
    }

    /// Pieces that are wrong. A server from which a whole one came is not used any more, if there are others.
    fn refetch_pieces(&mut self, parts: Vec<Range<u64>>) -> Result<(), Unfetched> {
        for liar in liars(&parts, &self.board.there()) {
            let others = (0..self.fates.len())
                .any(|at| at != liar && self.fates.get(at) == Some(&Fate::Used));
            if others && let Some(fate) = self.fates.get_mut(liar) {
                *fate = Fate::Dropped;
                self.tell(liar, &anyhow!("what it sent does not have the digest of its piece"));
            }
        }
        let kept = without(self.board.there(), &parts);
        self.again(parts, kept);
        let length = self.expect.pieces.as_ref().map_or(1, |pieces| pieces.length);
        self.fetch(None, Cut::Pieces(length))
    }

    /// The next servers to try, with one at least that is in use.
    fn next_set(&self, sets: &mut impl Iterator<Item = Vec<usize>>) -> Option<Vec<usize>> {
        sets.find(|set| set.iter().any(|&at| self.fates.get(at) == Some(&Fate::Used)))
    }

    /// Fetches again all that did not come from one of these servers.
    fn refetch_from(&mut self, set: &[usize], total: u64) -> Result<(), Unfetched> {
        let there = self.board.there();
        let kept: Vec<Piece> =
            there.into_iter().filter(|piece| set.contains(&piece.source)).collect();
        let ranges: Vec<Range<u64>> = kept.iter().map(|piece| piece.range.clone()).collect();
        let names: Vec<String> =
            set.iter().map(|&at| self.sources[at].place.first.to_string()).collect();
        let text = format!("the digest is wrong: fetched again from {} only", names.join(", "));
        self.tools.show.remark(text);
        let before = self.fates.clone();
        for (at, fate) in self.fates.iter_mut().enumerate() {
            if *fate == Fate::Used && !set.contains(&at) {
                *fate = Fate::Excluded;
            }
        }
        self.again(missing(0..total, &ranges), kept);
        let result = self.fetch(None, Cut::ByRate);
        for (fate, before) in self.fates.iter_mut().zip(before) {
            if *fate == Fate::Excluded {
                *fate = before;
            }
        }
        result
    }

    fn again(&mut self, parts: Vec<Range<u64>>, kept: Vec<Piece>) {
        let bytes: u64 = parts.iter().map(|range| range.end - range.start).sum();
        self.tools.show.forget(bytes);
        self.board = Board::new(parts, kept);
    }

    fn tell(&self, source: usize, why: &Error) {
        tell_dropped(self.tools.show, &self.sources[source].place.first.to_string(), why);
    }
}

/// The pieces without these parts.
fn without(there: Vec<Piece>, parts: &[Range<u64>]) -> Vec<Piece> {
    let rest = there.into_iter().flat_map(|piece| {
        let ranges = missing(piece.range, parts);
        ranges.into_iter().map(move |range| Piece { range, source: piece.source })
    });
    rest.collect()
}

/// The error for a file that no server has as it should be. `fate`: what became of the bytes.
pub(super) fn damaged(expect: &Expect, fate: &str) -> Damaged {
    let function = expect.digests.first().map(|digest| format!(" {}", digest.function));
    Damaged(format!(
        "what was fetched does not have the{} that it should have; it was {fate}",
        function.unwrap_or_else(|| " digests of its pieces".to_owned())
    ))
}

/// Whether a file has the size that it should have.
pub(super) fn check_size(size: u64, expect: &Expect) -> Result<()> {
    match expect.size {
        Some(expected) if expected != size => {
            Err(Damaged(format!("the file has {size} bytes in place of {expected}")).into())
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_without_parts_are_the_rest() {
        let there = vec![Piece { range: 0..20, source: 0 }, Piece { range: 20..40, source: 1 }];
        let rest = without(there, &[5..10, 15..25]);
        let rest: Vec<_> = rest.into_iter().map(|piece| (piece.range, piece.source)).collect();
        assert_eq!(rest, [(0..5, 0), (10..15, 0), (25..40, 1)]);
    }
}
