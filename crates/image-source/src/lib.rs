//! Windows of very large pictures.
//!
//! A [`Picture`] knows from the head of a file where its rows lie. A window is read from the ranges of the file that it
//! needs where rows lie at known places: PNG of stored blocks, PNM, FITS, TIFF without compression, raw. A compressed PNG is
//! decoded from its first row to the last row of the window, of a compressed TIFF the strips or tiles of the window are
//! decoded, and a JPEG and an interlaced PNG are decoded whole. A smaller window of a TIFF with overviews is made from one of
//! them. The bytes come from a [`Ranges`]: a file of this machine, or one behind a daemon.
//!
//! Pictures come from strangers. The head of a file is checked before anything is allocated for it, and the bounds are in
//! [`Size`] and [`WINDOW_PIXELS_MAX`]. No picture causes a panic.
#![forbid(unsafe_code)]

mod coded;
mod decode;
mod error;
mod fits;
mod geometry;
mod jpeg;
mod number;
mod overview;
mod painter;
mod palette;
mod picture;
mod pixels;
mod placed;
mod png_stored;
mod pnm;
mod ranges;
mod room;
mod rows;
mod sparse;
mod tiff;

pub use error::ImageError;
pub use geometry::{NotARegion, Part, Region, Size, Smaller, Step, WINDOW_PIXELS_MAX};
pub use number::{Levels, NotLevels};
pub use picture::{Hints, Picture};
pub use pixels::{Pixels, Samples};
pub use ranges::{FarFile, LocalFile, Picking, Ranges, ReadFailed, StoreFile};
pub use rows::{NotAShape, RawShape};

#[cfg(test)]
mod tests;
