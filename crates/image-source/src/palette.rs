//! Palettes: the colours that bytes stand for.

/// The red, green and blue of each byte.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Palette(Box<[[u8; 3]; 256]>);

impl Palette {
    /// From the ColorMap of a TIFF: 256 numbers of 16 bits of red, as many of green, as many of blue. `None` for
    /// another count.
    pub(crate) fn of_tiff(map: &[u16]) -> Option<Self> {
        if map.len() != 3 * 256 {
            return None;
        }
        // Some programs write numbers of 8 bits.
        let shift = if map.iter().all(|&number| number < 256) { 0 } else { 8 };
        let colour = |at: usize| [0, 256, 512].map(|of| (map[of + at] >> shift) as u8);
        Some(Self(Box::new(std::array::from_fn(colour))))
    }

    /// Puts colours in place of pixels whose red is the byte that stands for one.
    pub(crate) fn colour(&self, rgba: &mut [u8]) {
        for pixel in rgba.chunks_exact_mut(4) {
            let colour = self.0[usize::from(pixel[0])];
            pixel[..3].copy_from_slice(&colour);
        }
    }
}
