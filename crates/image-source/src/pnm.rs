//! PGM and PPM (netpbm's `pgm(5)` and `ppm(5)`), the binary forms.

use crate::error::ImageError;
use crate::geometry::Size;
use crate::pixels::Samples;
use crate::rows::{Place, Rows};

/// The rows of a picture that begins with these bytes.
// fuzz: pictures
pub(crate) fn rows(start: &[u8]) -> Result<Rows, ImageError> {
    let channels = match start.get(1) {
        Some(b'5') => 1,
        Some(b'6') => 3,
        _ => return Err(ImageError::Unsupported("a PNM that is no P5 or P6")),
    };
    let mut at = 2;
    let mut number = || -> Option<u32> {
        loop {
            match *start.get(at)? {
                b'#' => at += start[at..].iter().position(|&byte| byte == b'\n')?,
                byte if byte.is_ascii_whitespace() => at += 1,
                _ => break,
            }
        }
        let digits = start[at..].iter().position(|byte| !byte.is_ascii_digit())?;
        let text = str::from_utf8(&start[at..at + digits]).ok()?;
        at += digits;
        text.parse().ok()
    };
    let damaged = ImageError::Damaged("no head of a PNM");
    let (width, height) = number().zip(number()).ok_or_else(|| damaged.clone())?;
    let bytes = match number().ok_or_else(|| damaged.clone())? {
        255 => 1,
        65_535 => 2,
        1..65_535 => {
            return Err(ImageError::Unsupported("a PNM of another maximum than 255 or 65535"));
        }
        _ => return Err(damaged),
    };
    let samples = Samples::new(channels, bytes).ok_or(damaged)?;
    // One byte of white space stands before the pixels.
    let from = at as u64 + 1;
    Ok(Rows { size: Size::new(width, height)?, samples, place: Place::Plain { from } })
}
