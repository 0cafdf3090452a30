//! Windows against whole pictures, for each format.

mod overviews;
mod scientific;

use super::*;

/// A picture whose bytes are computed, and its file.
struct Made {
    width: u32,
    height: u32,
    /// As they are shown.
    rgba: Vec<u8>,
    file: Vec<u8>,
}

fn sample(at: usize) -> u8 {
    (at.wrapping_mul(0x9e37_79b1) >> 11) as u8
}

impl Made {
    /// A picture of samples of one byte, written by `write` from its rows.
    fn new(
        (width, height, channels): (u32, u32, usize),
        write: impl FnOnce(&[u8]) -> Vec<u8>,
    ) -> Self {
        let count = width as usize * height as usize;
        let bytes: Vec<u8> = (0..count * channels).map(sample).collect();
        let rgba = bytes.chunks_exact(channels).flat_map(|pixel| match *pixel {
            [grey] => [grey, grey, grey, 255],
            [grey, alpha] => [grey, grey, grey, alpha],
            [r, g, b] => [r, g, b, 255],
            [r, g, b, a] => [r, g, b, a],
            _ => panic!("{channels} channels"),
        });
        Self { width, height, rgba: rgba.collect(), file: write(&bytes) }
    }

    /// The window by taking it out of the whole picture.
    fn window(&self, region: Region, step: u32) -> Vec<u8> {
        let rows = (region.y..region.y + region.height).step_by(step as usize);
        let at = |x: u32, y: u32| 4 * (y as usize * self.width as usize + x as usize);
        let row = |y| {
            let columns = (region.x..region.x + region.width).step_by(step as usize);
            columns.flat_map(move |x| &self.rgba[at(x, y)..at(x, y) + 4])
        };
        rows.flat_map(row).copied().collect()
    }

    /// The window by averaging squares of the whole picture.
    fn averaged(&self, region: Region, step: u32) -> Vec<u8> {
        let mut window = Vec::new();
        for y in (region.y..region.y + region.height).step_by(step as usize) {
            for x in (region.x..region.x + region.width).step_by(step as usize) {
                let square = Region {
                    x,
                    y,
                    width: step.min(region.x + region.width - x),
                    height: step.min(region.y + region.height - y),
                };
                let pixels = self.window(square, 1);
                let count = u32::try_from(pixels.len() / 4).unwrap();
                window.extend((0..4).map(|channel| {
                    let sum: u32 =
                        pixels.iter().skip(channel).step_by(4).map(|&b| u32::from(b)).sum();
                    ((sum + count / 2) / count) as u8
                }));
            }
        }
        window
    }

    fn check(&self, picture: &Picture, name: &str) {
        let size = picture.size();
        assert_eq!((size.width, size.height), (self.width, self.height), "{name}");
        let mut rng = fastrand::Rng::with_seed(7);
        let mut pixels = Pixels::default();
        for turn in 0..40 {
            let (x, y) = (rng.u32(..self.width), rng.u32(..self.height));
            let region = match turn {
                0 => size.all(),
                _ => Region {
                    x,
                    y,
                    width: rng.u32(1..=self.width - x),
                    height: rng.u32(1..=self.height - y),
                },
            };
            let step = [1, 1, 2, 3, 7][turn % 5];
            let smaller = [Smaller::Pick, Smaller::Average][turn / 5 % 2];
            let part = Part { region, step: Step::new(step).unwrap(), smaller };
            picture.window(&self.file, part, &mut pixels).unwrap();
            let (width, height) = (region.width.div_ceil(step), region.height.div_ceil(step));
            assert_eq!((pixels.width, pixels.height), (width, height), "{name} {region}");
            let wanted = match smaller {
                Smaller::Pick => self.window(region, step),
                Smaller::Average => self.averaged(region, step),
            };
            assert!(pixels.rgba == wanted, "{name} {region} step {step} {smaller:?}");
        }
    }
}

fn open(file: &Vec<u8>) -> Result<Picture, ImageError> {
    Picture::open(file, Hints::default())
}

/// A PNG, as the crate `png` writes it.
fn png(
    (width, height, channels): (u32, u32, usize),
    rows: &[u8],
    compression: png::Compression,
    filter: png::Filter,
) -> Vec<u8> {
    use png::ColorType::{Grayscale, GrayscaleAlpha, Rgb, Rgba};
    let mut file = Vec::new();
    let mut encoder = png::Encoder::new(&mut file, width, height);
    encoder.set_color([Grayscale, GrayscaleAlpha, Rgb, Rgba][channels - 1]);
    encoder.set_depth(png::BitDepth::Eight);
    encoder.set_compression(compression);
    encoder.set_filter(filter);
    encoder.write_header().unwrap().write_image_data(rows).unwrap();
    file
}

