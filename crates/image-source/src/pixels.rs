//! Pixels as they are shown, and how files store them.

/// A window as it is shown: four bytes a pixel, red, green, blue and opacity, row after row from the top.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Pixels {
    /// Pixels of a row.
    pub width: u32,
    /// Rows.
    pub height: u32,
    /// The bytes, `4 * width * height`.
    pub rgba: Vec<u8>,
}

/// How the pixels of a file are stored.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Samples {
    /// 1 grey, 2 grey and opacity, 3 red, green and blue, 4 the same and opacity.
    channels: u8,
    /// Bytes of a sample, 1 or 2. Of two bytes the first one is shown.
    bytes: u8,
}

impl Samples {
    /// `None` unless there are 1 to 4 channels of 1 or 2 bytes.
    pub fn new(channels: u8, bytes: u8) -> Option<Self> {
        ((1..=4).contains(&channels) && (1..=2).contains(&bytes))
            .then_some(Self { channels, bytes })
    }

    /// Bytes of a pixel in the file.
    pub const fn pixel_bytes(self) -> usize {
        self.channels as usize * self.bytes as usize
    }

    /// Appends the pixels of a part of a row to `rgba`, every `step`th of them from the first on.
    pub(crate) fn append(self, row: &[u8], step: usize, rgba: &mut Vec<u8>) {
        let size = self.pixel_bytes();
        let wide = usize::from(self.bytes);
        let pixels = row.chunks_exact(size).step_by(step);
        let count = (row.len() / size).div_ceil(step);
        let start = rgba.len();
        rgba.resize(start + 4 * count, 255);
        let shown = rgba[start..].chunks_exact_mut(4).zip(pixels);
        match self.channels {
            1 => shown.for_each(|(to, from)| to[..3].fill(from[0])),
            2 => shown.for_each(|(to, from)| {
                to[..3].fill(from[0]);
                to[3] = from[wide];
            }),
            3 if wide == 1 => shown.for_each(|(to, from)| to[..3].copy_from_slice(&from[..3])),
            3 => shown.for_each(|(to, from)| (0..3).for_each(|at| to[at] = from[at * wide])),
            _ => shown.for_each(|(to, from)| (0..4).for_each(|at| to[at] = from[at * wide])),
        }
    }
}

impl Pixels {
    /// Makes it empty, with room for a window of this size.
    pub(crate) fn begin(&mut self, (width, height): (u32, u32)) {
        self.rgba.clear();
        self.rgba.reserve(4 * width as usize * height as usize);
        (self.width, self.height) = (width, height);
    }
}
