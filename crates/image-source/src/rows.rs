//! Pictures whose rows lie at known places of the file.

use crate::error::ImageError;
use crate::geometry::{Region, Size, Step};
use crate::pixels::{Pixels, Samples};
use crate::placed::Stored;
use crate::ranges::Ranges;
use std::ops::Range;
use std::str::FromStr;

/// A picture whose rows lie at known places.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Rows {
    pub(crate) size: Size,
    pub(crate) samples: Samples,
    pub(crate) place: Place,
}

/// Where the rows lie.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Place {
    /// One after the other from this byte on.
    Plain {
        /// The first byte of the first row.
        from: u64,
    },
    /// In the stored blocks of a PNG, a filter byte before each.
    Stored(Stored),
}

/// The shape of pictures without a head: `WIDTHxHEIGHTxCHANNELS[xBYTES][@OFFSET]`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RawShape {
    size: Size,
    samples: Samples,
    from: u64,
}

/// The text is no shape.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "expected WIDTHxHEIGHTxCHANNELS, as in 11000x11000x3, perhaps with xBYTES of a sample (1 or 2) and @OFFSET of the first pixel"
)]
pub struct NotAShape;

/// Bytes that are read at once. A 4K window of a picture of 24 bits has 25 MB.
const BATCH_BYTES: u64 = 64 << 20;

impl FromStr for RawShape {
    type Err = NotAShape;

    // fuzz: none, the user's own words
    fn from_str(text: &str) -> Result<Self, NotAShape> {
        let (shape, from) = text.split_once('@').unwrap_or((text, "0"));
        let numbers: Result<Vec<u32>, _> = shape.split('x').map(str::parse).collect();
        let (width, height, channels, bytes) = match numbers.map_err(|_| NotAShape)?[..] {
            [width, height, channels] => (width, height, channels, 1),
            [width, height, channels, bytes] => (width, height, channels, bytes),
            _ => return Err(NotAShape),
        };
        let small = |number: u32| u8::try_from(number).map_err(|_| NotAShape);
        let samples = Samples::new(small(channels)?, small(bytes)?).ok_or(NotAShape)?;
        let size = Size::new(width, height).map_err(|_| NotAShape)?;
        Ok(Self { size, samples, from: from.parse().map_err(|_| NotAShape)? })
    }
}

impl From<RawShape> for Rows {
    fn from(raw: RawShape) -> Self {
        Self { size: raw.size, samples: raw.samples, place: Place::Plain { from: raw.from } }
    }
}

impl Rows {
    /// Bytes of a row.
    fn row_bytes(&self) -> u64 {
        u64::from(self.size.width) * self.samples.pixel_bytes() as u64
    }

    /// An error unless all rows lie in a file of this size.
    pub(crate) fn check(&self, file: u64) -> Result<(), ImageError> {
        let all = self.row_bytes() * u64::from(self.size.height);
        match &self.place {
            Place::Plain { from } if from.checked_add(all).is_none_or(|end| end > file) => {
                Err(ImageError::Damaged("the file is shorter than the picture"))
            }
            _ => Ok(()),
        }
    }

    /// Reads a window. [`Window::Filtered`] if a row of it cannot be read without the rows above.
    pub(crate) fn window(
        &self,
        bytes: &dyn Ranges,
        (region, step): (Region, Step),
        pixels: &mut Pixels,
    ) -> Result<Window, ImageError> {
        let mut rows = (region.y..region.y + region.height).step_by(step.get() as usize).peekable();
        let pixel = self.samples.pixel_bytes() as u64;
        let part = u64::from(region.x) * pixel..u64::from(region.x + region.width) * pixel;
        let row_length = (part.end - part.start) as usize;
        let (mut ranges, mut read) = (Vec::new(), Vec::new());
        while rows.peek().is_some() {
            ranges.clear();
            read.clear();
            let (mut count, mut wanted) = (0, 0);
            while wanted < BATCH_BYTES
                && let Some(row) = rows.next()
            {
                self.locate(row, part.clone(), &mut ranges);
                (count, wanted) = (count + 1, wanted + row_length as u64);
            }
            bytes.read(&ranges, &mut read)?;
            let filter = match self.place {
                Place::Plain { .. } => 0,
                Place::Stored(_) => 1,
            };
            for row in read.chunks_exact(filter + row_length).take(count) {
                if filter == 1 && row[0] != 0 {
                    return Ok(Window::Filtered);
                }
                self.samples.append(&row[filter..], step.get() as usize, &mut pixels.rgba);
            }
        }
        Ok(Window::Read)
    }

    /// Appends where a part of a row lies, for a PNG the filter byte before it.
    fn locate(&self, row: u32, part: Range<u64>, ranges: &mut Vec<Range<u64>>) {
        let row_bytes = self.row_bytes();
        match &self.place {
            Place::Plain { from } => {
                let start = from + u64::from(row) * row_bytes;
                ranges.push(start + part.start..start + part.end);
            }
            Place::Stored(stored) => {
                let start = u64::from(row) * (row_bytes + 1);
                let filter = start..start + 1;
                stored.locate(filter, ranges);
                stored.locate(start + 1 + part.start..start + 1 + part.end, ranges);
            }
        }
    }
}

/// How reading a window went.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Window {
    /// It is there.
    Read,
    /// A row of it is filtered: it has to be decoded from the first row on.
    Filtered,
}
