//! Makes a window from rows of a picture, which come in order.

use crate::geometry::Part;
use crate::geometry::Smaller;
use crate::palette::Palette;
use crate::pixels::{Pixels, Samples};

/// Writes the rows of a part of a picture into a window.
pub(crate) struct Painter<'a> {
    part: Part,
    samples: Samples,
    palette: Option<&'a Palette>,
    pixels: &'a mut Pixels,
    /// Where pixels are averaged: those of the row that comes.
    row: Vec<u8>,
    /// The sums of the pixels of a row of the window, four each.
    sums: Vec<u32>,
    /// The rows that are in the sums.
    summed: u32,
}

impl<'a> Painter<'a> {
    /// Begins a window. The region of the part has been checked.
    pub(crate) fn new(part: Part, samples: Samples, pixels: &'a mut Pixels) -> Self {
        pixels.begin(part.window());
        let (row, sums) = match part.is_averaged() {
            true => {
                (vec![0; 4 * part.region.width as usize], vec![0; 4 * part.window().0 as usize])
            }
            false => (Vec::new(), Vec::new()),
        };
        Self { part, samples, palette: None, pixels, row, sums, summed: 0 }
    }

    /// Shows the colours that grey samples of one byte stand for.
    pub(crate) fn with_palette(self, palette: Option<&'a Palette>) -> Self {
        Self { palette, ..self }
    }

    /// Takes the next wanted row ([`Part::rows`]). It comes in pieces, each with the pixels of the region's row before it;
    /// pixels that no piece has stay empty.
    pub(crate) fn row<'b>(&mut self, pieces: impl IntoIterator<Item = (u32, &'b [u8])>) {
        let pixel = self.samples.pixel_bytes();
        let step = self.part.step.get() as usize;
        if self.part.smaller == Smaller::Pick || step == 1 {
            let start = self.pixels.rgba.len();
            self.pixels.rgba.resize(start + 4 * self.part.window().0 as usize, 0);
            let to = &mut self.pixels.rgba[start..];
            for (before, bytes) in pieces {
                let first = (before as usize).div_ceil(step);
                let skipped = first * step - before as usize;
                if let (Some(to), Some(bytes)) =
                    (to.get_mut(4 * first..), bytes.get(skipped * pixel..))
                {
                    self.samples.paint(bytes, step, to);
                }
            }
            if let Some(palette) = self.palette {
                palette.colour(to);
            }
            return;
        }
        self.row.fill(0);
        for (before, bytes) in pieces {
            if let Some(to) = self.row.get_mut(4 * before as usize..) {
                self.samples.paint(bytes, 1, to);
            }
        }
        if let Some(palette) = self.palette {
            palette.colour(&mut self.row);
        }
        for (sum, pixels) in self.sums.chunks_exact_mut(4).zip(self.row.chunks(4 * step)) {
            for pixel in pixels.chunks_exact(4) {
                (0..4).for_each(|at| sum[at] += u32::from(pixel[at]));
            }
        }
        self.summed += 1;
        if self.summed as usize == step {
            self.divide();
        }
    }

    /// Ends the window. Returns whether all rows have come.
    pub(crate) fn finish(mut self) -> bool {
        if self.summed > 0 {
            self.divide();
        }
        let (width, height) = self.part.window();
        self.pixels.rgba.len() == 4 * width as usize * height as usize
    }

    /// Writes the averages of the rows that are summed.
    fn divide(&mut self) {
        let (step, width) = (self.part.step.get(), self.part.region.width);
        for (at, sum) in (0..).zip(self.sums.chunks_exact_mut(4)) {
            // The last column may be narrower.
            let count = step.min(width - at * step) * self.summed;
            self.pixels.rgba.extend(sum.iter().map(|sum| ((sum + count / 2) / count) as u8));
            sum.fill(0);
        }
        self.summed = 0;
    }
}
