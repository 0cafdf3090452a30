//! Why there is no window of a picture.

use crate::ranges::ReadFailed;

/// Why a picture cannot be opened, or a window of it cannot be read.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ImageError {
    /// The bytes cannot be read.
    #[error(transparent)]
    Read(#[from] ReadFailed),
    /// The file is none of the formats.
    #[error("not a picture of a known format (PNG, TIFF, JPEG, FITS, PNM, or raw with --raw)")]
    UnknownFormat,
    /// The picture is of a kind that is not supported.
    #[error("{0} is not supported")]
    Unsupported(&'static str),
    /// The file breaks the rules of its format.
    #[error("damaged: {0}")]
    Damaged(&'static str),
    /// The picture is larger than the bounds.
    #[error("the picture has {width} x {height} pixels, which is more than is supported")]
    TooLarge {
        /// Pixels of a row.
        width: u32,
        /// Rows.
        height: u32,
    },
    /// The window is empty, outside the picture, or larger than [`WINDOW_PIXELS_MAX`](crate::WINDOW_PIXELS_MAX).
    #[error("the window {0} is not within the picture, or too large")]
    NoWindow(String),
}
