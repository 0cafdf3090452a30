//! TIFF, JPEG and FITS.

use super::*;
use crate::number::{Number, Order};
use std::io::Cursor;

/// How a TIFF without compression is written.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    order: Order,
    is_big: bool,
    /// Width and height of a tile; strips with this height if the width is 0.
    tile: (u32, u32),
}

impl Shape {
    pub(super) const TILES: [Self; 5] = [
        Self { order: Order::Little, is_big: false, tile: (16, 16) },
        Self { order: Order::Big, is_big: true, tile: (32, 16) },
        Self { order: Order::Big, is_big: false, tile: (0, 7) },
        Self { order: Order::Little, is_big: true, tile: (0, 1) },
        Self { order: Order::Little, is_big: false, tile: (0, 10_000) },
    ];
}

/// A TIFF without compression: samples of one byte, the lowest strip or tile first in the file.
pub(super) fn tiff(
    (width, height, channels): (u32, u32, usize),
    rows: &[u8],
    shape: Shape,
) -> Vec<u8> {
    let Shape { order, is_big, tile } = shape;
    let number = |value: u64, bytes: usize| match order {
        Order::Little => value.to_le_bytes()[..bytes].to_vec(),
        Order::Big => value.to_be_bytes()[8 - bytes..].to_vec(),
    };
    let wide = if is_big { 8 } else { 4 };
    let is_tiled = tile.0 > 0;
    let (across, down) = if is_tiled { tile } else { (width, tile.1.min(height)) };
    let mut tiles = Vec::new();
    for top in (0..height).step_by(down as usize) {
        for left in (0..width).step_by(across as usize) {
            let mut bytes = Vec::new();
            for y in top..if is_tiled { top + down } else { height.min(top + down) } {
                for x in left..left + across {
                    let at = (y as usize * width as usize + x as usize) * channels;
                    match x < width && y < height {
                        true => bytes.extend_from_slice(&rows[at..at + channels]),
                        false => bytes.extend(std::iter::repeat_n(99, channels)),
                    }
                }
            }
            tiles.push(bytes);
        }
    }
    let head = if is_big { 16 } else { 8 };
    let mut file = vec![0; head];
    let mut offsets = vec![0; tiles.len()];
    for (offset, tile) in offsets.iter_mut().zip(&tiles).rev() {
        *offset = file.len() as u64;
        file.extend_from_slice(tile);
    }
    let lengths: Vec<u64> = tiles.iter().map(|tile| tile.len() as u64).collect();
    // Values that do not fit into an entry precede the directory.
    let mut entries = Vec::new();
    let mut entry = |file: &mut Vec<u8>, tag: u64, values: &[u64], bytes: usize| {
        let all: Vec<u8> = values.iter().flat_map(|&value| number(value, bytes)).collect();
        let kind = match bytes {
            2 => 3,
            4 => 4,
            _ => 16,
        };
        let mut entry =
            [number(tag, 2), number(kind, 2), number(values.len() as u64, wide)].concat();
        if all.len() <= wide {
            entry.extend(&all);
            entry.resize(entry.len() + wide - all.len(), 0);
        } else {
            entry.extend(number(file.len() as u64, wide));
            file.extend(&all);
        }
        entries.push(entry);
    };
    let photometric = if channels < 3 { 1 } else { 2 };
    entry(&mut file, 256, &[width.into()], 4);
    entry(&mut file, 257, &[height.into()], 4);
    entry(&mut file, 258, &vec![8; channels], 2);
    entry(&mut file, 259, &[1], 2);
    entry(&mut file, 262, &[photometric], 2);
    if !is_tiled {
        entry(&mut file, 273, &offsets, wide);
    }
    entry(&mut file, 277, &[channels as u64], 2);
    if is_tiled {
        entry(&mut file, 322, &[tile.0.into()], 4);
        entry(&mut file, 323, &[tile.1.into()], 4);
        entry(&mut file, 324, &offsets, wide);
        entry(&mut file, 325, &lengths, wide);
    } else {
        entry(&mut file, 278, &[tile.1.into()], 4);
        entry(&mut file, 279, &lengths, wide);
    }
    if channels == 4 {
        entry(&mut file, 338, &[2], 2);
    }
    entries.sort_by_key(|entry| match order {
        Order::Little => u16::from_le_bytes([entry[0], entry[1]]),
        Order::Big => u16::from_be_bytes([entry[0], entry[1]]),
    });
    let directory = file.len() as u64;
    file.extend(number(entries.len() as u64, if is_big { 8 } else { 2 }));
    file.extend(entries.concat());
    file.extend(number(0, wide));
    let mark = if order == Order::Little { b"II" } else { b"MM" };
    let start = match is_big {
        true => [&mark[..], &number(43, 2), &number(8, 2), &number(0, 2), &number(directory, 8)]
            .concat(),
        false => [&mark[..], &number(42, 2), &number(directory, 4)].concat(),
    };
    file[..head].copy_from_slice(&start);
    file
}

