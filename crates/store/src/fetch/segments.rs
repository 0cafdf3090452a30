//! Segments of the bytes that a channel brings in order.

use super::Segment;
use hikyaku_transfer::{Geometry, SegmentHash};

/// Bytes that come in order become segments. The last one is given only after the whole request is known to be of one content:
/// so a file of which all segments were given is of one content.
#[derive(Debug)]
pub struct Segments {
    geometry: Option<Geometry>,
    /// A whole segment that was not given, and its place.
    whole: Option<(u64, Vec<u8>)>,
    /// The place of the segment whose bytes come.
    at: u64,
    part: Vec<u8>,
}

impl Segments {
    /// Of a file of this size; of none if there is no such file.
    pub const fn of(geometry: Option<Geometry>) -> Self {
        Self { geometry, whole: None, at: 0, part: Vec::new() }
    }

    /// The bytes that come next are at `at`, where a segment begins.
    pub fn begin(&mut self, at: u64) {
        self.at = at;
        self.part.clear();
    }

    /// Bytes have come.
    pub fn add(&mut self, mut bytes: &[u8], each: &mut dyn FnMut(Segment<'_>)) {
        while let Some(range) =
            self.geometry.and_then(|geometry| geometry.range(geometry.at(self.at)?))
            && !bytes.is_empty()
        {
            let lacks = (range.end - range.start) as usize - self.part.len();
            let (here, rest) = bytes.split_at(lacks.min(bytes.len()));
            self.part.reserve_exact(lacks);
            self.part.extend_from_slice(here);
            bytes = rest;
            if here.len() == lacks {
                self.end(each);
                self.whole = Some((self.at, std::mem::take(&mut self.part)));
                self.at = range.end;
            }
        }
    }

    /// Gives the segment that was held back.
    pub fn end(&mut self, each: &mut dyn FnMut(Segment<'_>)) {
        let Some((at, bytes)) = self.whole.take() else { return };
        let segment = self.geometry.and_then(|geometry| {
            let index = geometry.at(at)?;
            Some((index, SegmentHash::new(geometry, index, &bytes)?))
        });
        if let Some((index, hash)) = segment {
            each(Segment { index, hash, bytes: &bytes });
        }
    }
}
