//! Overviews: smaller pictures of the same scene in one file, from which windows are made that are seen smaller.

use crate::geometry::{Part, Region, Size, Step};
use crate::pixels::Pixels;

/// The factor, in both directions, by which an overview is smaller; at least 2. `None` if it is no smaller picture of equal
/// shape.
pub(crate) fn factor(full: Size, small: Size) -> Option<u32> {
    let (long, short) = match full.width >= full.height {
        true => (full.width, small.width),
        false => (full.height, small.height),
    };
    let factor = (long + short / 2) / short;
    // A part of a square at the edge may have made a pixel, or been left out.
    let fits = |full: u32, small: u32| {
        u64::from(full).abs_diff(u64::from(small) * u64::from(factor)) < u64::from(factor)
    };
    let is_whole = fits(full.width, small.width) && fits(full.height, small.height);
    (factor > 1 && is_whole).then_some(factor)
}

/// The part of an overview that shows a part of the picture. Its window has at least as many pixels in each direction, except
/// where the overview ends earlier than the picture.
pub(crate) fn part(part: Part, factor: u32, small: Size) -> Part {
    let cut = |at: u32, length: u32, limit: u32| {
        let from = (at / factor).min(limit - 1);
        (from, (at + length).div_ceil(factor).min(limit).max(from + 1) - from)
    };
    let (x, width) = cut(part.region.x, part.region.width, small.width);
    let (y, height) = cut(part.region.y, part.region.height, small.height);
    let step = Step::new(part.step.get() / factor).unwrap_or(Step::ALL);
    Part { region: Region { x, y, width, height }, step, ..part }
}

/// Makes the window of `part` of the picture from that of the `small` part of an overview: each pixel is the one that shows
/// its middle.
pub(crate) fn fit(part: Part, factor: u32, small: Part, pixels: &mut Pixels) {
    let (width, height) = part.window();
    let places = |at: u32, count: u32, from: u32, limit: u32| -> Vec<usize> {
        let step = u64::from(part.step.get());
        let place = |pixel: u32| {
            let middle = u64::from(at) + u64::from(pixel) * step + step / 2;
            let here = (middle / u64::from(factor)).saturating_sub(from.into());
            (here / u64::from(small.step.get())).min(u64::from(limit) - 1) as usize
        };
        (0..count).map(place).collect()
    };
    let columns = places(part.region.x, width, small.region.x, pixels.width);
    let rows = places(part.region.y, height, small.region.y, pixels.height);
    let is_same = |places: &[usize], count: u32| places.iter().copied().eq(0..count as usize);
    if is_same(&columns, pixels.width) && is_same(&rows, pixels.height) {
        return;
    }
    let row_bytes = 4 * pixels.width as usize;
    let mut rgba = Vec::with_capacity(4 * columns.len() * rows.len());
    for row in rows {
        let row = &pixels.rgba[row * row_bytes..(row + 1) * row_bytes];
        for &column in &columns {
            rgba.extend_from_slice(&row[4 * column..4 * column + 4]);
        }
    }
    *pixels = Pixels { width, height, rgba };
}

#[cfg(test)]
mod tests;
