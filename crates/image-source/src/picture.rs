//! Pictures of any format.

use crate::decode;
use crate::error::ImageError;
use crate::fits;
use crate::geometry::{Part, Size};
use crate::jpeg::{self, Jpeg};
use crate::number::{Levels, Tone};
use crate::pixels::Pixels;
use crate::png_stored::{Head, SIGNATURE};
use crate::pnm;
use crate::ranges::Ranges;
use crate::rows::{RawShape, Rows, Window};
use crate::tiff::{self, Tiff};

/// What is known of a picture from the head of its file.
#[derive(Clone, PartialEq, Debug)]
pub struct Picture {
    format: Format,
}

/// What the user says of pictures.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Hints {
    /// The shape of files without a head. With it nothing else is tried.
    pub raw: Option<RawShape>,
    /// The values that are black and white. Default: 16 bits are shown by their upper eight; for other numbers the values that
    /// a FITS file tells (`DATAMIN`, `DATAMAX`), or those between which 99 % of some of its values lie.
    pub levels: Option<Levels>,
}

#[derive(Clone, PartialEq, Debug)]
enum Format {
    /// Rows at known places. A PNG among them is decoded where a row is filtered.
    Rows(Rows, Option<Levels>),
    /// A PNG that has to be decoded from its first row on.
    CompressedPng(Size, Option<Levels>),
    Jpeg(Jpeg),
    Tiff(tiff::Coded),
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
                rows.map_or(Format::CompressedPng(head.size, levels), shown)
            }
            start if start.starts_with(jpeg::SIGNATURE) => Format::Jpeg(Jpeg::open(bytes)?),
            start if start.starts_with(fits::SIGNATURE) => {
                Format::Rows(fits::rows(bytes, levels)?, None)
            }
            start if tiff::SIGNATURES.iter().any(|signature| start.starts_with(signature)) => {
                match Tiff::open(bytes, levels)? {
                    Tiff::Placed(rows) => Format::Rows(rows, None),
                    Tiff::Coded(coded) => Format::Tiff(coded),
                }
            }
            _ => return Err(ImageError::UnknownFormat),
        };
        Ok(Self { format })
    }

    /// Its size.
    pub const fn size(&self) -> Size {
        match &self.format {
            Format::Rows(rows, _) => rows.size,
            Format::CompressedPng(size, _) => *size,
            Format::Jpeg(jpeg) => jpeg.size,
            Format::Tiff(coded) => coded.size,
        }
    }

    /// Whether a window needs only its own bytes of the file, and no decoding.
    pub const fn is_placed(&self) -> bool {
        matches!(self.format, Format::Rows(..))
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
                Window::Filtered => decode::window(bytes, (rows.size, *levels), part, pixels),
            },
            Format::CompressedPng(size, levels) => {
                decode::window(bytes, (*size, *levels), part, pixels)
            }
            Format::Jpeg(jpeg) => jpeg.window(bytes, part, pixels),
            Format::Tiff(coded) => coded.window(bytes, part, pixels),
        }
    }
}