/// A PNG of stored blocks of `block` bytes in chunks of `chunk` bytes, each row with this filter byte.
fn stored(
    (width, height, channels): (u32, u32, usize),
    rows: &[u8],
    lengths: (usize, usize),
    filter: u8,
) -> Vec<u8> {
    let mut plain = Vec::new();
    for row in rows.chunks_exact(width as usize * channels) {
        plain.push(filter);
        plain.extend_from_slice(row);
    }
    stored_data((width, height), ([0, 4, 2, 6][channels - 1], 0), &plain, lengths)
}

/// A PNG of rows with their filter bytes. The colour type and the interlace method are those of the head.
fn stored_data(
    (width, height): (u32, u32),
    (colour, interlace): (u8, u8),
    plain: &[u8],
    (block, chunk): (usize, usize),
) -> Vec<u8> {
    let part = |kind: &[u8; 4], data: &[u8]| {
        let mut part = (data.len() as u32).to_be_bytes().to_vec();
        part.extend_from_slice(kind);
        part.extend_from_slice(data);
        let sum = crc(&part[4..]);
        part.extend_from_slice(&sum.to_be_bytes());
        part
    };
    let mut stream = vec![0x78, 0x01];
    let count = plain.chunks(block).count();
    for (at, bytes) in plain.chunks(block).enumerate() {
        let length = bytes.len() as u16;
        stream.push(u8::from(at + 1 == count));
        stream.extend_from_slice(&length.to_le_bytes());
        stream.extend_from_slice(&(!length).to_le_bytes());
        stream.extend_from_slice(bytes);
    }
    let (a, b) = plain.iter().fold((1, 0), |(a, b), &byte| {
        let a = (a + u32::from(byte)) % 65_521;
        (a, (b + a) % 65_521)
    });
    stream.extend_from_slice(&(b << 16 | a).to_be_bytes());
    let mut header = width.to_be_bytes().to_vec();
    header.extend_from_slice(&height.to_be_bytes());
    header.extend_from_slice(&[8, colour, 0, 0, interlace]);
    let mut file = b"\x89PNG\r\n\x1a\n".to_vec();
    file.extend(part(b"IHDR", &header));
    file.extend(part(b"tIME", &[7, 210, 1, 1, 0, 0, 0]));
    stream.chunks(chunk).for_each(|data| file.extend(part(b"IDAT", data)));
    file.extend(part(b"IEND", b""));
    file
}

/// The checksum of a chunk (PNG, annex D).
fn crc(bytes: &[u8]) -> u32 {
    let turn = |crc: u32| if crc & 1 == 1 { 0xedb8_8320 ^ (crc >> 1) } else { crc >> 1 };
    !bytes.iter().fold(!0, |crc, &byte| (0..8).fold(crc ^ u32::from(byte), |crc, _| turn(crc)))
}

/// An interlaced PNG (PNG, section 8.1).
fn interlaced((width, height, channels): (u32, u32, usize), rows: &[u8]) -> Vec<u8> {
    let mut plain = Vec::new();
    let passes =
        [(0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2)];
    for (x, y, dx, dy) in passes.into_iter().chain([(0, 1, 1, 2)]) {
        for y in (y..height).step_by(dy).filter(|_| x < width) {
            plain.push(0);
            for x in (x..width).step_by(dx) {
                let at = (y as usize * width as usize + x as usize) * channels;
                plain.extend_from_slice(&rows[at..at + channels]);
            }
        }
    }
    let colour = [0, 4, 2, 6][channels - 1];
    stored_data((width, height), (colour, 1), &plain, (997, 1000))
}

const SHAPES: [(u32, u32, usize); 5] =
    [(61, 47, 3), (200, 30, 4), (33, 90, 1), (50, 50, 2), (1, 1, 3)];

#[test]
fn windows_of_stored_pngs_are_parts_of_the_picture() {
    for shape in SHAPES {
        for lengths in [(65_535, 1 << 30), (100, 1 << 30), (997, 1000), (1000, 64), (13, 17)] {
            let made = Made::new(shape, |rows| stored(shape, rows, lengths, 0));
            let picture = open(&made.file).unwrap();
            assert!(picture.is_placed(), "{shape:?} {lengths:?}");
            made.check(&picture, &format!("{shape:?} {lengths:?}"));
        }
    }
}

#[test]
fn windows_of_compressed_pngs_are_parts_of_the_picture() {
    for shape in SHAPES {
        for filter in [png::Filter::NoFilter, png::Filter::Paeth, png::Filter::Up] {
            for compression in [png::Compression::Fast, png::Compression::NoCompression] {
                let made = Made::new(shape, |rows| png(shape, rows, compression, filter));
                let picture = open(&made.file).unwrap();
                made.check(&picture, &format!("{shape:?} {filter:?} {compression:?}"));
            }
        }
    }
}

