//! TIFF and BigTIFF: the first picture of a file, in strips or tiles.
//!
//! Strips and tiles that are not compressed are read where they lie. Others are decoded, those that the window needs and no
//! others, by the crate `tiff`.

use crate::error::ImageError;
use crate::geometry::{Part, Size};
use crate::jpeg::Jpeg;
use crate::number::{Levels, Number, Order, Tone};
use crate::painter::Painter;
use crate::pixels::{Kind, Pixels, Samples};
use crate::ranges::Ranges;
use crate::room::DECODING;
use crate::rows::{Place, Rows, Tiles};
use crate::sparse::{Pieces, Reader, Sparse};
use std::ops::Range;
use std::sync::Arc;
use tiff::decoder::{Decoder, Limits};
use tiff::tags::{ByteOrder, CompressionMethod, SampleFormat, Tag};
use tiff::{ColorType, TiffError};

/// A picture of a file.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Tiff {
    /// Its rows lie at known places.
    Placed(Rows),
    /// Its strips or tiles are decoded.
    Coded(Coded),
}

/// A picture whose strips or tiles are decoded.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Coded {
    pub(crate) size: Size,
    samples: Samples,
    /// The parts of the file that say what it is.
    head: Pieces,
    tiles: Tiles,
    /// Bytes of each tile in the file.
    lengths: Arc<[u64]>,
    is_jpeg: bool,
}

/// The first bytes of every file.
pub(crate) const SIGNATURES: [&[u8]; 4] = [b"II*\0", b"MM\0*", b"II+\0", b"MM\0+"];
/// Bytes that are read of a file to know where its tiles lie.
const HEAD_BYTES_MAX: u64 = 4 << 20;
/// Bytes of tiles that are read at once.
const BATCH_BYTES: u64 = 64 << 20;
/// Bytes of a strip or tile in the file.
const TILE_BYTES_MAX: u64 = 512 << 20;
/// Pixels of which values are taken to find the levels.
const MEASURED_PIXELS: usize = 1 << 16;

impl Tiff {
    /// Reads the head of a file. `levels` are those that the user wants.
    // fuzz: pictures
    pub(crate) fn open(bytes: &dyn Ranges, levels: Option<Levels>) -> Result<Self, ImageError> {
        let file = Sparse::new(bytes, Pieces::new(), HEAD_BYTES_MAX);
        let head = Head::read(&file)?;
        let size = Size::new(head.size.0, head.size.1)?;
        let (width, height) = (head.tile.0.min(size.width), head.tile.1.min(size.height));
        // Strips are as wide as the picture; a tile may be wider.
        let width = if head.is_tiled { head.tile.0 } else { width };
        let tiles = Tiles { offsets: head.offsets.clone().into(), width, height };
        if width == 0 || height == 0 {
            return Err(ImageError::Damaged("tiles without pixels"));
        }
        let count = u64::from(tiles.across(size.width)) * u64::from(size.height.div_ceil(height));
        if [head.offsets.len(), head.lengths.len()].iter().any(|&known| count > known as u64) {
            return Err(ImageError::Damaged("fewer tiles than the picture has"));
        }
        let samples = head.samples()?;
        if head.is_placed() {
            let rows = Rows { size, samples, place: Place::Tiled(tiles) };
            let rows = match (levels, head.needs_levels()) {
                (Some(levels), _) => {
                    let samples = samples.with_tone(Tone::plain(levels));
                    Rows { samples, ..rows }
                }
                (None, true) => {
                    let nothing = Tone::plain(Levels::around(std::iter::empty()));
                    rows.measured(bytes, nothing)?
                }
                (None, false) => rows,
            };
            return Ok(Self::Placed(rows));
        }
        let mut coded = Coded {
            size,
            samples,
            head: file.into_pieces(),
            tiles,
            lengths: head.lengths.clone().into(),
            is_jpeg: head.compression == CompressionMethod::ModernJPEG.to_u16(),
        };
        let levels = match (levels, head.needs_levels()) {
            (None, true) => Some(coded.levels(bytes)?),
            (levels, _) => levels,
        };
        if let Some(levels) = levels {
            coded.samples = samples.with_tone(Tone::plain(levels));
        }
        Ok(Self::Coded(coded))
    }
}

/// What the directory of a picture says.
struct Head {
    size: (u32, u32),
    colour: ColorType,
    format: SampleFormat,
    order: ByteOrder,
    stored: u16,
    compression: u16,
    photometric: u16,
    predictor: u16,
    planes: u16,
    is_tiled: bool,
    tile: (u32, u32),
    offsets: Vec<u64>,
    lengths: Vec<u64>,
}

