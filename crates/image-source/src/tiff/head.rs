//! What the directory of a picture says.

use super::explain;
use crate::error::ImageError;
use crate::number::{Levels, Number, Order, Tone};
use crate::palette::Palette;
use crate::pixels::{Kind, Samples};
use crate::sparse::{Overlay, Reader, Sparse};
use std::io::{Read, Seek, SeekFrom};
use std::sync::Arc;
use tiff::decoder::Decoder;
use tiff::tags::{ByteOrder, SampleFormat, Tag};
use tiff::{ColorType, TiffError};

/// What the directory of a picture says.
pub(super) struct Head {
    pub(super) size: (u32, u32),
    colour: ColorType,
    /// Where bytes stand for colours.
    pub(super) palette: Option<Arc<Palette>>,
    format: SampleFormat,
    order: ByteOrder,
    stored: u16,
    pub(super) compression: u16,
    photometric: u16,
    predictor: u16,
    planes: u16,
    pub(super) is_tiled: bool,
    pub(super) tile: (u32, u32),
    pub(super) offsets: Vec<u64>,
    pub(super) lengths: Vec<u64>,
    /// What NewSubfileType says.
    subfile: u32,
    /// Where directories of other pictures lie: those that are named as parts of this one, then the next one.
    pub(super) others: Vec<u64>,
}

/// What a directory says of its picture beside others (TIFF 6.0, NewSubfileType).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Role {
    /// A picture of its own.
    Page,
    /// A smaller one of a picture in the same file.
    Reduced,
    /// The opacity of another one.
    Mask,
}

/// Directories that may be named as parts of one.
const INNER_MAX: usize = 32;
/// What the crate `tiff` takes a picture with a palette for: grey, white is the highest value.
const GREY: u16 = 1;
/// The tag of the photometric interpretation.
const PHOTOMETRIC: u64 = 262;
/// The photometric interpretation of a palette.
const PALETTE: u32 = 3;

impl Head {
    // fuzz: pictures
    pub(super) fn read(file: &Sparse<'_>) -> Result<Self, ImageError> {
        let read = Decoder::new(file.reader()).and_then(|mut decoder| Self::of(&mut decoder));
        read.map_err(|error| file.explain(explain(&error)))
    }

    fn of(decoder: &mut Decoder<Reader<'_>>) -> Result<Self, TiffError> {
        let size = decoder.dimensions()?;
        let mut number =
            |tag, usual| decoder.find_tag_unsigned::<u32>(tag).map(|found| found.unwrap_or(usual));
        let small = |number: u32| u16::try_from(number).unwrap_or(u16::MAX);
        let (stored, planes) =
            (number(Tag::SamplesPerPixel, 1)?, number(Tag::PlanarConfiguration, 1)?);
        let (compression, predictor) = (number(Tag::Compression, 1)?, number(Tag::Predictor, 1)?);
        let (photometric, format) =
            (number(Tag::PhotometricInterpretation, 1)?, number(Tag::SampleFormat, 1));
        // One number for each sample, all the same.
        let format = format.or_else(|_| {
            let all = decoder.find_tag_unsigned_vec::<u32>(Tag::SampleFormat)?;
            Ok::<_, TiffError>(all.and_then(|all| all.first().copied()).unwrap_or(1))
        })?;
        let mut number =
            |tag, usual| decoder.find_tag_unsigned::<u32>(tag).map(|found| found.unwrap_or(usual));
        let wide = number(Tag::TileWidth, 0)?;
        let is_tiled = wide > 0;
        let tile = match is_tiled {
            true => (wide, number(Tag::TileLength, 0)?),
            false => (size.0, number(Tag::RowsPerStrip, u32::MAX)?),
        };
        let subfile = number(Tag::NewSubfileType, 0)?;
        let (offsets, lengths) = match is_tiled {
            true => (Tag::TileOffsets, Tag::TileByteCounts),
            false => (Tag::StripOffsets, Tag::StripByteCounts),
        };
        let mut all = |tag| decoder.find_tag_unsigned_vec::<u64>(tag);
        let (offsets, lengths) = (all(offsets)?, all(lengths)?);
        let palette = match photometric {
            PALETTE if stored == 1 => palette(decoder)?,
            _ => None,
        };
        let colour = match palette {
            Some(_) => ColorType::Gray(8),
            None => decoder.colortype()?,
        };
        Ok(Self {
            size,
            colour,
            palette: palette.map(Arc::new),
            format: SampleFormat::from_u16_exhaustive(small(format)),
            order: decoder.byte_order(),
            stored: small(stored),
            compression: small(compression),
            photometric: small(photometric),
            predictor: small(predictor),
            planes: small(planes),
            is_tiled,
            tile,
            offsets: offsets.unwrap_or_default(),
            lengths: lengths.unwrap_or_default(),
            subfile,
            others: others(decoder),
        })
    }