#[test]
fn windows_of_interlaced_pngs_are_parts_of_the_picture() {
    for shape in SHAPES {
        let made = Made::new(shape, |rows| interlaced(shape, rows));
        let picture = open(&made.file).unwrap();
        assert!(!picture.is_placed(), "{shape:?}");
        made.check(&picture, &format!("interlaced {shape:?}"));
    }
}

#[test]
fn bytes_of_a_palette_are_shown_as_its_colours() {
    let (width, height) = (61, 47);
    let colours: Vec<u8> = (0..3 * 256).map(|at| sample(at + 9000)).collect();
    let of_colour = |made: Made| {
        let index = made.rgba.chunks_exact(4).map(|pixel| usize::from(pixel[0]));
        let colour = |index: usize| [0, 1, 2].map(|at| colours[3 * index + at]);
        let rgba = index.flat_map(|index| {
            let [red, green, blue] = colour(index);
            [red, green, blue, 255]
        });
        Made { rgba: rgba.collect(), ..made }
    };
    let png = of_colour(Made::new((width, height, 1), |rows| {
        let mut file = Vec::new();
        let mut encoder = png::Encoder::new(&mut file, width, height);
        encoder.set_color(png::ColorType::Indexed);
        encoder.set_palette(&colours);
        encoder.write_header().unwrap().write_image_data(rows).unwrap();
        file
    }));
    png.check(&open(&png.file).unwrap(), "PNG");
    for strip in [5, 1000] {
        let tiff = of_colour(Made::new((width, height, 1), |rows| {
            overviews::indexed((width, height), rows, &colours, strip)
        }));
        tiff.check(&open(&tiff.file).unwrap(), "TIFF");
    }
}

#[test]
fn windows_of_pnm_and_raw_files_are_parts_of_the_picture() {
    for (width, height, channels) in SHAPES {
        let shape = (width, height, channels);
        let raw: RawShape = format!("{width}x{height}x{channels}@9").parse().unwrap();
        let made = Made::new(shape, |rows| [b"some head", rows].concat());
        made.check(
            &Picture::open(&made.file, Hints { raw: Some(raw), levels: None }).unwrap(),
            "raw",
        );
        let kind = match channels {
            1 => "P5",
            3 => "P6",
            _ => continue,
        };
        let head = format!("{kind}\n# a comment\n{width} {height}\n255\n");
        let made = Made::new(shape, |rows| [head.as_bytes(), rows].concat());
        made.check(&open(&made.file).unwrap(), kind);
    }
}

#[test]
fn a_window_needs_only_its_own_bytes() {
    struct Counted(Vec<u8>, std::sync::atomic::AtomicU64);
    impl Ranges for Counted {
        fn size(&self) -> u64 {
            self.0.size()
        }
        fn read(
            &self,
            ranges: &[std::ops::Range<u64>],
            into: &mut Vec<u8>,
        ) -> Result<(), ReadFailed> {
            let all: u64 = ranges.iter().map(|range| range.end - range.start).sum();
            self.1.fetch_add(all, std::sync::atomic::Ordering::Relaxed);
            self.0.read(ranges, into)
        }
    }
    let shape = (1000, 1000, 3);
    let made = Made::new(shape, |rows| stored(shape, rows, (65_535, 1 << 30), 0));
    let counted = Counted(made.file, Default::default());
    let picture = Picture::open(&counted, Hints::default()).unwrap();
    let before = counted.1.swap(0, std::sync::atomic::Ordering::Relaxed);
    assert!(before < 10_000, "{before}");
    let region = Region { x: 400, y: 400, width: 100, height: 50 };
    picture.window(&counted, Part::exact(region), &mut Pixels::default()).unwrap();
    assert_eq!(counted.1.into_inner(), 50 * (300 + 1));
}

#[test]
fn decoding_ends_when_the_picture_is_not_wanted_any_more() {
    struct Unwanted(Vec<u8>);
    impl Ranges for Unwanted {
        fn size(&self) -> u64 {
            self.0.size()
        }
        fn read(
            &self,
            ranges: &[std::ops::Range<u64>],
            into: &mut Vec<u8>,
        ) -> Result<(), ReadFailed> {
            self.0.read(ranges, into)
        }
        fn check(&self) -> Result<(), ReadFailed> {
            Err(ReadFailed::Local(std::io::ErrorKind::ConnectionAborted))
        }
    }
    let shape = (61, 47, 1);
    let rows = Made::new(shape, <[u8]>::to_vec).file;
    let png = png(shape, &rows, png::Compression::Fast, png::Filter::Paeth);
    for file in [png, overviews::indexed((61, 47), &rows, &[7; 768], 16)] {
        let file = Unwanted(file);
        let picture = Picture::open(&file, Hints::default()).unwrap();
        let part = Part::exact(picture.size().all());
        let ended = picture.window(&file, part, &mut Pixels::default());
        assert!(matches!(ended, Err(ImageError::Read(ReadFailed::Local(_)))), "{ended:?}");
    }
}

