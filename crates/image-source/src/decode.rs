//! Windows of a PNG that has to be decoded: row by row from the first one to the last row of the window, or whole if it is
//! interlaced.

use crate::error::ImageError;
use crate::geometry::{Part, Size};
use crate::number::{Levels, Tone};
use crate::painter::Painter;
use crate::pixels::{Pixels, Samples};
use crate::ranges::{Ranges, ReadFailed};
use crate::room::DECODING;
use png::{BitDepth, ColorType, Decoder, DecodingError, Limits, Transformations};
use std::io::{self, BufRead, Read, Seek, SeekFrom};

/// A PNG that has to be decoded.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Png {
    pub(crate) size: Size,
    pub(crate) order: Order,
    /// The levels that the user wants.
    pub(crate) levels: Option<Levels>,
}

/// The order of the pixels in the file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Order {
    /// Row by row.
    Rows,
    /// In seven passes (PNG, section 8.1), so that the first row is complete at the end only.
    Interlaced,
}

/// Pixels that an interlaced picture may have: as many as a JPEG.
const INTERLACED_PIXELS_MAX: u64 = 1 << 27;
/// What the decoder may allocate: rows of the widest picture, and its tables.
const DECODER_BYTES_MAX: usize = 128 << 20;
/// Pixels that are decoded between two looks at whether the picture is still wanted.
const LOOK_PIXELS: u32 = 4 << 20;
/// Bytes of the file that are read at once.
const READ_BYTES: u64 = 4 << 20;

/// Decodes a window.
// fuzz: pictures
pub(crate) fn window(
    bytes: &dyn Ranges,
    png: Png,
    part: Part,
    pixels: &mut Pixels,
) -> Result<(), ImageError> {
    let mut failed = None;
    let decoded = decode(Sequential::new(bytes, &mut failed), png, part, pixels);
    match (decoded, failed) {
        (Err(_), Some(failed)) => Err(failed.into()),
        (decoded, _) => decoded,
    }
}

fn decode(
    bytes: Sequential<'_>,
    Png { size, order, levels }: Png,
    part: Part,
    pixels: &mut Pixels,
) -> Result<(), ImageError> {
    let file = bytes.bytes;
    let mut decoder = Decoder::new_with_limits(bytes, Limits { bytes: DECODER_BYTES_MAX });
    decoder.set_transformations(Transformations::EXPAND);
    decoder.set_ignore_text_chunk(true);
    decoder.set_ignore_iccp_chunk(true);
    let mut reader = decoder.read_info().map_err(explain)?;
    let info = reader.info();
    let is_interlaced = order == Order::Interlaced;
    if (info.width, info.height, info.interlaced) != (size.width, size.height, is_interlaced) {
        return Err(ImageError::Damaged("the picture has another size than its head"));
    }
    let (colour, depth) = reader.output_color_type();
    let channels = match colour {
        ColorType::Grayscale => 1,
        ColorType::GrayscaleAlpha => 2,
        ColorType::Rgb => 3,
        ColorType::Rgba => 4,
        ColorType::Indexed => return Err(ImageError::Damaged("its palette is missing")),
    };
    let bytes = match depth {
        BitDepth::Eight => 1,
        BitDepth::Sixteen => 2,
        _ => return Err(ImageError::Unsupported("samples of this depth")),
    };
    let samples = Samples::new(channels, bytes);
    let mut samples = samples.ok_or(ImageError::Unsupported("samples of this depth"))?;
    if let Some(levels) = levels {
        samples = samples.with_tone(Tone::plain(levels));
    }
    let (pixel, region) = (samples.pixel_bytes(), part.region);
    let wide = region.x as usize * pixel..(region.x + region.width) as usize * pixel;
    let short = ImageError::Damaged("the picture has fewer rows than its head says");
    let mut painter = Painter::new(part, samples, pixels);
    if is_interlaced {
        if u64::from(size.width) * u64::from(size.height) > INTERLACED_PIXELS_MAX {
            return Err(ImageError::TooLarge { width: size.width, height: size.height });
        }
        let too_large = ImageError::Unsupported("a PNG with such large parts");
        let length = reader.output_buffer_size().ok_or(too_large)?;
        let _room = DECODING.take(length as u64)?;
        let mut whole = vec![0; length];
        let row = reader.next_frame(&mut whole).map_err(explain)?.line_size;
        for y in part.rows() {
            let here = (y as usize).checked_mul(row).and_then(|at| whole.get(at..at + row));
            let wanted = here.and_then(|row| row.get(wide.clone())).ok_or_else(|| short.clone())?;
            painter.row([(0, wanted)]);
        }
        painter.finish();
        return Ok(());
    }
    let rows_of_look = (LOOK_PIXELS / size.width).max(1);
    for y in 0..region.y + region.height {
        if y % rows_of_look == 0 {
            file.check()?;
        }
        let row = reader.next_row().map_err(explain)?.ok_or_else(|| short.clone())?;
        if part.has_row(y) {
            let wanted = row.data().get(wide.clone()).ok_or_else(|| short.clone())?;
            painter.row([(0, wanted)]);
        }
    }
    painter.finish();
    Ok(())
}

