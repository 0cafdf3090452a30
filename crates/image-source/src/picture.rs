//! Pictures of any format.

use crate::decode::{self, Order, Png};
use crate::error::ImageError;
use crate::fits;
use crate::geometry::{Part, Region, Size};
use crate::jpeg::{self, Jpeg};
use crate::number::{Levels, Tone};
use crate::pixels::Pixels;
use crate::png_stored::{Head, SIGNATURE};
use crate::pnm;
use crate::ranges::Ranges;
use crate::rows::{Place, RawShape, Rows, Window};
use crate::tiff::{self, Tiff};

/// The properties of a picture from the head of its file.
#[derive(Clone, PartialEq, Debug)]
pub struct Picture {
    format: Format,
}

/// The user's settings for pictures.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Hints {
    /// The shape of files without a head. With it nothing else is tried.
    pub raw: Option<RawShape>,
    /// The values that are black and white. Default: 16 bits are shown by their upper eight; for other numbers the values of
    /// a FITS file (`DATAMIN`, `DATAMAX`), or those between which 99 % of some of its values lie.
    pub levels: Option<Levels>,
}

#[derive(Clone, PartialEq, Debug)]
enum Format {
    /// Rows at known places. A PNG among them is decoded where a row is filtered.
    Rows(Rows, Option<Levels>),
    /// A PNG that has to be decoded from its first row on, or whole if it is interlaced.
    CompressedPng(Png),
    Jpeg(Jpeg),
    Tiff(Tiff),
}

/// Bytes that are read of each file to know what it is.
const START_BYTES: u64 = 4096;

impl Picture {
    /// Opens a picture.
    ///
    /// # Errors
    ///
    /// The file cannot be read, or is no picture that is supported.
    // fuzz: pictures
    pub fn open(bytes: &dyn Ranges, hints: Hints) -> Result<Self, ImageError> {
        let Hints { raw, levels } = hints;
        let shown = |mut rows: Rows| {
            if let Some(levels) = levels {
                rows.samples = rows.samples.with_tone(Tone::plain(levels));
            }
            Format::Rows(rows, levels)
        };
        if let Some(raw) = raw {
            let rows = Rows::from(raw);
            rows.check(bytes.size())?;
            return Ok(Self { format: shown(rows) });
        }
        let mut start = Vec::new();
        bytes.read(std::slice::from_ref(&(0..bytes.size().min(START_BYTES))), &mut start)?;
        let format = match &start[..] {
            [b'P', b'1'..=b'7', ..] => {
                let rows = pnm::rows(&start)?;
                rows.check(bytes.size())?;
                shown(rows)
            }
            start if start.starts_with(SIGNATURE) => {
                let head = Head::read(bytes, start)?;
                let rows = head.rows(bytes, start)?;
                let png = Png { size: head.size, order: head.order, levels };
                rows.map_or(Format::CompressedPng(png), shown)
            }
            start if start.starts_with(jpeg::SIGNATURE) => Format::Jpeg(Jpeg::open(bytes)?),
            start if start.starts_with(fits::SIGNATURE) => {
                Format::Rows(fits::rows(bytes, levels)?, None)
            }
            start if tiff::SIGNATURES.iter().any(|signature| start.starts_with(signature)) => {
                Format::Tiff(Tiff::open(bytes, levels)?)
            }
            _ => return Err(ImageError::UnknownFormat),
        };
        Ok(Self { format })
    }

    /// Its size.
    pub const fn size(&self) -> Size {
        match &self.format {
            Format::Rows(rows, _) => rows.size,
            Format::CompressedPng(png) => png.size,
            Format::Jpeg(jpeg) => jpeg.size,
            Format::Tiff(tiff) => tiff.size(),
        }
    }

    /// Whether a window needs only its own bytes of the file, and no decoding.
    pub const fn is_placed(&self) -> bool {
        match &self.format {
            Format::Rows(..) => true,
            Format::Tiff(tiff) => tiff.is_placed(),
            Format::CompressedPng(_) | Format::Jpeg(_) => false,
        }
    }

    /// Pixels of the file that are read or decoded for a window, those beside its region left out unless all of them have to
    /// be decoded.
    ///
    /// # Errors
    ///
    /// The heads of the overviews cannot be read.
    pub fn pixels_for(&self, bytes: &dyn Ranges, part: Part) -> Result<u64, ImageError> {
        let Size { width, height } = self.size();
        let count = |width: u32, height: u32| u64::from(width) * u64::from(height);
        let Region { y, width: wide, height: high, .. } = part.region;
        Ok(match &self.format {
            Format::Rows(..) if part.is_averaged() => count(wide, high),
            Format::Rows(..) => count(wide, part.window().1),
            Format::CompressedPng(Png { order: Order::Rows, .. }) => {
                count(width, y.saturating_add(high))
            }
            Format::CompressedPng(_) | Format::Jpeg(_) => count(width, height),
            Format::Tiff(tiff) => {
                let factor = tiff.factor(bytes, part.step)?;
                let (wide, high) = (wide.div_ceil(factor), high.div_ceil(factor));
                let step = (part.step.get() / factor).max(1);
                let is_picked = tiff.is_placed() && !part.is_averaged();
                count(wide, if is_picked { high.div_ceil(step) } else { high })
            }
        })
    }

    /// Pixels that are read and decoded for a window at most: also those beside its region that lie in the same strips or
    /// tiles, and those above it where a PNG of stored blocks may turn out to have a filtered row. For a JPEG the bytes of the
    /// file are added, of which many may belong to few pixels.
    ///
    /// # Errors
    ///
    /// The heads of the overviews cannot be read.
    pub fn work_for(&self, bytes: &dyn Ranges, part: Part) -> Result<u64, ImageError> {
        let Region { y, height, .. } = part.region;
        match &self.format {
            Format::Rows(Rows { place: Place::Stored(_), size, .. }, _) => {
                Ok(u64::from(size.width) * u64::from(y.saturating_add(height)))
            }
            Format::Tiff(tiff) => match tiff.decoded_for(bytes, part)? {
                Some(pixels) => Ok(pixels),
                None => self.pixels_for(bytes, part),
            },
            Format::Jpeg(_) => Ok(self.pixels_for(bytes, part)?.saturating_add(bytes.size())),
            Format::Rows(..) | Format::CompressedPng(_) => self.pixels_for(bytes, part),
        }
    }

    /// Reads a window of the picture.
    ///
    /// # Errors
    ///
    /// The region does not lie in the picture, the window is too large, the file cannot be read, or it is damaged.
    // fuzz: pictures
    pub fn window(
        &self,
        bytes: &dyn Ranges,
        part: Part,
        pixels: &mut Pixels,
    ) -> Result<(), ImageError> {
        part.check(self.size())?;
        match &self.format {
            Format::Rows(rows, levels) => match rows.window(bytes, part, pixels)? {
                Window::Read => Ok(()),
                Window::Filtered => {
                    let png = Png { size: rows.size, order: Order::Rows, levels: *levels };
                    decode::window(bytes, png, part, pixels)
                }
            },
            Format::CompressedPng(png) => decode::window(bytes, *png, part, pixels),
            Format::Jpeg(jpeg) => jpeg.window(bytes, part, pixels),
            Format::Tiff(tiff) => tiff.window(bytes, part, pixels),
        }
    }
}