impl Head {
    // fuzz: pictures
    fn read(file: &Sparse<'_>) -> Result<Self, ImageError> {
        let read = Decoder::new(file.reader()).and_then(|mut decoder| {
            let size = decoder.dimensions()?;
            let mut number = |tag, usual| {
                decoder.find_tag_unsigned::<u32>(tag).map(|found| found.unwrap_or(usual))
            };
            let small = |number: u32| u16::try_from(number).unwrap_or(u16::MAX);
            let (stored, planes) =
                (number(Tag::SamplesPerPixel, 1)?, number(Tag::PlanarConfiguration, 1)?);
            let (compression, predictor) =
                (number(Tag::Compression, 1)?, number(Tag::Predictor, 1)?);
            let (photometric, format) =
                (number(Tag::PhotometricInterpretation, 1)?, number(Tag::SampleFormat, 1));
            // One number for each sample, all the same.
            let format = format.or_else(|_| {
                let all = decoder.find_tag_unsigned_vec::<u32>(Tag::SampleFormat)?;
                Ok::<_, TiffError>(all.and_then(|all| all.first().copied()).unwrap_or(1))
            })?;
            let mut number = |tag, usual| {
                decoder.find_tag_unsigned::<u32>(tag).map(|found| found.unwrap_or(usual))
            };
            let wide = number(Tag::TileWidth, 0)?;
            let is_tiled = wide > 0;
            let tile = match is_tiled {
                true => (wide, number(Tag::TileLength, 0)?),
                false => (size.0, number(Tag::RowsPerStrip, u32::MAX)?),
            };
            let (offsets, lengths) = match is_tiled {
                true => (Tag::TileOffsets, Tag::TileByteCounts),
                false => (Tag::StripOffsets, Tag::StripByteCounts),
            };
            let mut all = |tag| decoder.find_tag_unsigned_vec::<u64>(tag);
            let (offsets, lengths) = (all(offsets)?, all(lengths)?);
            Ok(Self {
                size,
                colour: decoder.colortype()?,
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
            })
        });
        read.map_err(|error| file.explain(explain(&error)))
    }

    /// Whether the rows can be read where they lie.
    fn is_placed(&self) -> bool {
        let is_plain = self.compression == 1 && self.predictor == 1;
        let is_shown_as_stored = matches!(self.photometric, 1 | 2);
        // A tile of no bytes is one that nobody has written.
        is_plain && is_shown_as_stored && !self.lengths.contains(&0) && !self.offsets.contains(&0)
    }

    fn samples(&self) -> Result<Samples, ImageError> {
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
    fn needs_levels(&self) -> bool {
        !matches!(self.colour, ColorType::YCbCr(_))
            && self.samples().is_ok_and(|samples| samples.has_levels())
    }
}

impl Coded {
    /// Decodes the tiles that a window needs.
    // fuzz: pictures
    pub(crate) fn window(
        &self,
        bytes: &dyn Ranges,
        part: Part,
        pixels: &mut Pixels,
    ) -> Result<(), ImageError> {
        let region = part.region;
        let tiles = &self.tiles;
        let across = tiles.across(self.size.width);
        let columns = region.x / tiles.width..(region.x + region.width).div_ceil(tiles.width);
        let bands = region.y / tiles.height..(region.y + region.height).div_ceil(tiles.height);
        let rows_of = |band: u32| {
            let rows =
                band * tiles.height..self.size.height.min((band + 1).saturating_mul(tiles.height));
            rows.filter(move |&y| part.has_row(y))
        };
        let mut bands = bands.filter(|&band| rows_of(band).next().is_some()).peekable();
        let mut painter = Painter::new(part, self.samples, pixels);
        let file = Sparse::new(bytes, self.head.clone(), HEAD_BYTES_MAX);
        let mut decoder = self.decoder(&file)?;
        while bands.peek().is_some() {
            let (mut wanted, mut ranges, mut length) = (Vec::new(), Vec::new(), 0);
            while length < BATCH_BYTES
                && let Some(band) = bands.next()
            {
                wanted.push(band);
                for column in columns.clone() {
                    let range = self.range(band * across + column)?;
                    length += range.end - range.start;
                    ranges.push(range);
                }
            }
            ranges.retain(|range| !range.is_empty());
            let _room = DECODING.take(length + self.band_bytes(columns.len() as u64)?)?;
            file.read_ahead(&ranges)?;
            for band in wanted {
                let tile = |column| self.decode(&file, &mut decoder, band * across + column);
                let decoded = columns.clone().map(tile).collect::<Result<Vec<_>, _>>()?;
                for y in rows_of(band) {
                    let in_tile = (y - band * tiles.height) as usize;
                    let parts = columns.clone().zip(&decoded).filter_map(|(column, tile)| {
                        let row = tile.row(in_tile)?;
                        let left = column * tiles.width;
                        let skipped = region.x.saturating_sub(left);
                        let row = row.get(skipped as usize * self.samples.pixel_bytes()..)?;
                        Some((left.saturating_sub(region.x), row))
                    });
                    painter.row(parts);
                }
            }
        }
        painter.finish();
        Ok(())
    }