    /// What it says of its picture beside others.
    pub(super) const fn role(&self) -> Role {
        match (self.subfile & 1, self.subfile & 4) {
            (0, 0) => Role::Page,
            (1, 0) => Role::Reduced,
            _ => Role::Mask,
        }
    }

    /// Whether the rows can be read where they lie.
    pub(super) fn is_placed(&self) -> bool {
        let is_plain = self.compression == 1 && self.predictor == 1;
        let is_shown_as_stored = matches!(self.photometric, 1 | 2);
        // A tile of no bytes is one that nobody has written.
        is_plain && is_shown_as_stored && !self.lengths.contains(&0) && !self.offsets.contains(&0)
    }

    pub(super) fn samples(&self) -> Result<Samples, ImageError> {
        let unsupported = || ImageError::Unsupported("a TIFF with such samples");
        if self.planes != 1 && self.stored > 1 {
            return Err(ImageError::Unsupported("a TIFF whose colours lie apart"));
        }
        // The decoder leaves out samples beyond those of the colour.
        let (bits, shown, decoded) = match self.colour {
            ColorType::Gray(bits) => (bits, 1, 1),
            ColorType::RGB(bits) => (bits, 3, 3),
            ColorType::RGBA(bits) => (bits, 4, 4),
            ColorType::YCbCr(8) => {
                let kind = Samples::of(3, 3, Kind::Luma);
                return kind.filter(|_| self.stored == 3).ok_or_else(unsupported);
            }
            ColorType::Multiband { bit_depth, num_samples } => {
                (bit_depth, if num_samples < 3 { 1 } else { 3 }, num_samples)
            }
            _ => return Err(unsupported()),
        };
        let stored = if self.is_placed() { self.stored } else { decoded };
        let order = match (self.is_placed(), self.order) {
            (false, _) => Order::NATIVE,
            (true, ByteOrder::BigEndian) => Order::Big,
            (true, ByteOrder::LittleEndian) => Order::Little,
        };
        let nothing = Tone::plain(Levels::around(std::iter::empty()));
        let number = match (self.format, bits) {
            (SampleFormat::Uint, 8) => {
                return Samples::of(stored, shown, Kind::Byte).ok_or_else(unsupported);
            }
            (SampleFormat::Uint, 16) => {
                return Samples::of(stored, shown, Kind::Word(order)).ok_or_else(unsupported);
            }
            (SampleFormat::Uint, 32) => Number::U32,
            (SampleFormat::Uint, 64) => Number::U64,
            (SampleFormat::Int, 8) => Number::I8,
            (SampleFormat::Int, 16) => Number::I16,
            (SampleFormat::Int, 32) => Number::I32,
            (SampleFormat::Int, 64) => Number::I64,
            (SampleFormat::IEEEFP, 32) => Number::F32,
            (SampleFormat::IEEEFP, 64) => Number::F64,
            _ => return Err(unsupported()),
        };
        Samples::of(stored, shown, Kind::Number(number, order, nothing)).ok_or_else(unsupported)
    }

    /// Whether nothing says which values are black and white.
    pub(super) fn needs_levels(&self) -> bool {
        !matches!(self.colour, ColorType::YCbCr(_))
            && self.samples().is_ok_and(|samples| samples.has_levels())
    }
}

/// The palette of the picture, if each of its pixels is one byte.
fn palette(decoder: &mut Decoder<Reader<'_>>) -> Result<Option<Palette>, TiffError> {
    let mut numbers = |tag| decoder.find_tag_unsigned_vec::<u16>(tag);
    let (bits, map) = (numbers(Tag::BitsPerSample)?, numbers(Tag::ColorMap)?);
    let map = map.filter(|_| bits.as_deref() == Some(&[8]));
    Ok(map.and_then(|map| Palette::of_tiff(&map)))
}

