//! TIFF with overviews and with palettes.

use super::*;
use ::tiff::decoder::Decoder;
use ::tiff::encoder::{Compression, DeflateLevel, TiffEncoder, colortype};
use ::tiff::tags::{PhotometricInterpretation, SampleFormat, Tag};
use std::cell::RefCell;
use std::io::{self, Cursor, Seek, SeekFrom, Write};
use std::rc::Rc;

/// A picture whose samples are indices.
struct Index8;

impl colortype::ColorType for Index8 {
    type Inner = u8;
    const TIFF_VALUE: PhotometricInterpretation = PhotometricInterpretation::RGBPalette;
    const BITS_PER_SAMPLE: &'static [u16] = &[8];
    const SAMPLE_FORMAT: &'static [SampleFormat] = &[SampleFormat::Uint];

    fn horizontal_predict(row: &[u8], result: &mut Vec<u8>) {
        result.extend_from_slice(row);
    }
}

/// A TIFF with a palette. `colours` are 256 of three bytes.
pub(super) fn indexed(
    (width, height): (u32, u32),
    rows: &[u8],
    colours: &[u8],
    strip: u32,
) -> Vec<u8> {
    let mut file = Cursor::new(Vec::new());
    let coding = Compression::Deflate(DeflateLevel::Fast);
    let mut encoder = TiffEncoder::new(&mut file).unwrap().with_compression(coding);
    let mut image = encoder.new_image::<Index8>(width, height).unwrap();
    image.rows_per_strip(strip).unwrap();
    let map = (0..3).flat_map(|at| colours.iter().skip(at).step_by(3));
    let map: Vec<u16> = map.map(|&byte| u16::from(byte) << 8).collect();
    image.encoder().write_tag(Tag::ColorMap, &map[..]).unwrap();
    image.write_data(rows).unwrap();
    file.into_inner()
}

/// How the pictures of a file are coded.
#[derive(Clone, Copy, Debug)]
pub(super) enum Coding {
    Plain,
    Deflate,
}

/// Where the directories of overviews are named.
#[derive(Clone, Copy, Debug)]
pub(super) enum Place {
    /// Behind that of the picture.
    Behind,
    /// In that of the picture.
    Inner,
}

/// A picture of 61 x 47 pixels with overviews that show something else, so that it is seen which of them is used.
pub(super) struct Pyramid {
    pub(super) file: Vec<u8>,
    /// The picture, and its overviews.
    levels: [Made; 3],
}

/// Of how many pixels, in both directions, the levels have one.
const FACTORS: [u32; 3] = [1, 2, 4];
/// A picture of its own, an overview, and the opacity of another picture (TIFF 6.0, NewSubfileType).
const PAGE: u32 = 0;
const REDUCED: u32 = 1;
const MASK: u32 = 4;

/// A file that can be looked at while it is written.
#[derive(Clone, Default)]
struct Shared(Rc<RefCell<Cursor<Vec<u8>>>>);

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.borrow_mut().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Seek for Shared {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.0.borrow_mut().seek(to)
    }
}

impl Shared {
    fn bytes(&self) -> Vec<u8> {
        self.0.borrow().get_ref().clone()
    }

    /// The places of the directories, one after the other.
    fn directories(&self) -> Vec<u32> {
        let mut decoder = Decoder::new(Cursor::new(self.bytes())).unwrap();
        let mut places = Vec::new();
        loop {
            places.push(decoder.ifd_pointer().unwrap().0 as u32);
            if !decoder.more_images() {
                return places;
            }
            decoder.next_image().unwrap();
        }
    }
}

/// Writes a picture whose rows are in its `file`. `inner` are places of the directories of its overviews.
fn write(encoder: &mut TiffEncoder<Shared>, picture: &Made, kind: u32, inner: &[u32]) {
    let mut image = encoder.new_image::<colortype::RGB8>(picture.width, picture.height).unwrap();
    image.rows_per_strip(8).unwrap();
    image.encoder().write_tag(Tag::NewSubfileType, kind).unwrap();
    if !inner.is_empty() {
        image.encoder().write_tag(Tag::SubIfd, inner).unwrap();
    }
    image.write_data(&picture.file).unwrap();
}

/// One of the levels: its samples differ from those of the others.
fn level(factor: u32) -> Made {
    let (width, height) = (61u32.div_ceil(factor), 47u32.div_ceil(factor));
    let skipped = 1000 * factor as usize;
    let bytes = (0..(3 * width * height) as usize).map(|at| sample(at + skipped));
    let rgb: Vec<u8> = bytes.collect();
    let rgba = rgb.chunks_exact(3).flat_map(|pixel| [pixel[0], pixel[1], pixel[2], 255]);
    Made { width, height, rgba: rgba.collect(), file: rgb }
}

impl Pyramid {
    pub(super) fn new(coding: Coding, place: Place) -> Self {
        let levels = FACTORS.map(level);
        let [picture, half, quarter] = &levels;
        let mask = level(3);
        let shared = Shared::default();
        let mut encoder = TiffEncoder::new(shared.clone()).unwrap();
        if let Coding::Deflate = coding {
            encoder = encoder.with_compression(Compression::Deflate(DeflateLevel::Fast));
        }
        let file = match place {
            Place::Behind => {
                write(&mut encoder, picture, PAGE, &[]);
                write(&mut encoder, &mask, MASK, &[]);
                write(&mut encoder, half, REDUCED, &[]);
                write(&mut encoder, quarter, REDUCED, &[]);
                // Another page and its overview.
                write(&mut encoder, &mask, PAGE, &[]);
                write(&mut encoder, &mask, REDUCED, &[]);
                shared.bytes()
            }
            Place::Inner => {
                write(&mut encoder, half, REDUCED, &[]);
                write(&mut encoder, quarter, REDUCED, &[]);
                let inner = shared.directories();
                write(&mut encoder, picture, PAGE, &inner);
                // The first directory of the file is that of the picture.
                let first = shared.directories()[2];
                let mut file = shared.bytes();
                file[4..8].copy_from_slice(&first.to_ne_bytes());
                file
            }
        };
        Self { file, levels }
    }
}

