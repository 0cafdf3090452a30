//! `--images`: windows of pictures, decoded beside the files.

use hikyaku_image_source::{
    Hints, Levels, Part, Picture, Pixels, RawShape, Region, Smaller, Step, StoreFile,
};
use hikyaku_remote::{Render, Rendered, View};
use hikyaku_store::Open;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// Windows that are made at once, for all clients together.
struct Slots {
    free: Mutex<usize>,
    freed: Condvar,
}

/// Pixels of a window: 32 Mi, a window of 8K.
const PIXELS_MAX: u64 = 32 << 20;
/// Pixels of the part of the picture, or of its overview, of which a smaller window is made.
const REGION_PIXELS_MAX: u64 = 1 << 30;

/// What makes windows, of so many pictures at once.
pub(crate) fn render(threads: usize) -> Render {
    let slots = Slots { free: Mutex::new(threads.max(1)), freed: Condvar::new() };
    Arc::new(move |open, view| {
        let _slot = slots.take();
        make(open, view)
    })
}

fn make(open: &dyn Open, view: &View) -> Result<Rendered, String> {
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
    let mut pixels = Pixels::default();
    picture.window(&file, part, &mut pixels).map_err(|error| words(&error))?;
    let bytes = pixels.encode(view.coding).map_err(|error| words(&error))?;
    Ok(Rendered { width: wide, height: high, bytes })
}

impl Slots {
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
mod tests {
    use super::*;
    use hikyaku_remote::{Coding, Seen};
    use hikyaku_store::{Access, Finish, Make, Memory, Naming, Store, StorePath};

    #[test]
    fn windows_are_bounded() {
        let store = Memory::default();
        let make = |file: &[u8], region, step| {
            let path = StorePath::new(b"a".as_slice()).unwrap();
            let draft = store.create(&path, &Make::default()).unwrap();
            draft.write_at(0, file).unwrap();
            draft.name(Naming::Replace, &Finish::default()).unwrap();
            let open = store.open(&path, Access::Read).unwrap();
            let seen = Seen::from(&open.found().unwrap());
            let (path, coding) = (Vec::new(), Coding::Jpeg(50));
            let view = View { path, seen, region, step, levels: None, raw: None, coding };
            super::make(&*open, &view)
        };
        let small = [b"P5 200 100 255\n".as_slice(), &[7; 20_000]].concat();
        let made = make(&small, [0, 0, 100, 500], 2).unwrap();
        assert_eq!((made.width, made.height), (50, 50));
        assert!(make(&small, [200, 0, 1, 1], 1).is_err());
        assert!(make(&small, [0, 0, 1, 1], 0).is_err());
        // The frame header of a JPEG of 40000 x 40000 pixels.
        let huge = b"\xff\xd8\xff\xc0\0\x0b\x08\x9c\x40\x9c\x40\x01\0\0\0\0";
        let too_large = "the window is larger than this server makes";
        assert_eq!(make(huge, [0, 0, 8192, 4097], 1).unwrap_err(), too_large);
        assert_eq!(make(huge, [0, 0, 40_000, 40_000], 100).unwrap_err(), too_large);
    }
}
