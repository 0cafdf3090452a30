//! A window of a frame, as it is shown.

use hikyaku_image_source::{Hints, ImageError, Part, Picture, Pixels};
use hikyaku_remote::Coding;

/// A window of a frame.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Window {
    Pixels(Pixels),
    /// As a server has coded it.
    Coded(Coding, Vec<u8>),
}

impl Window {
    /// The bytes, as they go to the page.
    pub(crate) fn bytes(&self) -> &[u8] {
        match self {
            Self::Pixels(pixels) => &pixels.rgba,
            Self::Coded(_, bytes) => bytes,
        }
    }

    /// Their type (RFC 9110, section 8.3).
    pub(crate) const fn kind(&self) -> &'static str {
        match self {
            Self::Pixels(_) => "application/octet-stream",
            Self::Coded(Coding::Jpeg(_), _) => "image/jpeg",
            Self::Coded(Coding::Png, _) => "image/png",
        }
    }

    /// The size in pixels, and the pixels decoded if they are coded.
    pub(crate) fn size(&self) -> Result<(u32, u32), ImageError> {
        match self {
            Self::Pixels(pixels) => Ok((pixels.width, pixels.height)),
            Self::Coded(_, bytes) => {
                let picture = Picture::open(bytes, Hints::default())?;
                let mut pixels = Pixels::default();
                picture.window(bytes, Part::exact(picture.size().all()), &mut pixels)?;
                Ok((pixels.width, pixels.height))
            }
        }
    }
}
