//! Pictures of strangers: whatever the file holds, a window of it is pixels or an error.
#![no_main]

use hikyaku_image_source::{Hints, Part, Picture, Pixels, Region, Smaller, Step};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    // The first bytes choose the window, so that the fuzzer finds rows and columns of any place.
    let Some((&[x, y, width, height, step], file)) = bytes.split_first_chunk() else { return };
    let file = file.to_vec();
    let Ok(picture) = Picture::open(&file, Hints::default()) else { return };
    let region = Region { x: x.into(), y: y.into(), width: width.into(), height: height.into() };
    let smaller = if step & 128 == 0 { Smaller::Pick } else { Smaller::Average };
    let step = Step::new((step & 127).into());
    let (Some(region), Some(step)) = (picture.size().clip(region), step) else { return };
    let mut pixels = Pixels::default();
    if picture.window(&file, Part { region, step, smaller }, &mut pixels).is_ok() {
        assert_eq!((pixels.width, pixels.height), region.window(step));
        assert_eq!(
            pixels.rgba.len() as u64,
            4 * u64::from(pixels.width) * u64::from(pixels.height)
        );
    }
});
