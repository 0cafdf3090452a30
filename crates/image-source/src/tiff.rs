//! TIFF and BigTIFF: the first picture of a file, in strips or tiles, and its overviews.
//!
//! Strips and tiles that are not compressed are read where they lie. Others are decoded, those that the window needs and no
//! others, by the crate `tiff`. A window that is seen smaller is made from the smallest overview that has enough pixels. The
//! crate reads the first directory of a file and those behind it, so for an overview the decoder sees another place of the
//! first directory ([`head::begins_at`]).

mod coded;
mod head;

use crate::error::ImageError;
use crate::geometry::{Part, Size, Step};
use crate::number::{Levels, Tone};
use crate::overview;
use crate::pixels::{Pixels, Samples};
use crate::ranges::Ranges;
use crate::rows::{Place, Rows, Tiles, Window};
use crate::sparse::{Overlay, Pieces, Sparse};
use coded::Coded;
use head::{Head, Role};
use std::collections::{HashSet, VecDeque};
use std::sync::{Arc, OnceLock};
use tiff::TiffError;
use tiff::tags::CompressionMethod;

/// The first picture of a file.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Tiff {
    image: Image,
    /// The levels between which it is shown, if it is shown between levels.
    levels: Option<Levels>,
    /// Where directories lie that may be of overviews.
    others: Vec<u64>,
    /// The overviews, once they have been read.
    overviews: OnceLock<Arc<[Overview]>>,
}

/// A smaller picture of the same scene.
#[derive(Clone, PartialEq, Debug)]
struct Overview {
    image: Image,
    /// Of how many pixels, in both directions, it has one.
    factor: u32,
}

/// One picture of a file.
#[derive(Clone, PartialEq, Debug)]
enum Image {
    /// Its rows lie at known places.
    Placed(Rows),
    /// Its strips or tiles are decoded.
    Coded(Coded),
}

/// The first bytes of every file.
pub(crate) const SIGNATURES: [&[u8]; 4] = [b"II*\0", b"MM\0*", b"II+\0", b"MM\0+"];
/// Bytes that are read of a file to know where the tiles of the picture lie, and as many again for all overviews.
const HEAD_BYTES_MAX: u64 = 4 << 20;
/// Directories that are read to find overviews.
const DIRECTORIES_MAX: usize = 32;

impl Tiff {
    /// Reads the head of a file. `levels` are those that the user wants.
    // fuzz: pictures
    pub(crate) fn open(bytes: &dyn Ranges, levels: Option<Levels>) -> Result<Self, ImageError> {
        let file = Sparse::new(bytes, Pieces::new(), HEAD_BYTES_MAX);
        let head = Head::read(&file)?;
        let image = Image::open((bytes, file), &head, Vec::new(), levels)?;
        let levels = levels.or_else(|| image.samples().levels());
        Ok(Self { image, levels, others: head.others, overviews: OnceLock::new() })
    }

    pub(crate) const fn size(&self) -> Size {
        self.image.size()
    }

    pub(crate) const fn is_placed(&self) -> bool {
        matches!(self.image, Image::Placed(_))
    }

    /// Reads a window, from an overview if it has enough pixels.
    // fuzz: pictures
    pub(crate) fn window(
        &self,
        bytes: &dyn Ranges,
        part: Part,
        pixels: &mut Pixels,
    ) -> Result<(), ImageError> {
        let (image, taken, factor) = self.source(bytes, part)?;
        image.window(bytes, taken, pixels)?;
        if let Some(factor) = factor {
            overview::fit(part, factor, taken, pixels);
        }
        Ok(())
    }

    /// Pixels of the strips or tiles that are decoded for a window; `None` if nothing is decoded for it.
    pub(crate) fn decoded_for(
        &self,
        bytes: &dyn Ranges,
        part: Part,
    ) -> Result<Option<u64>, ImageError> {
        Ok(match self.source(bytes, part)? {
            (Image::Coded(coded), taken, _) => Some(coded.decoded_for(taken)),
            (Image::Placed(_), ..) => None,
        })
    }

    /// The picture from which a window is made, which part of it is taken, and the factor if it is an overview.
    fn source(
        &self,
        bytes: &dyn Ranges,
        part: Part,
    ) -> Result<(&Image, Part, Option<u32>), ImageError> {
        if let Some(Overview { image, factor }) = self.overview(bytes, part.step)? {
            let small = overview::part(part, *factor, image.size());
            if small.check(image.size()).is_ok() {
                return Ok((image, small, Some(*factor)));
            }
        }
        Ok((&self.image, part, None))
    }

    /// Of how many pixels, in both directions, the overview has one from which a window is made; 1 where it is made from the
    /// picture itself.
    pub(crate) fn factor(&self, bytes: &dyn Ranges, step: Step) -> Result<u32, ImageError> {
        Ok(self.overview(bytes, step)?.map_or(1, |overview| overview.factor))
    }

    /// The smallest overview that has a pixel for each square of this side.
    fn overview(&self, bytes: &dyn Ranges, step: Step) -> Result<Option<&Overview>, ImageError> {
        if step == Step::ALL || self.others.is_empty() {
            return Ok(None);
        }
        let overviews = match self.overviews.get() {
            Some(overviews) => overviews,
            None => {
                let found = self.find(bytes)?;
                self.overviews.get_or_init(|| found.into())
            }
        };
        let fine = overviews.iter().filter(|overview| overview.factor <= step.get());
        Ok(fine.max_by_key(|overview| overview.factor))
    }