/// A TIFF of compressed strips, as the crate `tiff` writes it.
pub(super) fn deflated(
    (width, height, channels): (u32, u32, usize),
    rows: &[u8],
    strip: u32,
) -> Vec<u8> {
    use ::tiff::encoder::{Compression, DeflateLevel, TiffEncoder, colortype};
    let mut file = Cursor::new(Vec::new());
    let encoder = TiffEncoder::new(&mut file).unwrap();
    let mut encoder = encoder.with_compression(Compression::Deflate(DeflateLevel::Fast));
    macro_rules! write {
        ($colour:ty) => {{
            let mut image = encoder.new_image::<$colour>(width, height).unwrap();
            image.rows_per_strip(strip).unwrap();
            image.write_data(rows).unwrap();
        }};
    }
    match channels {
        1 => write!(colortype::Gray8),
        3 => write!(colortype::RGB8),
        _ => write!(colortype::RGBA8),
    }
    file.into_inner()
}

/// A JPEG of 61 x 47 pixels of 3 samples.
pub(super) fn jpeg(rows: &[u8]) -> Vec<u8> {
    let mut file = Vec::new();
    let encoder = jpeg_encoder::Encoder::new(&mut file, 95);
    encoder.encode(rows, 61, 47, jpeg_encoder::ColorType::Rgb).unwrap();
    file
}

/// A FITS file whose picture has these bytes, the lowest row first, behind a unit without a picture.
pub(super) fn fits((width, height): (u32, u32), bits: i32, data: &[u8]) -> Vec<u8> {
    fits_with((width, height), bits, data, &[])
}

fn fits_with((width, height): (u32, u32), bits: i32, data: &[u8], more: &[&str]) -> Vec<u8> {
    let unit = |cards: &[&str], data: &[u8]| {
        let mut unit = Vec::new();
        for card in cards {
            unit.extend_from_slice(format!("{card:<80}").as_bytes());
        }
        unit.extend_from_slice(format!("{:<80}", "END").as_bytes());
        unit.resize(unit.len().next_multiple_of(2880), b' ');
        unit.extend_from_slice(data);
        unit.resize(unit.len().next_multiple_of(2880), 0);
        unit
    };
    let mut file = unit(
        &[
            "SIMPLE  =                    T / a comment",
            "BITPIX  = 8",
            "NAXIS   = 1",
            "NAXIS1  = 3",
        ],
        b"abc",
    );
    let sizes =
        [format!("BITPIX  = {bits}"), format!("NAXIS1  = {width}"), format!("NAXIS2  = {height}")];
    let mut cards = vec!["XTENSION= 'IMAGE   '", &sizes[0], "NAXIS   = 2", &sizes[1], &sizes[2]];
    cards.extend(["PCOUNT  = 0", "GCOUNT  = 1"]);
    cards.extend(more);
    file.extend(unit(&cards, data));
    file
}

/// The rows from the lowest one on.
fn upward(rows: &[u8], width: usize) -> Vec<u8> {
    rows.chunks_exact(width).rev().flatten().copied().collect()
}

