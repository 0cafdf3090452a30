//! Numbers as files store them, and which of them are black and white.

use std::str::FromStr;

/// A kind of number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Number {
    U8,
    I8,
    U16,
    I16,
    U32,
    I32,
    U64,
    I64,
    F32,
    F64,
}

/// The order of the bytes of a number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Order {
    Big,
    Little,
}

/// The values that are shown as black and as white.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Levels {
    low: f64,
    high: f64,
}

/// How numbers of a file become what is shown: `zero + scale * number` is compared with the levels.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Tone {
    pub(crate) levels: Levels,
    pub(crate) scale: f64,
    pub(crate) zero: f64,
    /// The number that stands for no value, which is shown black.
    pub(crate) blank: Option<f64>,
}

impl Number {
    pub(crate) const fn bytes(self) -> usize {
        match self {
            Self::U8 | Self::I8 => 1,
            Self::U16 | Self::I16 => 2,
            Self::U32 | Self::I32 | Self::F32 => 4,
            Self::U64 | Self::I64 | Self::F64 => 8,
        }
    }

    /// The number whose bytes `from` begins with.
    pub(crate) fn value(self, order: Order, from: &[u8]) -> f64 {
        let mut all = [0; 8];
        let count = self.bytes();
        let bytes = &mut all[..count];
        bytes.copy_from_slice(&from[..count]);
        if order == Order::Big {
            bytes.reverse();
        }
        let whole = u64::from_le_bytes(all);
        match self {
            Self::U8 | Self::U16 | Self::U32 | Self::U64 => whole as f64,
            Self::I8 => f64::from(whole as i8),
            Self::I16 => f64::from(whole as i16),
            Self::I32 => f64::from(whole as i32),
            Self::I64 => whole as i64 as f64,
            Self::F32 => f64::from(f32::from_bits(whole as u32)),
            Self::F64 => f64::from_bits(whole),
        }
    }
}

impl Order {
    /// That of this machine.
    pub(crate) const NATIVE: Self =
        if cfg!(target_endian = "big") { Self::Big } else { Self::Little };

    /// Which of the two bytes of a number of 16 bits is the upper one.
    pub(crate) const fn upper(self) -> usize {
        match self {
            Self::Big => 0,
            Self::Little => 1,
        }
    }
}

impl Tone {
    /// Levels for numbers that mean themselves.
    pub(crate) const fn plain(levels: Levels) -> Self {
        Self { levels, scale: 1.0, zero: 0.0, blank: None }
    }

    /// The physical value of a number of the file; NaN for one that stands for no value.
    pub(crate) fn physical(self, number: f64) -> f64 {
        match self.blank {
            Some(blank) if blank == number => f64::NAN,
            _ => self.zero + self.scale * number,
        }
    }

    /// How a number of the file is shown.
    pub(crate) fn shown(self, number: f64) -> u8 {
        let Levels { low, high } = self.levels;
        let part = (self.physical(number) - low) / (high - low);
        // NaN is shown as 0.
        (256.0 * part).clamp(0.0, 255.0) as u8
    }
}

/// The part of all values that are darker than black, and brighter than white, where the levels are taken from them.
const BEYOND: f64 = 0.005;

impl Levels {
    /// `None` unless `low` is below `high`, and both are finite.
    pub fn new(low: f64, high: f64) -> Option<Self> {
        let is_right = low < high && (high - low).is_finite();
        is_right.then_some(Self { low, high })
    }

    /// The value that is shown as black, and the one that is shown as white.
    pub const fn ends(self) -> (f64, f64) {
        (self.low, self.high)
    }

    /// The levels between which almost all of these values lie.
    pub(crate) fn around(values: impl Iterator<Item = f64>) -> Self {
        let mut values: Vec<f64> = values.filter(|value| value.is_finite()).collect();
        values.sort_by(f64::total_cmp);
        let last = values.len().saturating_sub(1);
        let beyond = (last as f64 * BEYOND) as usize;
        let at = |index: usize| values.get(index).copied().unwrap_or_default();
        let (first, end) = (at(0), at(last));
        Self::new(at(beyond), at(last - beyond))
            .or_else(|| Self::new(first, end))
            .unwrap_or_else(|| Self { low: first.min(0.0), high: first.max(1.0) })
    }
}

/// The text is no pair of levels.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("expected LOW,HIGH, the values that are shown as black and white, as in 0,4095")]
pub struct NotLevels;

impl FromStr for Levels {
    type Err = NotLevels;

    // fuzz: none, the user's own words
    fn from_str(text: &str) -> Result<Self, NotLevels> {
        let (low, high) = text.split_once(',').ok_or(NotLevels)?;
        let number = |text: &str| text.trim().parse::<f64>().map_err(|_| NotLevels);
        Self::new(number(low)?, number(high)?).ok_or(NotLevels)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_in_both_orders() {
        let both = |number: Number, bytes: &[u8]| {
            let mut turned = bytes.to_vec();
            turned.reverse();
            let value = number.value(Order::Big, bytes);
            assert_eq!(value, number.value(Order::Little, &turned), "{number:?}");
            value
        };
        assert_eq!(both(Number::U8, &[200]), 200.0);
        assert_eq!(both(Number::I8, &[200]), -56.0);
        assert_eq!(both(Number::U16, &[1, 2]), 258.0);
        assert_eq!(both(Number::I16, &[255, 254]), -2.0);
        assert_eq!(both(Number::I32, &[255, 255, 255, 0]), -256.0);
        assert_eq!(both(Number::U64, &[0, 0, 0, 1, 0, 0, 0, 0]), 4_294_967_296.0);
        assert_eq!(both(Number::I64, &[255; 8]), -1.0);
        assert_eq!(both(Number::F32, &1.5f32.to_be_bytes()), 1.5);
        assert_eq!(both(Number::F64, &(-2.25f64).to_be_bytes()), -2.25);
    }

    #[test]
    fn levels_are_black_and_white() {
        let tone =
            Tone { levels: "100,300".parse().unwrap(), scale: 2.0, zero: 100.0, blank: Some(-5.0) };
        assert_eq!([0.0, 50.0, 100.0, 1e9, -1e9].map(|n| tone.shown(n)), [0, 128, 255, 255, 0]);
        assert_eq!([f64::NAN, -5.0].map(|number| tone.shown(number)), [0, 0]);
        for bad in ["", "1", "2,1", "1,1", "a,b", "nan,1", "-inf,1", "-1e308,1e308"] {
            assert_eq!(bad.parse::<Levels>(), Err(NotLevels), "{bad}");
        }
    }

    #[test]
    fn levels_leave_out_the_few_values_far_away() {
        let values = (0..1000).map(f64::from).chain([1e30, f64::NAN, f64::INFINITY]);
        assert_eq!(Levels::around(values).ends(), (5.0, 995.0));
        assert_eq!(Levels::around([7.0, 7.0, 9.0].into_iter()).ends(), (7.0, 9.0));
        assert_eq!(Levels::around([7.0].into_iter()).ends(), (0.0, 7.0));
        assert_eq!(Levels::around(std::iter::empty()).ends(), (0.0, 1.0));
    }
}
