//! Windows of very large pictures.
//!
//! A [`Picture`] knows from the head of a file where its rows lie. A window is read from the ranges of the file that it
//! needs where rows lie at known places (PNG of stored blocks, PNM, raw), and by decoding from the first row to the last
//! row of the window where they do not (PNG that is compressed). The bytes come from a [`Ranges`]: a file of this machine,
//! or one behind a daemon.
//!
//! Pictures come from strangers. The head of a file is checked before anything is allocated for it, and the bounds are in
//! [`Size`] and [`WINDOW_PIXELS_MAX`]. No picture causes a panic.
#![forbid(unsafe_code)]

mod decode;
mod error;
mod geometry;
mod picture;
mod pixels;
mod placed;
mod png_stored;
mod pnm;
mod ranges;
mod rows;

pub use error::ImageError;
pub use geometry::{NotARegion, Region, Size, Step, WINDOW_PIXELS_MAX};
pub use picture::Picture;
pub use pixels::{Pixels, Samples};
pub use ranges::{FarFile, LocalFile, Picking, Ranges, ReadFailed};
pub use rows::{NotAShape, RawShape};

#[cfg(test)]
mod tests;