/// Where directories of other pictures lie. One that cannot be read has none.
fn others(decoder: &mut Decoder<Reader<'_>>) -> Vec<u64> {
    let inner = decoder.find_tag(Tag::SubIfd).ok().flatten();
    let inner = inner.and_then(|inner| inner.into_ifd_vec().ok()).unwrap_or_default();
    let mut others: Vec<u64> = inner.iter().take(INNER_MAX).map(|inner| inner.0).collect();
    let here = decoder.ifd_pointer();
    let next = here.and_then(|here| decoder.read_directory(here).ok()?.next());
    others.extend(next.map(|next| next.0));
    others
}

/// How a file is read, apart from the order of its bytes.
struct Layout {
    order: ByteOrder,
    /// Bytes of the number of entries, of an entry, and of a place in the file.
    sizes: (usize, usize, usize),
    /// Where the place of the first directory is written.
    first_at: u64,
}

impl Layout {
    /// Of a file that has been read so far that it is known to be a TIFF.
    fn of(file: &Sparse<'_>) -> std::io::Result<Self> {
        let mut start = [0; 4];
        file.reader().read_exact(&mut start)?;
        let order = match start[0] {
            b'I' => ByteOrder::LittleEndian,
            _ => ByteOrder::BigEndian,
        };
        Ok(match start[2..] {
            [43, _] | [_, 43] => Self { order, sizes: (8, 20, 8), first_at: 8 },
            _ => Self { order, sizes: (2, 12, 4), first_at: 4 },
        })
    }

    fn number(&self, bytes: &[u8]) -> u64 {
        let add = |number: u64, &byte: &u8| number << 8 | u64::from(byte);
        match self.order {
            ByteOrder::LittleEndian => bytes.iter().rev().fold(0, add),
            ByteOrder::BigEndian => bytes.iter().fold(0, add),
        }
    }

    fn bytes(&self, number: u64, count: usize) -> Vec<u8> {
        match self.order {
            ByteOrder::LittleEndian => number.to_le_bytes()[..count].to_vec(),
            ByteOrder::BigEndian => number.to_be_bytes()[8 - count..].to_vec(),
        }
    }
}

/// What makes the directory at `place` the first one of the file.
// fuzz: pictures
pub(super) fn begins_at(file: &Sparse<'_>, place: u64) -> Result<Overlay, ImageError> {
    let layout = Layout::of(file).map_err(|_| file.explain(ImageError::Damaged("no TIFF")))?;
    Ok(Overlay { at: layout.first_at, bytes: layout.bytes(place, layout.sizes.2) })
}

/// What makes a picture with a palette a grey one, so that the crate `tiff` decodes its bytes.
// fuzz: pictures
pub(super) fn grey(file: &Sparse<'_>) -> Result<Overlay, ImageError> {
    let found = (|| -> std::io::Result<Option<Overlay>> {
        let layout = Layout::of(file)?;
        let (count_bytes, entry_bytes, place_bytes) = layout.sizes;
        let mut reader = file.reader();
        let mut read = |at: u64, count: usize| {
            let mut bytes = [0; 20];
            reader.seek(SeekFrom::Start(at))?;
            reader.read_exact(&mut bytes[..count])?;
            std::io::Result::Ok(bytes)
        };
        let first = layout.number(&read(layout.first_at, place_bytes)?[..place_bytes]);
        let count = layout.number(&read(first, count_bytes)?[..count_bytes]);
        for entry in 0..count.min(u16::MAX.into()) {
            let at = first.saturating_add(count_bytes as u64 + entry * entry_bytes as u64);
            let bytes = read(at, entry_bytes)?;
            if layout.number(&bytes[..2]) == PHOTOMETRIC {
                let at = at + (entry_bytes - place_bytes) as u64;
                return Ok(Some(Overlay { at, bytes: layout.bytes(GREY.into(), 2) }));
            }
        }
        Ok(None)
    })();
    let damaged = ImageError::Damaged("its palette is missing");
    match found {
        Ok(found) => found.ok_or(damaged),
        Err(_) => Err(file.explain(damaged)),
    }
}
