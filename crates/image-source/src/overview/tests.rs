//! Overviews, and the windows that are made of them.

use super::*;
use crate::geometry::Smaller;

fn size(width: u32, height: u32) -> Size {
    Size { width, height }
}

#[test]
fn an_overview_has_one_pixel_of_a_square_of_them() {
    for (full, small, wanted) in [
        (size(11000, 11000), size(5500, 5500), Some(2)),
        // The rest of the pixels at the edge has made a pixel, or none.
        (size(1001, 999), size(251, 250), Some(4)),
        (size(1001, 999), size(250, 249), Some(4)),
        (size(100, 3000), size(13, 375), Some(8)),
        // A thumbnail of another shape, the picture itself, a larger one.
        (size(11000, 11000), size(160, 120), None),
        (size(100, 100), size(100, 100), None),
        (size(100, 100), size(200, 200), None),
    ] {
        assert_eq!(factor(full, small), wanted, "{full:?} {small:?}");
    }
}

#[test]
fn windows_of_overviews_have_the_size_of_those_of_the_picture() {
    let full = size(1001, 999);
    let mut rng = fastrand::Rng::with_seed(5);
    for (small, factor) in [(size(251, 250), 4), (size(250, 249), 4), (size(501, 500), 2)] {
        for _ in 0..500 {
            let (x, y) = (rng.u32(..full.width), rng.u32(..full.height));
            let (width, height) = (rng.u32(1..=full.width - x), rng.u32(1..=full.height - y));
            let region = Region { x, y, width, height };
            let step = Step::new(rng.u32(factor..40)).unwrap();
            let whole = Part { region, step, smaller: Smaller::Pick };
            let inner = part(whole, factor, small);
            assert!(inner.check(small).is_ok(), "{inner:?}");
            // Each pixel of the overview has its place as its colour.
            let mut pixels = Pixels { rgba: Vec::new(), width: 0, height: 0 };
            (pixels.width, pixels.height) = inner.window();
            for y in 0..pixels.height {
                for x in 0..pixels.width {
                    let at = |from: u32, pixel: u32| from + pixel * inner.step.get();
                    let place = [at(inner.region.x, x), at(inner.region.y, y)];
                    pixels.rgba.extend(place.iter().flat_map(|&at| (at as u16).to_be_bytes()));
                }
            }
            fit(whole, factor, inner, &mut pixels);
            assert_eq!((pixels.width, pixels.height), whole.window());
            for (at, pixel) in (0..).zip(pixels.rgba.chunks_exact(4)) {
                let place = |high, low| u32::from(u16::from_be_bytes([high, low]));
                let shown = (place(pixel[0], pixel[1]), place(pixel[2], pixel[3]));
                let wanted = |from: u32, at: u32, limit: u32| {
                    ((from + at * step.get() + step.get() / 2) / factor).min(limit - 1)
                };
                let wanted = (
                    wanted(x, at % pixels.width, small.width),
                    wanted(y, at / pixels.width, small.height),
                );
                // The pixel that is taken is less than a square away from the middle, which may lie behind the region
                // where the edge cuts the last square.
                let near = |a: u32, b: u32| b.saturating_sub(a) <= 2 * inner.step.get() && a <= b;
                assert!(near(shown.0, wanted.0) && near(shown.1, wanted.1), "{whole:?}");
            }
        }
    }
}