#[test]
fn a_window_that_is_seen_smaller_comes_from_an_overview() {
    for coding in [Coding::Plain, Coding::Deflate] {
        for place in [Place::Behind, Place::Inner] {
            let name = format!("{coding:?} {place:?}");
            let Pyramid { file, levels: [picture, half, quarter] } = Pyramid::new(coding, place);
            let opened = open(&file).unwrap();
            let all = opened.size().all();
            let mut pixels = Pixels::default();
            let mut shown = |region: Region, step: u32, smaller: Smaller| {
                let part = Part { region, step: Step::new(step).unwrap(), smaller };
                opened.window(&file, part, &mut pixels).unwrap();
                assert_eq!((pixels.width, pixels.height), part.window(), "{name}");
                pixels.rgba.clone()
            };
            let whole = |made: &Made| Region { x: 0, y: 0, width: made.width, height: made.height };
            let part = Region { x: 6, y: 10, width: 20, height: 12 };
            for smaller in [Smaller::Pick, Smaller::Average] {
                assert!(shown(all, 1, smaller) == picture.rgba, "{name}");
                assert!(shown(all, 2, smaller) == half.rgba, "{name}");
                assert!(shown(all, 4, smaller) == quarter.rgba, "{name}");
                let wanted = half.window(Region { x: 3, y: 5, width: 10, height: 6 }, 1);
                assert!(shown(part, 2, smaller) == wanted, "{name}");
            }
            assert!(shown(all, 8, Smaller::Average) == quarter.averaged(whole(&quarter), 2));
            // Three pixels of the picture are one and a half of the overview.
            let odd = shown(Region { x: 0, y: 0, width: 12, height: 3 }, 3, Smaller::Pick);
            let columns = [0, 2, 3, 5].map(|x| Region { x, y: 0, width: 1, height: 1 });
            assert_eq!(odd, columns.map(|pixel| half.window(pixel, 1)).concat(), "{name}");
            let read = |step| {
                let part = Part { step: Step::new(step).unwrap(), ..Part::exact(all) };
                opened.pixels_for(&file, part).unwrap()
            };
            assert_eq!((read(1), read(2), read(4)), (61 * 47, 31 * 24, 16 * 12), "{name}");
        }
    }
}

#[test]
fn the_work_for_a_window_includes_what_is_decoded_beside_it() {
    let corner = Part::exact(Region { x: 0, y: 20, width: 1, height: 1 });
    let works = |file: Vec<u8>| {
        let opened = open(&file).unwrap();
        opened.work_for(&file, corner).unwrap()
    };
    let (rows, colours) = (vec![0; 64 * 48], vec![7; 768]);
    // One strip of sixteen rows, all of the picture, and nothing that is decoded.
    assert_eq!(works(indexed((64, 48), &rows, &colours, 16)), 64 * 16);
    assert_eq!(works(indexed((64, 48), &rows, &colours, 48)), 64 * 48);
    assert_eq!(works([b"P5 64 48 255\n".as_slice(), &rows].concat()), 1);
}

#[test]
fn overviews_that_are_damaged_are_left_out() {
    let Pyramid { file, levels: [_, half, _] } = Pyramid::new(Coding::Plain, Place::Inner);
    let shared = Shared(Rc::new(RefCell::new(Cursor::new(file.clone()))));
    let inner = Decoder::new(Cursor::new(file.clone())).unwrap().get_tag(Tag::SubIfd).unwrap();
    let inner: Vec<u8> =
        inner.into_u32_vec().unwrap().iter().flat_map(|place| place.to_ne_bytes()).collect();
    assert_eq!(shared.directories().len(), 1);
    let at = file.windows(inner.len()).position(|bytes| bytes == inner).unwrap();
    // The directory of the second overview leads nowhere, or into itself, or to the picture.
    let first = u32::from_ne_bytes(file[4..8].try_into().unwrap());
    for place in [0, 3, u32::MAX, first] {
        let mut broken = file.clone();
        broken[at + 4..at + 8].copy_from_slice(&place.to_ne_bytes());
        // The directory of the first one is followed by that of the second one, too.
        let half_at = u32::from_ne_bytes(file[at..at + 4].try_into().unwrap()) as usize;
        let entries = u16::from_ne_bytes(file[half_at..half_at + 2].try_into().unwrap());
        let next = half_at + 2 + 12 * usize::from(entries);
        broken[next..next + 4].copy_from_slice(&place.to_ne_bytes());
        let opened = open(&broken).unwrap();
        let step = Step::new(4).unwrap();
        let part = Part { step, ..Part::exact(opened.size().all()) };
        let mut pixels = Pixels::default();
        opened.window(&broken, part, &mut pixels).unwrap();
        let whole = Region { x: 0, y: 0, width: half.width, height: half.height };
        assert!(pixels.rgba == half.window(whole, 2), "{place}");
    }
}
