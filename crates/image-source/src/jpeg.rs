//! JPEG (ITU-T T.81): baseline and progressive, decoded whole, for no row of it can be found without those above.

use crate::error::ImageError;
use crate::geometry::{Part, Size};
use crate::painter::Painter;
use crate::pixels::{Pixels, Samples};
use crate::ranges::Ranges;
use crate::room::DECODING;
use crate::sparse::{Pieces, Sparse};
use std::io::{self, Read, Seek, SeekFrom};
use zune_core::bytestream::ZCursor;
use zune_core::colorspace::ColorSpace;
use zune_core::options::DecoderOptions;
use zune_jpeg::JpegDecoder;

/// The first bytes of every file.
pub(crate) const SIGNATURE: &[u8] = b"\xff\xd8\xff";
/// Maximum number of pixels of a picture: 2^27, which is more than 11000 x 11000.
const PIXELS_MAX: u64 = 1 << 27;
/// Bytes of a file.
const FILE_BYTES_MAX: u64 = 512 << 20;
/// Bytes that are read of a file to find its frame header, and segments before it.
const HEAD_BYTES_MAX: u64 = 4 << 20;
const SEGMENTS_MAX: usize = 1024;

/// The fields of the frame header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Jpeg {
    pub(crate) size: Size,
    components: u8,
    coding: Coding,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Coding {
    Sequential,
    /// All coefficients are kept until the last scan.
    Progressive,
}

impl Jpeg {
    /// Reads the head of a file.
    // fuzz: pictures
    pub(crate) fn open(bytes: &dyn Ranges) -> Result<Self, ImageError> {
        let file = Sparse::new(bytes, Pieces::new(), HEAD_BYTES_MAX);
        match frame(&mut file.reader()) {
            Ok(found) => found,
            Err(_) => Err(file.explain(ImageError::Damaged("no frame header of a JPEG"))),
        }
    }

    /// The frame header of a JPEG that is in memory.
    // fuzz: pictures
    pub(crate) fn of(bytes: &[u8]) -> Result<Self, ImageError> {
        let found = frame(&mut io::Cursor::new(bytes));
        found.unwrap_or(Err(ImageError::Damaged("no frame header of a JPEG")))
    }

    /// Decodes the picture and takes a window out of it.
    // fuzz: pictures
    pub(crate) fn window(
        &self,
        bytes: &dyn Ranges,
        part: Part,
        pixels: &mut Pixels,
    ) -> Result<(), ImageError> {
        let Size { width, height } = self.size;
        let count = u64::from(width) * u64::from(height);
        if count > PIXELS_MAX {
            return Err(ImageError::TooLarge { width, height });
        }
        if bytes.size() > FILE_BYTES_MAX {
            return Err(ImageError::Unsupported("a JPEG of more than 512 MiB"));
        }
        let _room = DECODING.take(bytes.size() + count * self.pixel_bytes())?;
        let mut file = Vec::new();
        bytes.read(std::slice::from_ref(&(0..bytes.size())), &mut file)?;
        let (colours, channels) = match self.components {
            1 => (ColorSpace::Luma, 1),
            _ => (ColorSpace::RGB, 3),
        };
        let options = DecoderOptions::default()
            .set_max_width(width as usize)
            .set_max_height(height as usize)
            .jpeg_set_out_colorspace(colours);
        let mut decoder = JpegDecoder::new_with_options(ZCursor::new(&file[..]), options);
        let damaged = || ImageError::Damaged("its data are no JPEG");
        let decoded = decoder.decode().map_err(|_| damaged())?;
        let (samples, row) = (Samples::new(channels, 1), width as usize * usize::from(channels));
        let samples = samples.ok_or_else(damaged)?;
        let wide = part.region.x as usize * usize::from(channels)
            ..(part.region.x + part.region.width) as usize * usize::from(channels);
        let mut painter = Painter::new(part, samples, pixels);
        for y in part.rows() {
            let row = decoded.get(y as usize * row..(y as usize + 1) * row);
            let wanted = row.and_then(|row| row.get(wide.clone())).ok_or_else(damaged)?;
            painter.row([(0, wanted)]);
        }
        painter.finish();
        Ok(())
    }

    /// Bytes of a pixel while the picture is decoded.
    fn pixel_bytes(self) -> u64 {
        let shown = if self.components == 1 { 1 } else { 3 };
        match self.coding {
            Coding::Sequential => shown,
            Coding::Progressive => shown + 2 * u64::from(self.components),
        }
    }
}

/// Goes from segment to segment to the frame header. An error is one of the reader.
// fuzz: pictures
fn frame(file: &mut (impl Read + Seek)) -> io::Result<Result<Jpeg, ImageError>> {
    let mut start = [0; 2];
    file.read_exact(&mut start)?;
    for _ in 0..SEGMENTS_MAX {
        let mut head = [0; 4];
        file.read_exact(&mut head)?;
        let [0xff, marker, a, b] = head else { break };
        match marker {
            // Bytes of 255 may stand before a marker.
            0xff => {
                file.seek(SeekFrom::Current(-3))?;
                continue;
            }
            0xc0..=0xc2 => {
                let mut frame = [0; 6];
                file.read_exact(&mut frame)?;
                return Ok(Jpeg::new(marker, frame));
            }
            0xc3 | 0xc5..=0xc7 | 0xc9..=0xcb | 0xcd..=0xcf => {
                return Ok(Err(ImageError::Unsupported("a JPEG of a rare kind of coding")));
            }
            // The beginning of a scan, or the end of the picture.
            0xd9 | 0xda => break,
            _ => {}
        }
        let Some(rest) = i64::from(u16::from_be_bytes([a, b])).checked_sub(2) else { break };
        file.seek(SeekFrom::Current(rest))?;
    }
    Err(io::ErrorKind::InvalidData.into())
}

impl Jpeg {
    /// From the frame header behind its length (T.81, B.2.2).
    fn new(marker: u8, frame: [u8; 6]) -> Result<Self, ImageError> {
        let [precision, h1, h2, w1, w2, components] = frame;
        if precision != 8 {
            return Err(ImageError::Unsupported("a JPEG of other samples than of 8 bits"));
        }
        let number = |a, b| u32::from(u16::from_be_bytes([a, b]));
        let size = Size::new(number(w1, w2), number(h1, h2))?;
        let coding = if marker == 0xc2 { Coding::Progressive } else { Coding::Sequential };
        match components {
            1 | 3 | 4 => Ok(Self { size, components, coding }),
            _ => Err(ImageError::Unsupported("a JPEG of so many components")),
        }
    }
}
