//! FITS (version 4.0 of the standard): the first picture of a file that is not compressed.
//!
//! A file is a row of units: a head of text in blocks of 2880 bytes, 36 cards of 80 characters each, and data padded to such
//! blocks. Rows lie from the lowest one upward. Of data of more than two dimensions the first plane is shown.

use crate::error::ImageError;
use crate::geometry::Size;
use crate::number::{Levels, Number, Order, Tone};
use crate::pixels::{Kind, Samples};
use crate::ranges::Ranges;
use crate::rows::{Place, Rows};

/// The first bytes of every file.
pub(crate) const SIGNATURE: &[u8] = b"SIMPLE  =";
const BLOCK_BYTES: u64 = 2880;
const CARD_BYTES: usize = 80;
/// Blocks that are read at once.
const READ_BLOCKS: u64 = 8;
/// Blocks of the heads of all units.
const BLOCKS_MAX: u64 = 1024;
/// Units that are searched for a picture.
const UNITS_MAX: usize = 64;
/// Dimensions that data may have.
const AXES_MAX: usize = 999;

/// The fields of the head of a unit.
#[derive(Default)]
struct Unit {
    is_picture: bool,
    is_compressed: bool,
    bits: i64,
    axes: usize,
    lengths: Vec<(usize, u64)>,
    parameters: u64,
    groups: Option<u64>,
    scale: Option<f64>,
    zero: Option<f64>,
    blank: Option<f64>,
    low: Option<f64>,
    high: Option<f64>,
}

/// The rows of the first picture of a file. `levels` are those that the user wants.
// fuzz: pictures
pub(crate) fn rows(bytes: &dyn Ranges, levels: Option<Levels>) -> Result<Rows, ImageError> {
    let (mut at, mut blocks, mut is_compressed) = (0, 0, false);
    for _ in 0..UNITS_MAX {
        if at >= bytes.size() {
            break;
        }
        let unit = head(bytes, &mut at, &mut blocks)?;
        is_compressed |= unit.is_compressed;
        let lengths = [unit.length(1), unit.length(2)];
        if let ([Some(width), Some(height)], true) = (lengths, unit.is_picture)
            && width > 0
            && height > 0
        {
            return unit.rows(bytes, (width, height), at, levels);
        }
        let damaged = ImageError::Damaged("data that are longer than a file may be");
        at = unit.data_bytes().and_then(|data| at.checked_add(data)).ok_or(damaged)?;
    }
    match is_compressed {
        true => Err(ImageError::Unsupported("a FITS file whose picture is compressed")),
        false => Err(ImageError::Unsupported("a FITS file without a picture")),
    }
}

/// Reads the head of a unit, and moves `at` behind it.
fn head(bytes: &dyn Ranges, at: &mut u64, blocks: &mut u64) -> Result<Unit, ImageError> {
    let mut unit = Unit::default();
    let mut text = Vec::new();
    loop {
        let end = bytes.size().min(*at + READ_BLOCKS * BLOCK_BYTES);
        let whole = end.saturating_sub(*at) / BLOCK_BYTES;
        if whole == 0 || *blocks + whole > BLOCKS_MAX {
            return Err(ImageError::Damaged("the head of a FITS file does not end"));
        }
        text.clear();
        bytes.read(std::slice::from_ref(&(*at..*at + whole * BLOCK_BYTES)), &mut text)?;
        for block in text.chunks_exact(BLOCK_BYTES as usize) {
            *at += BLOCK_BYTES;
            *blocks += 1;
            for card in block.chunks_exact(CARD_BYTES) {
                if card.starts_with(b"END     ") {
                    return Ok(unit);
                }
                unit.take(card)?;
            }
        }
    }
}