    /// Where a tile lies in the file.
    fn range(&self, tile: u32) -> Result<Range<u64>, ImageError> {
        let at = self.tiles.offsets.get(tile as usize).copied().unwrap_or_default();
        let length = self.lengths.get(tile as usize).copied().unwrap_or_default();
        let end = at.checked_add(length).filter(|_| length <= TILE_BYTES_MAX);
        Ok(at..end.ok_or(ImageError::Unsupported("a TIFF with such large tiles"))?)
    }

    /// Bytes of so many tiles beside each other when they are decoded, and of the decoder's own tables.
    fn band_bytes(&self, tiles: u64) -> Result<u64, ImageError> {
        let pixels = u64::from(self.tiles.width) * u64::from(self.tiles.height);
        let tile = pixels.checked_mul(self.samples.pixel_bytes() as u64);
        let all = tile.and_then(|tile| tile.checked_mul(if self.is_jpeg { 3 } else { 1 } + tiles));
        all.ok_or(ImageError::Unsupported("a TIFF with such large tiles"))
    }

    fn decoder<'a>(&self, file: &'a Sparse<'a>) -> Result<Decoder<Reader<'a>>, ImageError> {
        let mut limits = Limits::default();
        limits.intermediate_buffer_size = TILE_BYTES_MAX as usize;
        match Decoder::new(file.reader()) {
            Ok(decoder) => Ok(decoder.with_limits(limits)),
            Err(error) => Err(file.explain(explain(&error))),
        }
    }

    /// Decodes a tile whose bytes were read ahead.
    // fuzz: pictures
    fn decode(
        &self,
        file: &Sparse<'_>,
        decoder: &mut Decoder<Reader<'_>>,
        tile: u32,
    ) -> Result<Decoded, ImageError> {
        let range = self.range(tile)?;
        if range.is_empty() {
            return Ok(Decoded { bytes: Vec::new(), row_bytes: 0 });
        }
        if self.is_jpeg {
            // A tile that says it is larger than it should be would take more memory than was taken for it.
            let size = Jpeg::of(&file.piece(range.start).unwrap_or_default())?.size;
            if size.width > self.tiles.width || size.height > self.tiles.height {
                return Err(ImageError::Damaged("a tile that is larger than the others"));
            }
        }
        let decoded = decoder.image_chunk_buffer_layout(tile).and_then(|layout| {
            let (mut bytes, row) = (vec![0; layout.len], layout.row_stride);
            decoder.read_chunk_bytes(tile, &mut bytes)?;
            Ok(Decoded { bytes, row_bytes: row.map_or(0, std::num::NonZeroUsize::get) })
        });
        decoded.map_err(|error| file.explain(explain(&error)))
    }

    /// Levels that suit the values of the tile in the middle.
    fn levels(&self, bytes: &dyn Ranges) -> Result<Levels, ImageError> {
        let across = self.tiles.across(self.size.width);
        let (column, band) =
            (self.size.width / 2 / self.tiles.width, self.size.height / 2 / self.tiles.height);
        let range = self.range(band * across + column)?;
        let _room = DECODING.take(range.end - range.start + self.band_bytes(1)?)?;
        let file = Sparse::new(bytes, self.head.clone(), HEAD_BYTES_MAX);
        if !range.is_empty() {
            file.read_ahead(std::slice::from_ref(&range))?;
        }
        let mut decoder = self.decoder(&file)?;
        let tile = self.decode(&file, &mut decoder, band * across + column)?;
        let pixel = self.samples.pixel_bytes();
        let apart = (tile.bytes.len() / pixel / MEASURED_PIXELS).max(1);
        let some = tile.bytes.chunks_exact(pixel).step_by(apart);
        Ok(Levels::around(some.flat_map(|pixel| self.samples.values(pixel))))
    }
}

/// A strip or tile. One that nobody has written has no bytes.
struct Decoded {
    bytes: Vec<u8>,
    row_bytes: usize,
}

impl Decoded {
    fn row(&self, row: usize) -> Option<&[u8]> {
        let start = row.checked_mul(self.row_bytes)?;
        self.bytes.get(start..start + self.row_bytes)
    }
}

fn explain(error: &TiffError) -> ImageError {
    match error {
        TiffError::UnsupportedError(_) => ImageError::Unsupported("a TIFF of this kind"),
        TiffError::LimitsExceeded | TiffError::IntSizeError => {
            ImageError::Unsupported("a TIFF with such large parts")
        }
        TiffError::FormatError(_) | TiffError::IoError(_) | TiffError::UsageError(_) => {
            ImageError::Damaged("its data are no TIFF")
        }
    }
}