    /// Reads the directories of the overviews. Those that are damaged or not supported are left out.
    // fuzz: pictures
    fn find(&self, bytes: &dyn Ranges) -> Result<Vec<Overview>, ImageError> {
        let mut pieces = match &self.image {
            Image::Placed(_) => Pieces::new(),
            Image::Coded(coded) => coded.head.clone(),
        };
        let (mut budget, mut found) = (HEAD_BYTES_MAX, Vec::new());
        let mut places: VecDeque<u64> = self.others.iter().copied().collect();
        let mut seen = HashSet::new();
        while let Some(place) = places.pop_front()
            && seen.len() < DIRECTORIES_MAX
        {
            if place == 0 || !seen.insert(place) {
                continue;
            }
            let file = Sparse::new(bytes, pieces, budget);
            let overlays = vec![head::begins_at(&file, place)?];
            let file = file.overlaid(&overlays);
            let read = Head::read(&file);
            budget = file.budget();
            pieces = file.into_pieces();
            let head = match read {
                Ok(head) => head,
                Err(error @ ImageError::Read(_)) => return Err(error),
                Err(_) => continue,
            };
            match head.role() {
                // Other pictures follow, and their overviews.
                Role::Page => continue,
                Role::Mask => {}
                Role::Reduced => {
                    let file = Sparse::new(bytes, pieces.clone(), budget).overlaid(&overlays);
                    match Image::open((bytes, file), &head, overlays, self.levels) {
                        Ok(image) => {
                            let factor = overview::factor(self.size(), image.size());
                            found.extend(factor.map(|factor| Overview { image, factor }));
                        }
                        Err(error @ ImageError::Read(_)) => return Err(error),
                        Err(_) => {}
                    }
                }
            }
            places.extend(head.others);
        }
        Ok(found)
    }
}

impl Image {
    /// A picture whose directory has been read from `file`, of which the decoder sees `overlays`.
    // fuzz: pictures
    fn open(
        (bytes, file): (&dyn Ranges, Sparse<'_>),
        head: &Head,
        mut overlays: Vec<Overlay>,
        levels: Option<Levels>,
    ) -> Result<Self, ImageError> {
        let size = Size::new(head.size.0, head.size.1)?;
        let (width, height) = (head.tile.0.min(size.width), head.tile.1.min(size.height));
        // Strips are as wide as the picture; a tile may be wider.
        let width = if head.is_tiled { head.tile.0 } else { width };
        let tiles = Tiles { offsets: head.offsets.clone().into(), width, height };
        if width == 0 || height == 0 {
            return Err(ImageError::Damaged("tiles without pixels"));
        }
        let count = u64::from(tiles.across(size.width)) * u64::from(size.height.div_ceil(height));
        if [head.offsets.len(), head.lengths.len()].iter().any(|&known| count > known as u64) {
            return Err(ImageError::Damaged("fewer tiles than the picture has"));
        }
        let samples = head.samples()?;
        if head.is_placed() {
            let rows = Rows { size, samples, place: Place::Tiled(tiles) };
            let rows = match (levels, head.needs_levels()) {
                (Some(levels), _) => {
                    let samples = samples.with_tone(Tone::plain(levels));
                    Rows { samples, ..rows }
                }
                (None, true) => {
                    let nothing = Tone::plain(Levels::around(std::iter::empty()));
                    rows.measured(bytes, nothing)?
                }
                (None, false) => rows,
            };
            return Ok(Self::Placed(rows));
        }
        let is_jpeg = head.compression == CompressionMethod::ModernJPEG.to_u16();
        if head.palette.is_some() {
            if is_jpeg || head.needs_levels() {
                return Err(ImageError::Unsupported("a TIFF with such a palette"));
            }
            overlays.push(head::grey(&file)?);
        }
        let mut coded = Coded {
            size,
            samples,
            palette: head.palette.clone(),
            head: file.into_pieces(),
            overlays,
            tiles,
            lengths: head.lengths.clone().into(),
            is_jpeg,
        };
        let levels = match (levels, head.needs_levels()) {
            // The bytes of a palette are no brightness.
            _ if head.palette.is_some() => None,
            (None, true) => Some(coded.levels(bytes)?),
            (levels, _) => levels,
        };
        if let Some(levels) = levels {
            coded.samples = samples.with_tone(Tone::plain(levels));
        }
        Ok(Self::Coded(coded))
    }

    const fn size(&self) -> Size {
        match self {
            Self::Placed(rows) => rows.size,
            Self::Coded(coded) => coded.size,
        }
    }

    const fn samples(&self) -> Samples {
        match self {
            Self::Placed(rows) => rows.samples,
            Self::Coded(coded) => coded.samples,
        }
    }

    // fuzz: pictures
    fn window(
        &self,
        bytes: &dyn Ranges,
        part: Part,
        pixels: &mut Pixels,
    ) -> Result<(), ImageError> {
        match self {
            Self::Placed(rows) => match rows.window(bytes, part, pixels)? {
                Window::Read => Ok(()),
                Window::Filtered => Err(ImageError::Damaged("rows with filters")),
            },
            Self::Coded(coded) => coded.window(bytes, part, pixels),
        }
    }
}

fn explain(error: &TiffError) -> ImageError {
    match error {
        TiffError::UnsupportedError(_) => ImageError::Unsupported("a TIFF of this kind"),
        TiffError::LimitsExceeded | TiffError::IntSizeError => {
            ImageError::Unsupported("a TIFF with such large parts")
        }
        TiffError::FormatError(_) | TiffError::IoError(_) | TiffError::UsageError(_) => {
            ImageError::Damaged("its data are no TIFF")
        }
    }
}
