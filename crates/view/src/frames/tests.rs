//! Which windows come sooner.

use super::*;
use std::fs;

#[test]
fn a_coarse_window_comes_sooner_where_it_needs_fewer_pixels() {
    let dir = std::env::temp_dir().join(format!("hikyaku-view-sooner-{}", std::process::id()));
    fs::create_dir_all(&dir).unwrap();
    let (width, height) = (64, 64);
    let rgba: Vec<u8> = (0..4 * width * height).map(|at| (at / 7) as u8).collect();
    let pixels = Pixels { width, height, rgba };
    let plain = [b"P5 64 64 255\n".as_slice(), &[7; 64 * 64]].concat();
    let files =
        [plain, pixels.encode(Coding::Png).unwrap(), pixels.encode(Coding::Jpeg(90)).unwrap()];
    let frame = |(at, file): (usize, &Vec<u8>)| {
        let path = dir.join(at.to_string());
        fs::write(&path, file).unwrap();
        Frame { name: at.to_string(), origin: Origin::Local(path) }
    };
    let found = Found { frames: files.iter().enumerate().map(frame).collect(), far: None };
    let frames = Frames::new(found, Hints::default(), Fidelity::Exact);
    let region = Region { x: 0, y: 8, width, height: 48 };
    let is_sooner = |frame, step| {
        let step = Step::new(step).unwrap();
        let coarse = Wanted { frame, region, step, purpose: Purpose::Playing, pass: 0 };
        frames.is_sooner(coarse, Step::ALL).unwrap()
    };
    assert!(is_sooner(0, 8) && !is_sooner(0, 2), "a file of which some rows are read");
    assert!(!is_sooner(1, 8) && !is_sooner(2, 8), "files that are decoded whole");
    fs::remove_dir_all(&dir).unwrap();
}
