//! Pixels as they are shown, and how files store them.

use crate::number::{Levels, Number, Order, Tone};

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
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Samples {
    /// Samples of a pixel in the file.
    stored: u16,
    /// The first ones of them that are shown: 1 grey, 2 grey and opacity, 3 red, green and blue, 4 the same and opacity.
    shown: u8,
    kind: Kind,
}

/// The type of a sample.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Kind {
    /// A byte that is shown as it is.
    Byte,
    /// Two bytes, of whose 16 bits the upper eight are shown.
    Word(Order),
    /// A number that is shown between black and white.
    Number(Number, Order, Tone),
    /// Bytes of luminance and of two colour differences (ITU-R BT.601, full range, as in JPEG), three of them a pixel.
    Luma,
}

impl Samples {
    /// Samples of one byte, or of two of which the first one is the upper one. `None` unless there are 1 to 4 channels of 1
    /// or 2 bytes.
    pub fn new(channels: u8, bytes: u8) -> Option<Self> {
        let kind = match bytes {
            1 => Kind::Byte,
            2 => Kind::Word(Order::Big),
            _ => return None,
        };
        Self::of(channels.into(), channels, kind)
    }

    /// Pixels of `stored` samples, of which the first `shown` are shown. `None` unless these are 1 to 4.
    pub(crate) fn of(stored: u16, shown: u8, kind: Kind) -> Option<Self> {
        let is_right = (1..=4).contains(&shown) && u16::from(shown) <= stored;
        is_right.then_some(Self { stored, shown, kind })
    }

    /// Bytes of a pixel in the file.
    pub const fn pixel_bytes(self) -> usize {
        self.stored as usize * self.sample_bytes()
    }

    /// The layout with other values of black and white, if samples are numbers.
    pub(crate) const fn with_tone(self, tone: Tone) -> Self {
        let kind = match self.kind {
            Kind::Byte => Kind::Number(Number::U8, Order::Big, tone),
            Kind::Word(order) => Kind::Number(Number::U16, order, tone),
            Kind::Number(number, order, _) => Kind::Number(number, order, tone),
            Kind::Luma => Kind::Luma,
        };
        Self { kind, ..self }
    }

    /// Whether levels determine how the samples are shown.
    pub(crate) const fn has_levels(self) -> bool {
        matches!(self.kind, Kind::Number(..))
    }

    /// The levels between which the samples are shown, where some are.
    pub(crate) const fn levels(self) -> Option<Levels> {
        match self.kind {
            Kind::Number(.., tone) => Some(tone.levels),
            Kind::Byte | Kind::Word(_) | Kind::Luma => None,
        }
    }

    /// The values of the samples that are shown, of opacity too.
    pub(crate) fn values(self, row: &[u8]) -> impl Iterator<Item = f64> + '_ {
        let (bytes, shown) = (self.sample_bytes(), usize::from(self.shown));
        let value = move |sample: &[u8]| match self.kind {
            Kind::Byte | Kind::Luma => f64::from(sample[0]),
            Kind::Word(order) => Number::U16.value(order, sample),
            Kind::Number(number, order, tone) => tone.physical(number.value(order, sample)),
        };
        let pixels = row.chunks_exact(self.pixel_bytes());
        pixels.flat_map(move |pixel| pixel.chunks_exact(bytes).take(shown).map(value))
    }

    const fn sample_bytes(self) -> usize {
        match self.kind {
            Kind::Byte | Kind::Luma => 1,
            Kind::Word(_) => 2,
            Kind::Number(number, ..) => number.bytes(),
        }
    }

    /// Writes the pixels of a row, every `step`th of them from the first on, to `rgba`, as many as have room there.
    pub(crate) fn paint(self, row: &[u8], step: usize, rgba: &mut [u8]) {
        let pixels = row.chunks_exact(self.pixel_bytes()).step_by(step);
        let to = rgba.chunks_exact_mut(4).zip(pixels);
        match self.kind {
            Kind::Byte if self.shown == 3 => to.for_each(|(to, from)| {
                to[..3].copy_from_slice(&from[..3]);
                to[3] = 255;
            }),
            Kind::Byte => to.for_each(|(to, from)| self.spread(to, |at| from[at])),
            Kind::Word(order) => {
                let upper = order.upper();
                to.for_each(|(to, from)| self.spread(to, |at| from[2 * at + upper]));
            }
            Kind::Number(number, order, tone) => {
                let bytes = number.bytes();
                to.for_each(|(to, from)| {
                    self.spread(to, |at| tone.shown(number.value(order, &from[at * bytes..])));
                });
            }
            Kind::Luma => to.for_each(|(to, from)| to.copy_from_slice(&rgb(from))),
        }
    }

    /// Writes a pixel whose samples are these.
    fn spread(self, to: &mut [u8], sample: impl Fn(usize) -> u8) {
        match self.shown {
            1 | 2 => {
                to[..3].fill(sample(0));
                to[3] = if self.shown == 2 { sample(1) } else { 255 };
            }
            _ => {
                (0..3).for_each(|at| to[at] = sample(at));
                to[3] = if self.shown == 4 { sample(3) } else { 255 };
            }
        }
    }
}

/// A pixel of luminance and colour differences (ITU-T T.871, section 7).
fn rgb(from: &[u8]) -> [u8; 4] {
    let [y, cb, cr] = [0, 1, 2].map(|at| f32::from(from[at]));
    let (cb, cr) = (cb - 128.0, cr - 128.0);
    let byte = |value: f32| value.round().clamp(0.0, 255.0) as u8;
    let (red, blue) = (y + 1.402 * cr, y + 1.772 * cb);
    [byte(red), byte(y - 0.344_136 * cb - 0.714_136 * cr), byte(blue), 255]
}

impl Pixels {
    /// Makes it empty, with room for a window of this size.
    pub(crate) fn begin(&mut self, (width, height): (u32, u32)) {
        self.rgba.clear();
        self.rgba.reserve(4 * width as usize * height as usize);
        (self.width, self.height) = (width, height);
    }
}
