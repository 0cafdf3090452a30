//! Pictures whose rows lie at known places of the file.

use crate::error::ImageError;
use crate::geometry::{Part, Size};
use crate::number::{Levels, Tone};
use crate::painter::Painter;
use crate::pixels::{Pixels, Samples};
use crate::placed::Stored;
use crate::ranges::{Ranges, read_in_any_order};
use std::ops::Range;
use std::str::FromStr;
use std::sync::Arc;

/// A picture whose rows lie at known places.
#[derive(Clone, PartialEq, Debug)]
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
    /// Rows that are stored from the lowest one on.
    Upward {
        /// The first byte of the lowest row.
        from: u64,
    },
    /// In the stored blocks of a PNG, a filter byte before each.
    Stored(Stored),
    /// In tiles.
    Tiled(Tiles),
}

/// Tiles, each with its rows one after the other. Strips are tiles as wide as the picture.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Tiles {
    /// The first byte of each tile, row after row of them.
    pub(crate) offsets: Arc<[u64]>,
    /// Pixels of a row of a tile, not 0.
    pub(crate) width: u32,
    /// Rows of a tile, not 0.
    pub(crate) height: u32,
}

/// The shape of pictures without a head: `WIDTHxHEIGHTxCHANNELS[xBYTES][@OFFSET]`.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct RawShape {
    size: Size,
    samples: Samples,
    /// Channels, and bytes of a sample.
    parts: (u8, u8),
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
/// Rows of which values are taken to find the levels, and pixels of each.
const MEASURED_ROWS: u32 = 32;
const MEASURED_PIXELS: u32 = 2048;

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
        let from = from.parse().map_err(|_| NotAShape)?;
        Self::new((width, height), (small(channels)?, small(bytes)?), from).ok_or(NotAShape)
    }
}

impl RawShape {
    /// A picture of this width and height, with this number of channels and of bytes in each, whose first pixel is at byte
    /// `from`. `None` if such pictures are not supported.
    pub fn new(
        (width, height): (u32, u32),
        (channels, bytes): (u8, u8),
        from: u64,
    ) -> Option<Self> {
        let size = Size::new(width, height).ok()?;
        Some(Self { size, samples: Samples::new(channels, bytes)?, parts: (channels, bytes), from })
    }

    /// Width and height, channels and bytes of a sample, and the byte of the first pixel.
    pub const fn parts(self) -> ((u32, u32), (u8, u8), u64) {
        ((self.size.width, self.size.height), self.parts, self.from)
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
            Place::Plain { from } | Place::Upward { from }
                if from.checked_add(all).is_none_or(|end| end > file) =>
            {
                Err(ImageError::Damaged("the file is shorter than the picture"))
            }
            _ => Ok(()),
        }
    }

    /// Reads a window.
    // fuzz: pictures
    pub(crate) fn window(
        &self,
        bytes: &dyn Ranges,
        part: Part,
        pixels: &mut Pixels,
    ) -> Result<Window, ImageError> {
        let region = part.region;
        let mut rows = part.rows().peekable();
        let mut painter = Painter::new(part, self.samples, pixels);
        let pixel = self.samples.pixel_bytes() as u64;
        let wide = u64::from(region.x) * pixel..u64::from(region.x + region.width) * pixel;
        let row_length = (wide.end - wide.start) as usize;
        let (mut ranges, mut read) = (Vec::new(), Vec::new());
        while rows.peek().is_some() {
            ranges.clear();
            read.clear();
            let (mut count, mut wanted) = (0, 0);
            while wanted < BATCH_BYTES
                && let Some(row) = rows.next()
            {
                self.locate(row, wide.clone(), &mut ranges);
                (count, wanted) = (count + 1, wanted + row_length as u64);
            }
            read_in_any_order(bytes, &ranges, &mut read)?;
            let filter = match self.place {
                Place::Plain { .. } | Place::Upward { .. } | Place::Tiled(_) => 0,
                Place::Stored(_) => 1,
            };
            for row in read.chunks_exact(filter + row_length).take(count) {
                if filter == 1 && row[0] != 0 {
                    return Ok(Window::Filtered);
                }
                painter.row([(0, &row[filter..])]);
            }
        }
        painter.finish();
        Ok(Window::Read)
    }

    /// The rows, with levels that are derived from some of their values.
    pub(crate) fn measured(self, bytes: &dyn Ranges, tone: Tone) -> Result<Self, ImageError> {
        let samples = self.samples.with_tone(tone);
        let width = self.size.width.min(MEASURED_PIXELS);
        let pixel = samples.pixel_bytes() as u64;
        let first = u64::from((self.size.width - width) / 2) * pixel;
        let count = self.size.height.min(MEASURED_ROWS);
        let (mut ranges, mut read) = (Vec::new(), Vec::new());
        for row in 0..count {
            let row = u64::from(row) * u64::from(self.size.height) / u64::from(count);
            let wanted = first..first + u64::from(width) * pixel;
            self.locate(row as u32, wanted, &mut ranges);
        }
        read_in_any_order(bytes, &ranges, &mut read)?;
        let levels = Levels::around(samples.values(&read));
        Ok(Self { samples: samples.with_tone(Tone { levels, ..tone }), ..self })
    }

    /// Appends where a part of a row lies, for a PNG the filter byte before it.
    fn locate(&self, row: u32, part: Range<u64>, ranges: &mut Vec<Range<u64>>) {
        let row_bytes = self.row_bytes();
        match &self.place {
            Place::Plain { from } => {
                let start = from + u64::from(row) * row_bytes;
                ranges.push(start + part.start..start + part.end);
            }
            Place::Upward { from } => {
                let start = from + u64::from(self.size.height - 1 - row) * row_bytes;
                ranges.push(start + part.start..start + part.end);
            }
            Place::Stored(stored) => {
                let start = u64::from(row) * (row_bytes + 1);
                let filter = start..start + 1;
                stored.locate(filter, ranges);
                stored.locate(start + 1 + part.start..start + 1 + part.end, ranges);
            }
            Place::Tiled(tiles) => {
                let pixel = self.samples.pixel_bytes() as u64;
                tiles.locate(self.size.width, row, (pixel, part), ranges);
            }
        }
    }
}

impl Tiles {
    /// Tiles in a row of them.
    pub(crate) const fn across(&self, width: u32) -> u32 {
        width.div_ceil(self.width)
    }

    /// Appends where the bytes `part` of a row lie.
    fn locate(
        &self,
        width: u32,
        row: u32,
        (pixel, part): (u64, Range<u64>),
        ranges: &mut Vec<Range<u64>>,
    ) {
        let tile_row = u64::from(self.width) * pixel;
        let first = u64::from(row / self.height) * u64::from(self.across(width));
        let mut at = part.start;
        while at < part.end {
            let tile = at / tile_row;
            let end = part.end.min((tile + 1) * tile_row);
            let offset = self.offsets.get((first + tile) as usize).copied().unwrap_or(u64::MAX);
            let start = u64::from(row % self.height) * tile_row + (at - tile * tile_row);
            // A place behind the end of every file is refused when it is read.
            let start = offset.saturating_add(start);
            ranges.push(start..start.saturating_add(end - at));
            at = end;
        }
    }
}

/// How reading a window went.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Window {
    /// It was read.
    Read,
    /// A row of it is filtered: it has to be decoded from the first row on.
    Filtered,
}