fn explain(error: DecodingError) -> ImageError {
    match error {
        DecodingError::IoError(_) => ImageError::Damaged("the file ends early"),
        DecodingError::Format(_) => ImageError::Damaged("its data are no PNG"),
        DecodingError::Parameter(_) => ImageError::Damaged("its head does not fit its data"),
        DecodingError::LimitsExceeded => ImageError::Unsupported("a PNG with such large parts"),
    }
}

/// Reads a file from its beginning on.
struct Sequential<'a> {
    bytes: &'a dyn Ranges,
    /// Where `buffer` begins in the file.
    buffer_at: u64,
    buffer: Vec<u8>,
    /// The next byte of `buffer`.
    at: usize,
    failed: &'a mut Option<ReadFailed>,
}

impl<'a> Sequential<'a> {
    const fn new(bytes: &'a dyn Ranges, failed: &'a mut Option<ReadFailed>) -> Self {
        Self { bytes, buffer_at: 0, buffer: Vec::new(), at: 0, failed }
    }

    fn position(&self) -> u64 {
        self.buffer_at + self.at as u64
    }
}

impl Read for Sequential<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let length = self.fill_buf()?.len().min(into.len());
        into[..length].copy_from_slice(&self.buffer[self.at..self.at + length]);
        self.consume(length);
        Ok(length)
    }
}

impl BufRead for Sequential<'_> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.at >= self.buffer.len() {
            let from = self.position().min(self.bytes.size());
            let to = self.bytes.size().min(from + READ_BYTES);
            self.buffer.clear();
            (self.buffer_at, self.at) = (from, 0);
            if let Err(error) = self.bytes.read(std::slice::from_ref(&(from..to)), &mut self.buffer)
            {
                self.buffer.clear();
                *self.failed = Some(error);
                return Err(io::ErrorKind::Other.into());
            }
        }
        Ok(&self.buffer[self.at..])
    }

    fn consume(&mut self, amount: usize) {
        self.at += amount;
    }
}

impl Seek for Sequential<'_> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let target = match to {
            SeekFrom::Start(at) => Some(at),
            SeekFrom::Current(by) => self.position().checked_add_signed(by),
            SeekFrom::End(by) => self.bytes.size().checked_add_signed(by),
        };
        let target = target.ok_or(io::ErrorKind::InvalidInput)?;
        match target.checked_sub(self.buffer_at) {
            Some(inside) if inside <= self.buffer.len() as u64 => self.at = inside as usize,
            _ => {
                self.buffer.clear();
                (self.buffer_at, self.at) = (target, 0);
            }
        }
        Ok(target)
    }
}
