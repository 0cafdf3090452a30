//! Windows as JPEG or PNG, to be sent or shown elsewhere.

use crate::error::ImageError;
use crate::pixels::Pixels;
use hikyaku_remote::Coding;
use jpeg_encoder::{ColorType, Encoder};
use png::{BitDepth, Compression};

impl Pixels {
    /// Codes the window. JPEG has no opacity.
    ///
    /// # Errors
    ///
    /// It is empty, or larger than a JPEG may be.
    pub fn encode(&self, coding: Coding) -> Result<Vec<u8>, ImageError> {
        let too_large = || ImageError::TooLarge { width: self.width, height: self.height };
        match coding {
            Coding::Jpeg(quality) => {
                let side = |pixels: u32| u16::try_from(pixels).map_err(|_| too_large());
                let (width, height) = (side(self.width)?, side(self.height)?);
                let mut coded = Vec::new();
                let encoder = Encoder::new(&mut coded, quality.clamp(1, 100));
                let done = encoder.encode(&self.rgba, width, height, ColorType::Rgba);
                done.map_err(|_| too_large()).map(|()| coded)
            }
            Coding::Png => self.png().ok_or_else(too_large),
        }
    }

    /// As PNG: grey where all pixels are, without opacity where all are opaque.
    fn png(&self) -> Option<Vec<u8>> {
        let pixels = || self.rgba.chunks_exact(4);
        let is_opaque = pixels().all(|pixel| pixel[3] == 255);
        let is_grey =
            is_opaque && pixels().all(|pixel| pixel[0] == pixel[1] && pixel[1] == pixel[2]);
        let (colour, channels) = match (is_grey, is_opaque) {
            (true, _) => (png::ColorType::Grayscale, 1),
            (false, true) => (png::ColorType::Rgb, 3),
            (false, false) => (png::ColorType::Rgba, 4),
        };
        let packed;
        let rows = if channels == 4 {
            &self.rgba
        } else {
            packed = pixels().flat_map(|pixel| &pixel[..channels]).copied().collect();
            &packed
        };
        let mut coded = Vec::new();
        let mut encoder = png::Encoder::new(&mut coded, self.width, self.height);
        encoder.set_color(colour);
        encoder.set_depth(BitDepth::Eight);
        encoder.set_compression(Compression::Fast);
        let written = encoder.write_header().and_then(|mut writer| writer.write_image_data(rows));
        written.ok().map(|()| coded)
    }
}