#[test]
fn windows_of_tiffs_are_parts_of_the_picture() {
    for shape in SHAPES {
        for layout in Shape::TILES {
            let mut made = Made::new(shape, |rows| tiff(shape, rows, layout));
            if shape.2 == 2 {
                // The file does not define the second sample of a grey picture.
                made.rgba.chunks_exact_mut(4).for_each(|pixel| pixel[3] = 255);
            }
            let picture = open(&made.file).unwrap();
            assert!(picture.is_placed(), "{shape:?} {layout:?}");
            made.check(&picture, &format!("{shape:?} {layout:?}"));
        }
    }
}

#[test]
fn windows_of_compressed_tiffs_are_parts_of_the_picture() {
    for shape in SHAPES.into_iter().filter(|shape| shape.2 != 2) {
        for strip in [1, 5, 1000] {
            let made = Made::new(shape, |rows| deflated(shape, rows, strip));
            let picture = open(&made.file).unwrap();
            assert!(!picture.is_placed(), "{shape:?} {strip}");
            made.check(&picture, &format!("{shape:?} {strip}"));
        }
    }
}

#[test]
fn windows_of_a_jpeg_are_parts_of_the_picture() {
    let rows: Vec<u8> = (0..47u32)
        .flat_map(|y| {
            (0..61u32).flat_map(move |x| [(4 * x) as u8, (5 * y) as u8, (2 * (x + y)) as u8])
        })
        .collect();
    let file = jpeg(&rows);
    let picture = open(&file).unwrap();
    let mut whole = Pixels::default();
    picture.window(&file, Part::exact(picture.size().all()), &mut whole).unwrap();
    assert_eq!((whole.width, whole.height), (61, 47));
    for (got, wanted) in whole.rgba.chunks_exact(4).zip(rows.chunks_exact(3)) {
        assert!((0..3).all(|at| got[at].abs_diff(wanted[at]) < 16), "{got:?} {wanted:?}");
    }
    let made = Made { width: 61, height: 47, rgba: whole.rgba, file };
    made.check(&picture, "JPEG");
}

#[test]
fn windows_of_fits_files_are_parts_of_the_picture() {
    for (width, height, _) in SHAPES {
        let made = Made::new((width, height, 1), |rows| {
            fits((width, height), 8, &upward(rows, width as usize))
        });
        let picture = open(&made.file).unwrap();
        assert!(picture.is_placed());
        made.check(&picture, "FITS of bytes");
        for number in [Number::I16, Number::I32, Number::F32, Number::F64] {
            let made = Made::new((width, height, 1), |rows| {
                let value = |&byte: &u8| match number {
                    Number::I16 => (i16::from(byte) - 128).to_be_bytes().to_vec(),
                    Number::I32 => (i32::from(byte) - 128).to_be_bytes().to_vec(),
                    Number::F32 => (f32::from(byte) - 128.0).to_be_bytes().to_vec(),
                    _ => (f64::from(byte) - 128.0).to_be_bytes().to_vec(),
                };
                let data: Vec<u8> = upward(rows, width as usize).iter().flat_map(value).collect();
                let float = matches!(number, Number::F32 | Number::F64);
                let bits = 8 * number.bytes() as i32 * if float { -1 } else { 1 };
                let cards =
                    ["BZERO   = 1.28D3", "BSCALE  = 1.0E+1", "DATAMIN = 0", "DATAMAX = 2560"];
                fits_with((width, height), bits, &data, &cards)
            });
            made.check(&open(&made.file).unwrap(), &format!("FITS of {number:?}"));
        }
    }
}

