//! Pictures of any format.

use crate::decode;
use crate::error::ImageError;
use crate::geometry::{Region, Size, Step};
use crate::pixels::Pixels;
use crate::png_stored::{Head, SIGNATURE};
use crate::pnm;
use crate::ranges::Ranges;
use crate::rows::{RawShape, Rows, Window};

/// What is known of a picture from the head of its file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Picture {
    format: Format,
}

#[derive(Clone, PartialEq, Eq, Debug)]
enum Format {
    /// Rows at known places. A PNG among them is decoded where a row is filtered.
    Rows(Rows),
    /// A PNG that has to be decoded from its first row on.
    CompressedPng(Size),
}

/// Bytes that are read of each file to know what it is.
const START_BYTES: u64 = 4096;

impl Picture {
    /// Opens a picture. `raw` is the shape of files without a head; with it nothing else is tried.
    ///
    /// # Errors
    ///
    /// The file cannot be read, or is no picture that is supported.
    // fuzz: pictures
    pub fn open(bytes: &dyn Ranges, raw: Option<RawShape>) -> Result<Self, ImageError> {
        if let Some(raw) = raw {
            let rows = Rows::from(raw);
            rows.check(bytes.size())?;
            return Ok(Self { format: Format::Rows(rows) });
        }
        let mut start = Vec::new();
        bytes.read(std::slice::from_ref(&(0..bytes.size().min(START_BYTES))), &mut start)?;
        let format = match &start[..] {
            [b'P', b'1'..=b'7', ..] => {
                let rows = pnm::rows(&start)?;
                rows.check(bytes.size())?;
                Format::Rows(rows)
            }
            start if start.starts_with(SIGNATURE) => {
                let head = Head::read(bytes, start)?;
                let rows = head.rows(bytes, start)?;
                rows.map_or(Format::CompressedPng(head.size), Format::Rows)
            }
            _ => return Err(ImageError::UnknownFormat),
        };
        Ok(Self { format })
    }

    /// Its size.
    pub const fn size(&self) -> Size {
        match &self.format {
            Format::Rows(rows) => rows.size,
            Format::CompressedPng(size) => *size,
        }
    }

    /// Whether a window needs only its own bytes of the file. Otherwise all rows above its last one are read and decoded.
    pub const fn is_placed(&self) -> bool {
        matches!(self.format, Format::Rows(_))
    }

    /// Reads a window of the picture, of which `step` takes one pixel of so many in both directions.
    ///
    /// # Errors
    ///
    /// The region does not lie in the picture, the window is too large, the file cannot be read, or it is damaged.
    // fuzz: pictures
    pub fn window(
        &self,
        bytes: &dyn Ranges,
        (region, step): (Region, Step),
        pixels: &mut Pixels,
    ) -> Result<(), ImageError> {
        region.check(self.size(), step)?;
        pixels.begin(region.window(step));
        if let Format::Rows(rows) = &self.format {
            match rows.window(bytes, (region, step), pixels)? {
                Window::Read => return Ok(()),
                Window::Filtered => pixels.begin(region.window(step)),
            }
        }
        decode::window(bytes, self.size(), (region, step), pixels)
    }
}
