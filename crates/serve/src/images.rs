//! `--images`: windows of pictures, decoded beside the files.

use hikyaku_image_source::{
    Hints, Levels, Part, Picture, Pixels, RawShape, Region, Smaller, Step, StoreFile,
};
use hikyaku_remote::{Render, Rendered, View};
use hikyaku_store::Open;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// Places for windows that are decoded concurrently, for all clients together. Each kind has its own places, so that a slow
/// window does not delay fast ones.
struct Places {
    /// For fast windows, and for reading heads of pictures.
    light: Slots,
    /// For all other windows.
    heavy: Slots,
}

/// A number of places.
struct Slots {
    free: Mutex<usize>,
    freed: Condvar,
}

/// Pixels of a window: 32 Mi, a window of 8K.
const PIXELS_MAX: u64 = 32 << 20;
/// Pixels of the part of the picture, or of its overview, of which a smaller window is made.
const REGION_PIXELS_MAX: u64 = 1 << 30;
/// Maximum of decoded pixels of a fast window: a fraction of a second.
const LIGHT_PIXELS: u64 = 16 << 20;

/// Returns a function that decodes windows: at most `threads` slow ones and as many fast ones concurrently.
pub(crate) fn render(threads: usize) -> Render {
    let places = Places { light: Slots::new(threads), heavy: Slots::new(threads) };
    Arc::new(move |open, view| make(open, view, &places))
}

fn make(open: &dyn Open, view: &View, places: &Places) -> Result<Rendered, String> {
    let light = places.light.take();
    let words = |error: &dyn std::fmt::Display| error.to_string();
    let levels = view.levels.and_then(|(low, high)| Levels::new(low, high));
    let raw = view.raw.map(|(width, height, channels, bytes, from)| {
        RawShape::new((width, height), (channels, bytes), from).ok_or("no such shape of a picture")
    });
    let hints = Hints { raw: raw.transpose()?, levels };
    let file = StoreFile::new(open, view.seen.size);
    let picture = Picture::open(&file, hints).map_err(|error| words(&error))?;
    let [x, y, width, height] = view.region;
    let region = picture.size().clip(Region { x, y, width, height });
    let (Some(region), Some(step)) = (region, Step::new(view.step)) else {
        return Err("the window lies outside the picture".to_owned());
    };
    let part = Part { region, step, smaller: Smaller::Average };
    let (wide, high) = part.window();
    let count = |width: u32, height: u32| u64::from(width) * u64::from(height);
    // An overview has fewer pixels than the part that it shows.
    let pixels = picture.pixels_for(&file, part).map_err(|error| words(&error))?;
    let read = pixels.min(count(region.width, region.height));
    if count(wide, high) > PIXELS_MAX || read > REGION_PIXELS_MAX {
        return Err("the window is larger than this server makes".to_owned());
    }
    let work = picture.work_for(&file, part).map_err(|error| words(&error))?;
    let _slot = match work.max(count(wide, high)) {
        ..=LIGHT_PIXELS => light,
        _ => {
            drop(light);
            places.heavy.take()
        }
    };
    let mut pixels = Pixels::default();
    picture.window(&file, part, &mut pixels).map_err(|error| words(&error))?;
    let bytes = pixels.encode(view.coding).map_err(|error| words(&error))?;
    Ok(Rendered { width: wide, height: high, bytes })
}

impl Slots {
    fn new(count: usize) -> Self {
        Self { free: Mutex::new(count.max(1)), freed: Condvar::new() }
    }

    fn free(&self) -> MutexGuard<'_, usize> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self) -> Slot<'_> {
        let mut free = self.free();
        while *free == 0 {
            free = self.freed.wait(free).unwrap_or_else(PoisonError::into_inner);
        }
        *free -= 1;
        Slot(self)
    }
}

struct Slot<'a>(&'a Slots);

impl Drop for Slot<'_> {
    fn drop(&mut self) {
        *self.0.free() += 1;
        self.0.freed.notify_one();
    }
}

#[cfg(test)]
mod tests;