#[test]
fn values_are_shown_between_levels() {
    let data: Vec<u8> = (0..1000i16).flat_map(|value| (value * 3).to_be_bytes()).collect();
    let file = fits_with((100, 10), 16, &data, &["BLANK   = 2997"]);
    let shown = |hints| {
        let picture = Picture::open(&file, hints).unwrap();
        let mut pixels = Pixels::default();
        picture.window(&file, Part::exact(picture.size().all()), &mut pixels).unwrap();
        pixels.rgba.chunks_exact(4).map(|pixel| pixel[0]).collect::<Vec<_>>()
    };
    // The lowest row is the last one, and has the lowest values.
    let found = shown(Hints::default());
    assert_eq!((found[900], found[950], found[400], found[99]), (0, 11, 128, 0), "{found:?}");
    let levels = Some("0,300".parse().unwrap());
    let wanted = shown(Hints { levels, ..Hints::default() });
    assert_eq!((wanted[900], wanted[950], wanted[0]), (0, 128, 255), "{wanted:?}");
    let raw = Some("2x1x1x2".parse().unwrap());
    let two = Picture::open(&vec![0, 150, 1, 44], Hints { raw, levels }).unwrap();
    let mut pixels = Pixels::default();
    two.window(&vec![0, 150, 1, 44], Part::exact(two.size().all()), &mut pixels).unwrap();
    assert_eq!(pixels.rgba, [128, 128, 128, 255, 255, 255, 255, 255]);
}

#[test]
fn lies_of_heads_are_errors() {
    let fits = |cards: &[&str]| {
        let mut file = Vec::new();
        for card in cards.iter().chain(&["END"]) {
            file.extend_from_slice(format!("{card:<80}").as_bytes());
        }
        file.resize(file.len().next_multiple_of(2880), b' ');
        open(&file).unwrap_err()
    };
    let start = ["SIMPLE  = T", "BITPIX  = 16"];
    let with = |more: &[&'static str]| fits(&[&start[..], more].concat());
    assert!(matches!(with(&["NAXIS   = 0"]), ImageError::Unsupported(_)));
    assert!(matches!(with(&["NAXIS   = 2", "NAXIS1  = 9", "NAXIS2  = 9"]), ImageError::Damaged(_)));
    let huge = ["NAXIS   = 2", "NAXIS1  = 18446744073709551615", "NAXIS2  = 9"];
    assert!(matches!(with(&huge), ImageError::TooLarge { .. }));
    let huge = ["NAXIS   = 3", "NAXIS1  = 0", "NAXIS2  = 4294967296", "NAXIS3  = 99999999999"];
    assert!(matches!(with(&huge), ImageError::Unsupported(_)));
    assert!(matches!(with(&["NAXIS   = 1000"]), ImageError::Damaged(_)));
    let endless = [b"SIMPLE  = T".to_vec(), vec![b' '; 9 << 20]].concat();
    assert!(matches!(open(&endless).unwrap_err(), ImageError::Damaged(_)));
    // A JPEG that claims 65535 x 65535 pixels, and one without a frame.
    let frame = b"\xff\xd8\xff\xc0\0\x11\x08\xff\xff\xff\xff\x03\0\0\0\0\0\0\0\0\0".to_vec();
    let picture = open(&frame).unwrap();
    let part = Part::exact(Region { x: 0, y: 0, width: 9, height: 9 });
    let window = picture.window(&frame, part, &mut Pixels::default());
    assert!(matches!(window, Err(ImageError::TooLarge { .. })), "{window:?}");
    assert!(open(&b"\xff\xd8\xff\xda\0\x03\0".to_vec()).is_err());
    // Two tiles at one place.
    let shape = (40, 20, 3);
    let mut file = Made::new(shape, |rows| tiff(shape, rows, Shape::TILES[0])).file;
    let (first, second) = (4 * 768 + 8 + 768, 3 * 768 + 8 + 768);
    let at = file.windows(4).rposition(|bytes| bytes == (second as u32).to_le_bytes()).unwrap();
    file[at..at + 4].copy_from_slice(&(first as u32).to_le_bytes());
    let picture = open(&file).unwrap();
    let window = picture.window(&file, Part::exact(picture.size().all()), &mut Pixels::default());
    assert_eq!(window, Err(ImageError::Read(ReadFailed::Overlapping)));
}
