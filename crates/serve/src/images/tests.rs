//! Windows that are bounded, and those that take long beside others.

use super::*;
use hikyaku_remote::{Coding, Seen};
use hikyaku_store::{
    Access, Extent, Finish, Found, Make, Memory, Naming, Result as StoreResult, Store, StorePath,
    SyncScope,
};
use std::ops::Range;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

/// A file of a store that holds these bytes.
fn file(bytes: &[u8]) -> Box<dyn Open> {
    let (store, path) = (Memory::default(), StorePath::new(b"a".as_slice()).unwrap());
    let draft = store.create(&path, &Make::default()).unwrap();
    draft.write_at(0, bytes).unwrap();
    draft.name(Naming::Replace, &Finish::default()).unwrap();
    store.open(&path, Access::Read).unwrap()
}

fn view(file: &dyn Open, region: [u32; 4], step: u32) -> View {
    let seen = Seen::from(&file.found().unwrap());
    let (path, coding) = (Vec::new(), Coding::Jpeg(50));
    View { path, seen, region, step, levels: None, raw: None, coding }
}

#[test]
fn windows_are_bounded() {
    let render = render(1);
    let make = |bytes: &[u8], region, step| {
        let file = file(bytes);
        render(&*file, &view(&*file, region, step))
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

/// A file whose bytes do not come before the other end of `gate` is dropped.
struct Slow {
    inner: Box<dyn Open>,
    /// Told when the first bytes are asked for.
    asked: mpsc::Sender<()>,
    gate: Mutex<mpsc::Receiver<()>>,
}

impl Open for Slow {
    fn found(&self) -> StoreResult<Found> {
        self.inner.found()
    }

    fn read_at(&self, at: u64, into: &mut [u8]) -> StoreResult<usize> {
        let _ = self.asked.send(());
        let _ = self.gate.lock().unwrap().recv();
        self.inner.read_at(at, into)
    }

    fn write_at(&self, at: u64, bytes: &[u8]) -> StoreResult<()> {
        self.inner.write_at(at, bytes)
    }

    fn set_len(&self, length: u64) -> StoreResult<()> {
        self.inner.set_len(length)
    }

    fn extents(&self, range: Range<u64>) -> StoreResult<Vec<Extent>> {
        self.inner.extents(range)
    }

    fn sync(&self, scope: SyncScope) -> StoreResult<()> {
        self.inner.sync(scope)
    }
}

#[test]
fn a_window_that_takes_long_holds_up_no_small_one() {
    let render = render(1);
    let (width, height) = (8192, 2049);
    let ((asked, first), (opened, gate)) = (mpsc::channel(), mpsc::channel());
    let inner = file(&vec![7; width as usize * height as usize]);
    let slow = Slow { inner, asked, gate: Mutex::new(gate) };
    // A shape without a head: nothing is read before the window is made.
    let raw = Some((width, height, 1, 1, 0));
    let large = View { raw, ..view(&*slow.inner, [0, 0, width, height], 8) };
    let made = render.clone();
    let large = thread::spawn(move || made(&slow, &large));
    let patience = Duration::from_secs(60);
    first.recv_timeout(patience).expect("the large window is begun");
    let (done, small) = mpsc::channel();
    thread::spawn(move || {
        let file = file(&[b"P5 200 100 255\n".as_slice(), &[7; 20_000]].concat());
        let _ = done.send(render(&*file, &view(&*file, [0, 0, 100, 100], 1)));
    });
    let small = small.recv_timeout(patience).expect("the small window does not wait").unwrap();
    assert_eq!((small.width, small.height), (100, 100));
    drop(opened);
    let large = large.join().unwrap().unwrap();
    assert_eq!((large.width, large.height), (1024, 257));
}
