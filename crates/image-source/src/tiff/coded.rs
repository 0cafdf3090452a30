//! Pictures whose strips or tiles are decoded by the crate `tiff`.

use super::{HEAD_BYTES_MAX, explain};
use crate::error::ImageError;
use crate::geometry::{Part, Size};
use crate::jpeg::Jpeg;
use crate::number::Levels;
use crate::painter::Painter;
use crate::palette::Palette;
use crate::pixels::{Pixels, Samples};
use crate::ranges::Ranges;
use crate::room::DECODING;
use crate::rows::Tiles;
use crate::sparse::{Overlay, Pieces, Reader, Sparse};
use std::ops::Range;
use std::sync::Arc;
use tiff::decoder::{Decoder, Limits};

/// A picture whose strips or tiles are decoded.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Coded {
    pub(crate) size: Size,
    pub(super) samples: Samples,
    pub(super) palette: Option<Arc<Palette>>,
    /// The parts of the file that describe it.
    pub(super) head: Pieces,
    /// Bytes that the decoder sees in place of those of the file.
    pub(super) overlays: Vec<Overlay>,
    pub(super) tiles: Tiles,
    /// Bytes of each tile in the file.
    pub(super) lengths: Arc<[u64]>,
    pub(super) is_jpeg: bool,
}

/// Bytes of tiles that are read at once.
const BATCH_BYTES: u64 = 64 << 20;
/// Bytes of a strip or tile in the file.
const TILE_BYTES_MAX: u64 = 512 << 20;
/// Pixels of which values are taken to find the levels.
const MEASURED_PIXELS: usize = 1 << 16;

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
        let (columns, bands) = self.needed(part);
        let rows_of = |band: u32| {
            let rows =
                band * tiles.height..self.size.height.min((band + 1).saturating_mul(tiles.height));
            rows.filter(move |&y| part.has_row(y))
        };
        let mut bands = bands.filter(|&band| rows_of(band).next().is_some()).peekable();
        let painter = Painter::new(part, self.samples, pixels);
        let mut painter = painter.with_palette(self.palette.as_deref());
        let file = self.file(bytes);
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
                bytes.check()?;
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

    /// The columns of tiles and the rows of tiles that a window needs.
    fn needed(&self, part: Part) -> (Range<u32>, Range<u32>) {
        let (region, tiles) = (part.region, &self.tiles);
        let (right, below) =
            (region.x.saturating_add(region.width), region.y.saturating_add(region.height));
        let columns = region.x / tiles.width..right.div_ceil(tiles.width);
        (columns, region.y / tiles.height..below.div_ceil(tiles.height))
    }

    /// Pixels of the tiles that a window needs.
    pub(super) fn decoded_for(&self, part: Part) -> u64 {
        let (columns, bands) = self.needed(part);
        let tiles = columns.len() as u64 * bands.len() as u64;
        let pixels = u64::from(self.tiles.width) * u64::from(self.tiles.height);
        tiles.saturating_mul(pixels)
    }

    /// The file as the decoder sees it.
    fn file<'a>(&self, bytes: &'a dyn Ranges) -> Sparse<'a> {
        Sparse::new(bytes, self.head.clone(), HEAD_BYTES_MAX).overlaid(&self.overlays)
    }

    /// Where a tile lies in the file.
    fn range(&self, tile: u32) -> Result<Range<u64>, ImageError> {
        let at = self.tiles.offsets.get(tile as usize).copied().unwrap_or_default();
        let length = self.lengths.get(tile as usize).copied().unwrap_or_default();
        let end = at.checked_add(length).filter(|_| length <= TILE_BYTES_MAX);
        Ok(at..end.ok_or(ImageError::Unsupported("a TIFF with such large tiles"))?)
    }

    /// Bytes of `tiles` decoded tiles beside each other, and of the decoder's own tables.
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
            // A tile with a larger size in its header would need more memory than was reserved for it.
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
    pub(super) fn levels(&self, bytes: &dyn Ranges) -> Result<Levels, ImageError> {
        let across = self.tiles.across(self.size.width);
        let (column, band) =
            (self.size.width / 2 / self.tiles.width, self.size.height / 2 / self.tiles.height);
        let range = self.range(band * across + column)?;
        let _room = DECODING.take(range.end - range.start + self.band_bytes(1)?)?;
        let file = self.file(bytes);
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

/// A strip or tile. One that was never written has no bytes.
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
