//! Sizes of pictures, and parts of them.

use crate::error::ImageError;
use std::fmt;
use std::num::NonZeroU32;
use std::str::FromStr;

/// The size of a picture in pixels, neither of them 0.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Size {
    /// Pixels of a row.
    pub width: u32,
    /// Rows.
    pub height: u32,
}

/// A rectangle of a picture.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Region {
    /// Pixels of each row before it.
    pub x: u32,
    /// Rows above it.
    pub y: u32,
    /// Pixels of a row of it.
    pub width: u32,
    /// Rows of it.
    pub height: u32,
}

/// Of how many pixels, in both directions, one is taken. 1 takes all.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Step(NonZeroU32);

/// How a part of a picture is made smaller.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Smaller {
    /// The first pixel of each square is taken. Rows without such a pixel are not read.
    Pick,
    /// All pixels of each square are averaged.
    Average,
}

/// A part of a picture, and how it is made smaller.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Part {
    /// Where it is.
    pub region: Region,
    /// The side of the squares of which one pixel is shown.
    pub step: Step,
    /// Which pixel that is.
    pub smaller: Smaller,
}

/// Pixels that a window may have: 64 Mi, which are 256 MiB.
pub const WINDOW_PIXELS_MAX: u64 = 64 << 20;

/// The largest square of pixels that are averaged has this side.
const AVERAGED_STEP_MAX: u32 = 1024;
/// Pixels that a row of a picture may have.
const WIDTH_MAX: u32 = 1 << 20;
/// Pixels that a picture may have.
const PIXELS_MAX: u64 = 1 << 34;

impl Size {
    /// The size that a file claims, within the bounds: a row of at most 2^20 pixels, a picture of at most 2^34.
    ///
    /// # Errors
    ///
    /// It is larger, or 0 in one direction.
    pub fn new(width: u32, height: u32) -> Result<Self, ImageError> {
        if width == 0 || height == 0 {
            return Err(ImageError::Damaged("a picture without pixels"));
        }
        match width <= WIDTH_MAX && u64::from(width) * u64::from(height) <= PIXELS_MAX {
            true => Ok(Self { width, height }),
            false => Err(ImageError::TooLarge { width, height }),
        }
    }

    /// All of the picture.
    pub const fn all(self) -> Region {
        Region { x: 0, y: 0, width: self.width, height: self.height }
    }

    /// The part of `region` that lies in the picture; `None` if there is none.
    pub fn clip(self, region: Region) -> Option<Region> {
        let cut = |at: u32, length: u32, limit: u32| {
            (length > 0 && at < limit).then(|| length.min(limit - at))
        };
        let width = cut(region.x, region.width, self.width)?;
        let height = cut(region.y, region.height, self.height)?;
        Some(Region { width, height, ..region })
    }
}

impl Region {
    /// The size of its window with this step. Squares at the right and lower edge may be cut off.
    pub const fn window(self, step: Step) -> (u32, u32) {
        (self.width.div_ceil(step.get()), self.height.div_ceil(step.get()))
    }
}

impl Part {
    /// A region, pixel by pixel.
    pub const fn exact(region: Region) -> Self {
        Self { region, step: Step::ALL, smaller: Smaller::Pick }
    }

    /// The size of its window.
    pub const fn window(self) -> (u32, u32) {
        self.region.window(self.step)
    }

    /// An error unless it lies in a picture of this size and its window is not too large.
    pub(crate) fn check(self, size: Size) -> Result<(), ImageError> {
        let (width, height) = self.window();
        let is_small = u64::from(width) * u64::from(height) <= WINDOW_PIXELS_MAX;
        let is_summed = !self.is_averaged() || self.step.get() <= AVERAGED_STEP_MAX;
        match size.clip(self.region) == Some(self.region) && is_small && is_summed {
            true => Ok(()),
            false => Err(ImageError::NoWindow(self.region.to_string())),
        }
    }

    /// Whether several pixels make one.
    pub(crate) fn is_averaged(self) -> bool {
        self.smaller == Smaller::Average && self.step.get() > 1
    }

    /// The rows of the picture that are read for it.
    pub(crate) fn rows(self) -> std::iter::StepBy<std::ops::Range<u32>> {
        let step = if self.is_averaged() { 1 } else { self.step.get() };
        (self.region.y..self.region.y + self.region.height).step_by(step as usize)
    }

    /// Whether this row of the picture is among them.
    pub(crate) fn has_row(self, y: u32) -> bool {
        let inside = y.checked_sub(self.region.y).filter(|&row| row < self.region.height);
        inside.is_some_and(|row| self.is_averaged() || row.is_multiple_of(self.step.get()))
    }
}

impl Step {
    /// Takes every pixel.
    pub const ALL: Self = Self(NonZeroU32::MIN);

    /// `None` for 0.
    pub fn new(step: u32) -> Option<Self> {
        NonZeroU32::new(step).map(Self)
    }

    /// The number.
    pub const fn get(self) -> u32 {
        self.0.get()
    }
}

impl fmt::Display for Region {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{},{},{}x{}", self.x, self.y, self.width, self.height)
    }
}

/// The text is no region.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("expected X,Y,WIDTHxHEIGHT, as in 3580,4420,3840x2160")]
pub struct NotARegion;

impl FromStr for Region {
    type Err = NotARegion;

    // fuzz: none, the user's own words
    fn from_str(text: &str) -> Result<Self, NotARegion> {
        let mut parts = text.splitn(3, ',');
        let mut number = || parts.next()?.trim().parse().ok();
        let (x, y) = (number().ok_or(NotARegion)?, number().ok_or(NotARegion)?);
        let size = parts.next().and_then(|size| size.split_once('x')).ok_or(NotARegion)?;
        let number = |text: &str| text.trim().parse::<u32>().ok().filter(|&number| number > 0);
        let (width, height) = number(size.0).zip(number(size.1)).ok_or(NotARegion)?;
        Ok(Self { x, y, width, height })
    }
}