impl Unit {
    /// Takes a card, `KEYWORD = VALUE / COMMENT`.
    // fuzz: pictures
    fn take(&mut self, card: &[u8]) -> Result<(), ImageError> {
        let Ok(card) = str::from_utf8(card) else { return Ok(()) };
        let Some((name, value)) = card.split_at_checked(8) else { return Ok(()) };
        let Some(value) = value.strip_prefix("= ") else { return Ok(()) };
        let (name, value) = (name.trim_end(), value.split('/').next().unwrap_or_default().trim());
        let damaged = || ImageError::Damaged("a number in the head of a FITS file");
        let whole = || value.parse::<i64>().map_err(|_| damaged());
        let count = || value.parse::<u64>().map_err(|_| damaged());
        // Exponents may be written with a D.
        let number = || value.replace(['D', 'd'], "E").parse::<f64>().ok();
        match name {
            "SIMPLE" => self.is_picture = true,
            "XTENSION" => self.is_picture = value.trim_matches('\'').trim_end() == "IMAGE",
            "ZIMAGE" => self.is_compressed = value == "T",
            "BITPIX" => self.bits = whole()?,
            "NAXIS" => {
                self.axes = count()?.try_into().map_err(|_| damaged())?;
                if self.axes > AXES_MAX {
                    return Err(damaged());
                }
            }
            "PCOUNT" => self.parameters = count()?,
            "GCOUNT" => self.groups = Some(count()?),
            "BSCALE" => self.scale = number(),
            "BZERO" => self.zero = number(),
            "BLANK" => self.blank = number(),
            "DATAMIN" => self.low = number(),
            "DATAMAX" => self.high = number(),
            name => {
                let axis = name.strip_prefix("NAXIS").and_then(|axis| axis.parse().ok());
                if let Some(axis) = axis.filter(|axis| (1..=AXES_MAX).contains(axis)) {
                    self.lengths.retain(|(known, _)| *known != axis);
                    self.lengths.push((axis, count()?));
                }
            }
        }
        Ok(())
    }

    fn length(&self, axis: usize) -> Option<u64> {
        let length = self.lengths.iter().find(|(known, _)| *known == axis)?.1;
        (axis <= self.axes).then_some(length)
    }

    /// Bytes of the data with their padding; `None` if that exceeds the length of any file.
    fn data_bytes(&self) -> Option<u64> {
        if self.axes == 0 {
            return Some(0);
        }
        let mut count = 1u64;
        for axis in 1..=self.axes {
            count = count.checked_mul(self.length(axis)?)?;
        }
        let all = count.checked_add(self.parameters)?.checked_mul(self.groups.unwrap_or(1))?;
        let bytes = all.checked_mul(self.bits.unsigned_abs() / 8)?;
        bytes.checked_next_multiple_of(BLOCK_BYTES)
    }

    fn rows(
        &self,
        bytes: &dyn Ranges,
        (width, height): (u64, u64),
        from: u64,
        levels: Option<Levels>,
    ) -> Result<Rows, ImageError> {
        let number = match self.bits {
            8 => Number::U8,
            16 => Number::I16,
            32 => Number::I32,
            64 => Number::I64,
            -32 => Number::F32,
            -64 => Number::F64,
            _ => return Err(ImageError::Damaged("a FITS file with numbers of no known size")),
        };
        let pixels = |length: u64| u32::try_from(length).unwrap_or(u32::MAX);
        let size = Size::new(pixels(width), pixels(height))?;
        let (scale, zero) = (self.scale.unwrap_or(1.0), self.zero.unwrap_or(0.0));
        let blank = self.blank.filter(|_| self.bits > 0);
        let place = Place::Upward { from };
        let with = |kind| {
            let samples = Samples::of(1, 1, kind);
            samples.ok_or(ImageError::Unsupported("a FITS file with such samples"))
        };
        let told = self.low.zip(self.high).and_then(|(low, high)| Levels::new(low, high));
        if number == Number::U8 && (scale, zero, blank, levels) == (1.0, 0.0, None, None) {
            let rows = Rows { size, samples: with(Kind::Byte)?, place };
            rows.check(bytes.size())?;
            return Ok(rows);
        }
        let known = levels.or(told);
        let nothing = Levels::around(std::iter::empty());
        let tone = Tone { levels: known.unwrap_or(nothing), scale, zero, blank };
        let rows = Rows { size, samples: with(Kind::Number(number, Order::Big, tone))?, place };
        rows.check(bytes.size())?;
        match known {
            Some(_) => Ok(rows),
            None => rows.measured(bytes, tone),
        }
    }
}
