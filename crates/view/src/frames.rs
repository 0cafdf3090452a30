//! Windows of the frames of a sequence.

use crate::sequence::{Far, Found, Frame, Origin};
use hikyaku_image_source::{
    FarFile, ImageError, LocalFile, Picture, Pixels, Ranges, RawShape, ReadFailed, Region, Size,
    Step,
};
use hikyaku_net::blocking::{Stop, wait};
use std::ops::Range;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The frames, and how they are read.
pub(crate) struct Frames {
    frames: Vec<Frame>,
    far: Option<Far>,
    raw: Option<RawShape>,
    /// What is known of each frame. Who opens a picture holds its lock, so that several windows of a frame that are read
    /// at once read its head once.
    pictures: Vec<Mutex<Option<Arc<Picture>>>>,
    /// The server that is asked next where several have a frame.
    turn: AtomicUsize,
    meter: Meter,
}

/// A window of a frame.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Wanted {
    pub(crate) frame: usize,
    pub(crate) region: Region,
    pub(crate) step: Step,
    /// The run through the sequence, where a frame is to be read again in each; otherwise 0.
    pub(crate) pass: u64,
}

/// What was read, and how long it took, over all threads.
#[derive(Debug, Default)]
pub(crate) struct Meter {
    bytes: AtomicU64,
    reading_nanos: AtomicU64,
    decoding_nanos: AtomicU64,
}

/// What a meter has counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Figures {
    /// Bytes of files.
    pub(crate) bytes: u64,
    /// Time of all threads in waiting for bytes of files.
    pub(crate) reading: Duration,
    /// Time of all threads in making pixels of them.
    pub(crate) decoding: Duration,
}

/// The round-trip time of a connection that does not tell.
const USUAL_RTT: Duration = Duration::from_millis(100);

impl Frames {
    pub(crate) fn new(found: Found, raw: Option<RawShape>) -> Self {
        let pictures = found.frames.iter().map(|_| Mutex::default()).collect();
        let (turn, meter) = (AtomicUsize::new(0), Meter::default());
        Self { frames: found.frames, far: found.far, raw, pictures, turn, meter }
    }

    pub(crate) fn count(&self) -> usize {
        self.frames.len()
    }

    pub(crate) fn name(&self, frame: usize) -> &str {
        self.frames.get(frame).map_or("", |frame| &frame.name)
    }

    /// Whether they come over a network.
    pub(crate) const fn is_far(&self) -> bool {
        self.far.is_some()
    }

    /// The longest round-trip time to a server.
    pub(crate) fn round_trip(&self) -> Option<Duration> {
        let far = self.far.as_ref()?;
        let of = |server| {
            let (client, _) = far.phone.link(server);
            let until = Some(Instant::now() + USUAL_RTT);
            let seen = wait(client.connection().seen(), &Stop::default(), until);
            seen.ok().flatten().map_or(USUAL_RTT, |seen| seen.round_trip)
        };
        far.servers.iter().map(of).max()
    }

    pub(crate) fn figures(&self) -> Figures {
        let nanos = |of: &AtomicU64| Duration::from_nanos(of.load(Ordering::Relaxed));
        Figures {
            bytes: self.meter.bytes.load(Ordering::Relaxed),
            reading: nanos(&self.meter.reading_nanos),
            decoding: nanos(&self.meter.decoding_nanos),
        }
    }

    /// The size of a frame's picture.
    pub(crate) fn size(&self, frame: usize) -> Result<Size, ImageError> {
        self.with(frame, |_, picture| Ok(picture.size()))
    }

    /// Reads a window. The part of its region that lies outside the picture is left out.
    pub(crate) fn window(&self, wanted: Wanted) -> Result<Pixels, ImageError> {
        let mut pixels = Pixels::default();
        self.with(wanted.frame, |bytes, picture| {
            let region = picture.size().clip(wanted.region);
            let region = region.ok_or_else(|| ImageError::NoWindow(wanted.region.to_string()))?;
            picture.window(bytes, (region, wanted.step), &mut pixels)
        })?;
        Ok(pixels)
    }

    /// Works with the bytes of a frame and what is known of it. Where its server is gone, the others that have it are asked.
    fn with<T>(
        &self,
        frame: usize,
        mut work: impl FnMut(&dyn Ranges, &Picture) -> Result<T, ImageError>,
    ) -> Result<T, ImageError> {
        let unknown = ImageError::NoWindow(format!("of frame {frame}"));
        let (Some(found), Some(known)) = (self.frames.get(frame), self.pictures.get(frame)) else {
            return Err(unknown);
        };
        let mut timed = |inner: &dyn Ranges| {
            let begin = Instant::now();
            let metered = Metered { inner, meter: &self.meter, waited: AtomicU64::new(0) };
            let picture = {
                let mut known = known.lock().unwrap_or_else(PoisonError::into_inner);
                match &*known {
                    Some(picture) => picture.clone(),
                    None => known.insert(Arc::new(Picture::open(&metered, self.raw)?)).clone(),
                }
            };
            let done = work(&metered, &picture);
            let rest = nanos(begin).saturating_sub(metered.waited.into_inner());
            self.meter.decoding_nanos.fetch_add(rest, Ordering::Relaxed);
            done
        };
        match (&found.origin, &self.far) {
            (Origin::Local(path), _) => timed(&LocalFile::open(path)?),
            (Origin::Far { path, seen, at }, Some(far)) => {
                let turn = self.turn.fetch_add(1, Ordering::Relaxed);
                let mut last = unknown;
                for attempt in 0..at.len() {
                    let server = &far.servers[at[(turn + attempt) % at.len()]];
                    let (client, picking) = far.phone.link(server);
                    let file = FarFile { client, path: path.clone(), seen: *seen, picking };
                    match timed(&file) {
                        Err(ImageError::Read(error)) if error.is_of_server() => last = error.into(),
                        done => return done,
                    }
                }
                Err(last)
            }
            (Origin::Far { .. }, None) => Err(unknown),
        }
    }
}

/// Counts what is read.
struct Metered<'a> {
    inner: &'a dyn Ranges,
    meter: &'a Meter,
    /// Nanoseconds in reading.
    waited: AtomicU64,
}

impl Ranges for Metered<'_> {
    fn size(&self) -> u64 {
        self.inner.size()
    }

    fn read(&self, ranges: &[Range<u64>], into: &mut Vec<u8>) -> Result<(), ReadFailed> {
        let (begin, before) = (Instant::now(), into.len());
        let read = self.inner.read(ranges, into);
        let time = nanos(begin);
        self.waited.fetch_add(time, Ordering::Relaxed);
        self.meter.reading_nanos.fetch_add(time, Ordering::Relaxed);
        let bytes = into.len().saturating_sub(before);
        self.meter.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
        read
    }
}

fn nanos(begin: Instant) -> u64 {
    u64::try_from(begin.elapsed().as_nanos()).unwrap_or(u64::MAX)
}
