//! Windows of the frames of a sequence.

use crate::fleet::{Linked, Views};
use crate::quality::{Quality, Seen};
use crate::sequence::{Far, Found, Frame, Origin};
use crate::window::Window;
use hikyaku_image_source::{
    FarFile, Hints, ImageError, Levels, LocalFile, Part, Picture, Pixels, Ranges, ReadFailed,
    Region, Size, Smaller, Step,
};
use hikyaku_net::blocking::{Stop, wait};
use hikyaku_remote::{Coding, RemoteError, View};
use hikyaku_store::ErrorKind;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The frames, and how they are read.
pub(crate) struct Frames {
    frames: Vec<Frame>,
    far: Option<Far>,
    hints: Hints,
    /// The head of each frame, once it was read. The thread that opens a picture holds its lock, so that concurrent reads of
    /// several windows of a frame read its head once.
    pictures: Vec<Mutex<Option<Arc<Picture>>>>,
    /// The server that is asked next where several have a frame.
    turn: AtomicUsize,
    meter: Meter,
    fidelity: Fidelity,
    quality: Mutex<Quality>,
}

/// Whether frames may be shown with losses while they play.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Fidelity {
    /// As JPEG of the quality that the path carries.
    Fitting,
    /// As JPEG of this quality.
    Fixed(u8),
    /// Always exact.
    Exact,
}

/// A window of a frame.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Wanted {
    pub(crate) frame: usize,
    pub(crate) region: Region,
    pub(crate) step: Step,
    pub(crate) purpose: Purpose,
    /// The run through the sequence, where a frame is to be read again in each; otherwise 0.
    pub(crate) pass: u64,
}

/// The purpose of a window.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Purpose {
    /// It is one of many that follow each other.
    Playing,
    /// It is looked at.
    Standing,
}

/// Bytes that were read and the time of the reads, summed over all threads.
#[derive(Debug, Default)]
pub(crate) struct Meter {
    bytes: AtomicU64,
    reading_nanos: AtomicU64,
    decoding_nanos: AtomicU64,
    making_nanos: AtomicU64,
}

/// A copy of the counters of a meter.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Figures {
    /// Bytes of files.
    pub(crate) bytes: u64,
    /// Time of all threads in waiting for bytes of files.
    pub(crate) reading: Duration,
    /// Time of all threads in making pixels of them.
    pub(crate) decoding: Duration,
    /// Of the time of reading, that in which servers made windows.
    pub(crate) making: Duration,
}

/// A window that needs this part of the pixels of another one comes much sooner.
const SOONER: u64 = 4;
/// The round-trip time of a connection that cannot report its own.
const USUAL_RTT: Duration = Duration::from_millis(100);

