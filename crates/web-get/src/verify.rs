//! Whether a file that is complete is the right one, and which parts of it to fetch again.

use crate::metalink::{Expect, Pieces};
use aws_lc_rs::digest::Context;
use hikyaku_http::Digest;
use std::collections::BTreeSet;
use std::ops::Range;

/// The result of a check.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Verdict {
    /// All that can be checked is right.
    Right,
    /// These parts are wrong.
    Wrong(Vec<Range<u64>>),
    /// The whole has another digest than this one.
    Differs(Digest),
}

/// The digests of a file that is read from its beginning to its end.
pub(crate) struct Sums<'a> {
    whole: Vec<(&'a Digest, Context)>,
    pieces: Option<Checker<'a>>,
}

impl<'a> Sums<'a> {
    /// For a file of this size, if it is known: which pieces there are follows from it.
    pub(crate) fn new(size: Option<u64>, expect: &'a Expect) -> Self {
        let has_pieces = size.is_some_and(|size| expect.has_pieces_for(size));
        let pieces = expect.pieces.as_ref().filter(|_| has_pieces).map(Checker::new);
        let whole = expect.digests.iter().map(|digest| (digest, digest.function.begin())).collect();
        Self { whole, pieces }
    }

    /// Whether nothing is expected.
    pub(crate) fn is_empty(&self) -> bool {
        self.whole.is_empty() && self.pieces.is_none()
    }

    /// The next bytes of the file.
    pub(crate) fn update(&mut self, bytes: &[u8]) {
        for (_, sum) in &mut self.whole {
            sum.update(bytes);
        }
        if let Some(pieces) = &mut self.pieces {
            pieces.update(bytes);
        }
    }

    /// The file is over, and has this size.
    pub(crate) fn verdict(self, size: u64) -> Verdict {
        let wrong = self.pieces.map(|pieces| pieces.wrong(size)).unwrap_or_default();
        if !wrong.is_empty() {
            return Verdict::Wrong(wrong);
        }
        let mut whole = self.whole.into_iter();
        let differs = whole.find_map(|(digest, sum)| (!digest.is(sum)).then_some(digest));
        differs.map_or(Verdict::Right, |digest| Verdict::Differs(digest.clone()))
    }
}

/// Hashes the pieces one after the other.
struct Checker<'a> {
    pieces: &'a Pieces,
    sum: Option<Context>,
    /// Bytes of the piece under way.
    bytes: u64,
    is_right: Vec<bool>,
}

impl<'a> Checker<'a> {
    const fn new(pieces: &'a Pieces) -> Self {
        Self { pieces, sum: None, bytes: 0, is_right: Vec::new() }
    }

    fn update(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let Some(digest) = self.pieces.digests.get(self.is_right.len()) else { return };
            let room = usize::try_from(self.pieces.length - self.bytes).unwrap_or(usize::MAX);
            let (now, rest) = bytes.split_at(room.min(bytes.len()));
            self.sum.get_or_insert_with(|| digest.function.begin()).update(now);
            self.bytes += now.len() as u64;
            bytes = rest;
            if self.bytes == self.pieces.length {
                self.close();
            }
        }
    }

    fn close(&mut self) {
        if let (Some(sum), Some(digest)) =
            (self.sum.take(), self.pieces.digests.get(self.is_right.len()))
        {
            self.is_right.push(digest.is(sum));
            self.bytes = 0;
        }
    }

    fn wrong(mut self, size: u64) -> Vec<Range<u64>> {
        self.close();
        let wrong = self.is_right.iter().enumerate().filter(|(_, is_right)| !**is_right);
        let range = |at: usize| {
            let start = at as u64 * self.pieces.length;
            start..size.min(start + self.pieces.length)
        };
        wrong.map(|(at, _)| range(at)).collect()
    }
}

/// The sources of wrong parts. `origin` returns the source of a whole part, if it has only one.
pub(crate) fn liars(
    wrong: &[Range<u64>],
    origin: impl Fn(&Range<u64>) -> Option<usize>,
) -> BTreeSet<usize> {
    wrong.iter().filter_map(origin).collect()
}

/// Which of `count` sources to use in further attempts, one attempt after the other: all but one each, then one alone.
pub(crate) fn attempts(count: usize) -> Vec<Vec<usize>> {
    if count < 2 {
        return Vec::new();
    }
    let but = |left_out: usize| (0..count).filter(|&at| at != left_out).collect();
    let mut attempts: Vec<Vec<usize>> = (0..count).map(but).collect();
    if count > 2 {
        attempts.extend((0..count).map(|at| vec![at]));
    }
    attempts
}

#[cfg(test)]
#[allow(clippy::single_range_in_vec_init, reason = "a list of one range is meant")]
mod tests {
    use super::*;
    use hikyaku_http::Function;

    #[test]
    fn one_liar_is_left_out_and_then_each_is_tried_alone() {
        assert_eq!(attempts(1), Vec::<Vec<usize>>::new());
        assert_eq!(attempts(2), [[1], [0]]);
        assert_eq!(attempts(3).len(), 6);
        assert_eq!(attempts(3)[0], [1, 2]);
    }

    #[test]
    fn wrong_pieces_are_found_whatever_the_reads_are() {
        let function = Function::Sha256;
        let data: Vec<u8> = (0..25).collect();
        let digest = |bytes: &[u8]| {
            let mut sum = function.begin();
            sum.update(bytes);
            Digest { function, value: sum.finish().as_ref().to_vec() }
        };
        let digests = vec![digest(&data[..10]), digest(b"other"), digest(&data[20..])];
        let pieces = Pieces { length: 10, digests };
        for step in [1, 7, 10, 25] {
            let mut checker = Checker::new(&pieces);
            data.chunks(step).for_each(|bytes| checker.update(bytes));
            assert_eq!(checker.wrong(25), [10..20], "{step}");
        }
    }
}