#[test]
fn what_is_no_picture_is_an_error() {
    let shape = (61, 47, 3);
    let whole = Made::new(shape, |rows| stored(shape, rows, (100, 1 << 30), 0)).file;
    let open_err = |file: Vec<u8>| open(&file).map(|_| ()).unwrap_err();
    assert_eq!(open_err(b"GIF89a".to_vec()), ImageError::UnknownFormat);
    assert_eq!(open_err(Vec::new()), ImageError::UnknownFormat);
    assert_eq!(
        open_err(b"P4 1 1\n".to_vec()),
        ImageError::Unsupported("a PNM that is no P5 or P6")
    );
    assert!(matches!(open_err(b"P6 99 99 255\n".to_vec()), ImageError::Damaged(_)));
    assert!(matches!(
        open_err(b"P5 4000000000 4000000000 255\n".to_vec()),
        ImageError::TooLarge { .. }
    ));
    assert!(matches!(open_err(whole[..40].to_vec()), ImageError::Read(ReadFailed::Short)));
    let mut interlaced = whole.clone();
    interlaced[28] = 2;
    assert!(matches!(open_err(interlaced), ImageError::Unsupported(_)));
    let picture = open(&whole).unwrap();
    for (x, width) in [(0, 62), (61, 1), (0, 0), (u32::MAX, 2)] {
        let region = Region { x, y: 0, width, height: 1 };
        let window = picture.window(&whole, Part::exact(region), &mut Pixels::default());
        assert!(matches!(window, Err(ImageError::NoWindow(_))), "{region}");
    }
}

#[test]
fn damaged_files_cause_no_panic() {
    let shape = (61, 47, 3);
    let files = [
        Made::new(shape, |rows| stored(shape, rows, (100, 300), 0)).file,
        Made::new(shape, |rows| png(shape, rows, png::Compression::Fast, png::Filter::Paeth)).file,
        Made::new(shape, |rows| [b"P6 61 47 255\n", rows].concat()).file,
        Made::new(shape, scientific::jpeg).file,
        Made::new(shape, |rows| scientific::deflated(shape, rows, 5)).file,
        Made::new(shape, |rows| scientific::tiff(shape, rows, scientific::Shape::TILES[0])).file,
        Made::new((61, 47, 1), |rows| scientific::fits((61, 47), 8, rows)).file,
        Made::new(shape, |rows| interlaced(shape, rows)).file,
        Made::new((61, 47, 1), |rows| {
            overviews::indexed((61, 47), rows, &(0..=255).cycle().take(768).collect::<Vec<_>>(), 9)
        })
        .file,
        overviews::Pyramid::new(overviews::Coding::Deflate, overviews::Place::Inner).file,
    ];
    let mut rng = fastrand::Rng::with_seed(3);
    let mut opened = 0;
    for file in &files {
        for _ in 0..2000 {
            let mut broken = file.clone();
            for _ in 0..rng.usize(1..4) {
                // Of a TIFF of the crate `tiff` the directory stands at the end.
                let at = rng.usize(..broken.len().min(400));
                let at = if rng.bool() { at } else { broken.len() - 1 - at };
                broken[at] = rng.u8(..);
            }
            if rng.bool() {
                broken.truncate(rng.usize(broken.len() / 2..=broken.len()));
            }
            let Ok(picture) = open(&broken) else { continue };
            opened += 1;
            let all = picture.size().all();
            let region = Region { width: all.width.min(50), height: all.height.min(50), ..all };
            let _ = picture.window(&broken, Part::exact(region), &mut Pixels::default());
            let step = Step::new(rng.u32(2..9)).unwrap();
            let part = Part { step, ..Part::exact(region) };
            let _ = picture.window(&broken, part, &mut Pixels::default());
        }
    }
    assert!(opened > 100, "{opened}");
}

#[test]
fn near_ranges_are_read_ahead_as_one() {
    let joined: Vec<_> = crate::ranges::merged(&[0..10, 15..20, 26..30, 90..95], 5).collect();
    assert_eq!(joined, [0..20, 26..30, 90..95]);
    assert_eq!(crate::ranges::merged(&[], 5).count(), 0);
}