impl Frames {
    pub(crate) fn new(found: Found, hints: Hints, fidelity: Fidelity) -> Self {
        let pictures = found.frames.iter().map(|_| Mutex::default()).collect();
        let (turn, meter) = (AtomicUsize::new(0), Meter::default());
        let quality = Mutex::new(Quality::new());
        Self {
            frames: found.frames,
            far: found.far,
            hints,
            pictures,
            turn,
            meter,
            fidelity,
            quality,
        }
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
            let client = far.phone.link(server).client;
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
            making: nanos(&self.meter.making_nanos),
        }
    }

    /// The size of a frame's picture.
    pub(crate) fn size(&self, frame: usize) -> Result<Size, ImageError> {
        self.try_each(frame, |source| {
            self.open(frame, source.ranges(), |_, picture| Ok(picture.size()))
        })
    }

    /// Reads a window. The part of its region that lies outside the picture is left out.
    pub(crate) fn window(&self, wanted: Wanted) -> Result<Window, ImageError> {
        let mut pixels = Pixels::default();
        let mut coded = None;
        self.try_each(wanted.frame, |source| {
            if let Source::Server { link, file } = &source
                && link.views == Views::Offered
                && let Some(window) = self.view(link, file, wanted)?
            {
                coded = Some(window);
                return Ok(());
            }
            self.open(wanted.frame, source.ranges(), |bytes, picture| {
                let region = picture.size().clip(wanted.region);
                let region =
                    region.ok_or_else(|| ImageError::NoWindow(wanted.region.to_string()))?;
                let smaller = self.smaller(picture, wanted.purpose);
                let part = Part { region, step: wanted.step, smaller };
                picture.window(bytes, part, &mut pixels)
            })
        })?;
        Ok(coded.unwrap_or(Window::Pixels(pixels)))
    }

    /// Whether a window comes much sooner than one of the same part with a smaller step: its server makes it, or few bytes are
    /// read for it.
    pub(crate) fn is_sooner(&self, coarse: Wanted, fine: Step) -> Result<bool, ImageError> {
        self.try_each(coarse.frame, |source| {
            if let Source::Server { link, .. } = &source
                && link.views == Views::Offered
            {
                return Ok(true);
            }
            self.open(coarse.frame, source.ranges(), |bytes, picture| {
                let region = picture.size().clip(coarse.region);
                let region =
                    region.ok_or_else(|| ImageError::NoWindow(coarse.region.to_string()))?;
                let pixels = |step, purpose| {
                    let smaller = self.smaller(picture, purpose);
                    picture.pixels_for(bytes, Part { region, step, smaller })
                };
                let fine = pixels(fine, Purpose::Standing)?;
                Ok(pixels(coarse.step, coarse.purpose)?.saturating_mul(SOONER) <= fine)
            })
        })
    }

    /// Has a server make a window; `None` if it cannot.
    fn view(
        &self,
        link: &Linked,
        file: &FarFile,
        wanted: Wanted,
    ) -> Result<Option<Window>, ImageError> {
        let coding = match (wanted.purpose, self.fidelity) {
            (Purpose::Playing, Fidelity::Fitting) => Coding::Jpeg(self.quality().jpeg()),
            (Purpose::Playing, Fidelity::Fixed(quality)) => Coding::Jpeg(quality),
            (Purpose::Playing, Fidelity::Exact) | (Purpose::Standing, _) => Coding::Png,
        };
        let Region { x, y, width, height } = wanted.region;
        let view = View {
            path: file.path.clone(),
            seen: file.seen,
            region: [x, y, width, height],
            step: wanted.step.get(),
            levels: self.hints.levels.map(Levels::ends),
            raw: self.hints.raw.map(|raw| {
                let ((width, height), (channels, bytes), from) = raw.parts();
                (width, height, channels, bytes, from)
            }),
            coding,
        };
        let begin = Instant::now();
        let viewed = link.client.view(view).and_then(|viewing| {
            let made_in = viewing.made_in;
            viewing.receive().map(|bytes| (made_in, bytes))
        });
        self.meter.reading_nanos.fetch_add(nanos(begin), Ordering::Relaxed);
        match viewed {
            Ok((made_in, bytes)) => {
                // The time is the server's claim: it cannot be longer than the wait for the answer.
                let made_in = made_in.min(begin.elapsed()).as_nanos() as u64;
                self.meter.making_nanos.fetch_add(made_in, Ordering::Relaxed);
                self.meter.bytes.fetch_add(bytes.len() as u64, Ordering::Relaxed);
                Ok(Some(Window::Coded(coding, bytes)))
            }
            // It may be too large for the server, or of no format that it knows.
            Err(RemoteError::Refused { kind: ErrorKind::System(_), .. }) => Ok(None),
            Err(error) => Err(ImageError::Read(error.into())),
        }
    }

    fn quality(&self) -> MutexGuard<'_, Quality> {
        self.quality.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The quality of JPEG in which frames come while they play; `None` where none do.
    pub(crate) fn jpeg(&self) -> Option<u8> {
        let far = self.far.as_ref()?;
        let is_offered = |server| far.phone.link(server).views == Views::Offered;
        match self.fidelity {
            _ if !far.servers.iter().any(is_offered) => None,
            Fidelity::Exact => None,
            Fidelity::Fixed(quality) => Some(quality),
            Fidelity::Fitting => Some(self.quality().jpeg()),
        }
    }

    /// Takes what was seen of frames, of which `fps` a second are wanted.
    pub(crate) fn look(&self, seen: Seen, fps: f64) {
        self.quality().look(seen, fps);
    }

    /// Pixels are averaged where that costs no bytes, or no more than those of a file here that is looked at.
    const fn smaller(&self, picture: &Picture, purpose: Purpose) -> Smaller {
        match (picture.is_placed(), self.is_far(), purpose) {
            (false, _, _) | (true, false, Purpose::Standing) => Smaller::Average,
            (true, true, _) | (true, false, Purpose::Playing) => Smaller::Pick,
        }
    }

    /// Calls `work` with a source that has the frame. If a server is lost, the other sources of the frame are tried.
    fn try_each<T>(
        &self,
        frame: usize,
        mut work: impl FnMut(Source) -> Result<T, ImageError>,
    ) -> Result<T, ImageError> {
        let unknown = ImageError::NoWindow(format!("of frame {frame}"));
        let found = self.frames.get(frame).ok_or_else(|| unknown.clone())?;
        match (&found.origin, &self.far) {
            (Origin::Local(path), _) => work(Source::Here(LocalFile::open(path)?)),
            (Origin::Far { path, seen, at }, Some(far)) => {
                let turn = self.turn.fetch_add(1, Ordering::Relaxed);
                let mut last = unknown;
                for attempt in 0..at.len() {
                    let server = &far.servers[at[(turn + attempt) % at.len()]];
                    let link = far.phone.link(server);
                    let (client, picking) = (link.client.clone(), link.picking);
                    let file = FarFile { client, path: path.clone(), seen: *seen, picking };
                    match work(Source::Server { link, file }) {
                        Err(ImageError::Read(error)) if error.is_of_server() => last = error.into(),
                        done => return done,
                    }
                }
                Err(last)
            }
            (Origin::Far { .. }, None) => Err(unknown),
        }
    }

    /// Works with the bytes of a frame and what is known of it.
    fn open<T>(
        &self,
        frame: usize,
        inner: &dyn Ranges,
        work: impl FnOnce(&dyn Ranges, &Picture) -> Result<T, ImageError>,
    ) -> Result<T, ImageError> {
        let unknown = || ImageError::NoWindow(format!("of frame {frame}"));
        let known = self.pictures.get(frame).ok_or_else(unknown)?;
        let begin = Instant::now();
        let metered = Metered { inner, meter: &self.meter, waited: AtomicU64::new(0) };
        let picture = {
            let mut known = known.lock().unwrap_or_else(PoisonError::into_inner);
            match &*known {
                Some(picture) => picture.clone(),
                None => known.insert(Arc::new(Picture::open(&metered, self.hints)?)).clone(),
            }
        };
        let done = work(&metered, &picture);
        let rest = nanos(begin).saturating_sub(metered.waited.into_inner());
        self.meter.decoding_nanos.fetch_add(rest, Ordering::Relaxed);
        done
    }
}

/// A place that has a frame.
enum Source {
    Here(LocalFile),
    Server { link: Linked, file: FarFile },
}

impl Source {
    fn ranges(&self) -> &dyn Ranges {
        match self {
            Self::Here(file) => file,
            Self::Server { file, .. } => file,
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

#[cfg(test)]
mod tests;
