//! The page in the user's browser, and what it asks for.

use crate::ahead::Ahead;
use crate::args::{Late, ViewArgs};
use crate::frames::{Frames, Purpose, Wanted};
use crate::window::Window;
use anyhow::{Context, Result};
use hikyaku_console::{Document, Form, Interrupt, print};
use hikyaku_image_source::{Region, Step};
use hikyaku_page::{Body, Door, Reply, Status};
use serde::Serialize;
use std::io;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

/// The data of the page at its start.
#[derive(Serialize)]
struct Info<'a> {
    frames: usize,
    width: u32,
    height: u32,
    fps: f64,
    is_looping: bool,
    late: Late,
    window: Option<[u32; 4]>,
    first: &'a str,
}

/// Figures that the page shows.
#[derive(Serialize)]
struct Figures {
    bits_per_second: f64,
    bytes: u64,
    round_trip_seconds: Option<f64>,
    windows_at_once: usize,
    /// The quality of JPEG in which frames come while it plays.
    quality: Option<u8>,
}

/// A window, as the page takes it.
struct Shown(Arc<Window>);

impl AsRef<[u8]> for Shown {
    fn as_ref(&self) -> &[u8] {
        self.0.bytes()
    }
}

/// The state from which requests are answered.
struct Page {
    frames: Arc<Frames>,
    ahead: Ahead,
    info: String,
    is_looping: bool,
}

const INDEX: &[u8] = include_bytes!("../page/index.html");
const SCRIPT: &[u8] = include_bytes!("../page/view.js");
const STYLE: &[u8] = include_bytes!("../page/view.css");
/// Frames beyond the one that the page asks for that are read ahead while it plays.
const LISTED: i64 = 24;
/// The side of the squares of a coarse window, in those of the window itself.
const COARSER: u32 = 8;
/// How often it is looked whether the user ends it.
const LOOK: Duration = Duration::from_millis(200);

pub(crate) fn run(args: &ViewArgs, interrupt: &Interrupt, frames: &Arc<Frames>) -> Result<()> {
    let size = frames.size(0).with_context(|| frames.name(0).to_owned())?;
    let window = args.window.and_then(|window| size.clip(window));
    let info = Info {
        frames: frames.count(),
        width: size.width,
        height: size.height,
        fps: args.fps,
        is_looping: args.is_looping,
        late: args.late,
        window: window.map(|window| [window.x, window.y, window.width, window.height]),
        first: frames.name(0),
    };
    let info = serde_json::to_string(&info)?;
    let ahead = Ahead::new(frames.clone(), args.cache.bytes(), args.ahead)?;
    let page = Page { frames: frames.clone(), ahead, info, is_looping: args.is_looping };
    let door = Door::open(args.web.unwrap_or(0)).context("cannot serve the page")?;
    let address = door.address();
    match args.form.form() {
        Form::Words => print(format!("the pictures are at {address}\n"))?,
        Form::Document | Form::Lines => {
            print(Document::new(serde_json::json!({ "page": address })).line())?;
        }
    }
    let page = Arc::new(page);
    let serving = thread::Builder::new()
        .name("view-door".to_owned())
        .spawn(move || door.serve(Arc::new(move |path: &str| page.answer(path))))?;
    let scope = interrupt.scope();
    while scope.sleep(LOOK).is_none() && !serving.is_finished() {}
    match serving.is_finished() {
        true => Ok(serving.join().unwrap_or_else(|_| Err(io::ErrorKind::Other.into()))?),
        false => Ok(()),
    }
}

impl Page {
    fn answer(&self, path: &str) -> Reply {
        let (path, query) = path.split_once('?').unwrap_or((path, ""));
        match path {
            "" => Reply::file("text/html; charset=utf-8", INDEX),
            "view.js" => Reply::file("text/javascript; charset=utf-8", SCRIPT),
            "view.css" => Reply::file("text/css; charset=utf-8", STYLE),
            "info" => Reply::json(self.info.clone()),
            "figures" => Reply::json(self.figures()),
            "name" => match number(query, "n").and_then(|n| usize::try_from(n).ok()) {
                Some(frame) => Reply::text(Status::Ok, self.frames.name(frame).to_owned()),
                None => Reply::not_found(),
            },
            "frame" => self.frame(query).unwrap_or_else(Reply::not_found),
            "coarse" => self.coarse(query).unwrap_or_else(Reply::not_found),
            _ => Reply::not_found(),
        }
    }

    /// The window that a query names; `None` for a query that names none.
    fn wanted(&self, query: &str, purpose: Purpose) -> Option<Wanted> {
        let small = |name| number(query, name).and_then(|number| u32::try_from(number).ok());
        let region =
            Region { x: small("x")?, y: small("y")?, width: small("w")?, height: small("h")? };
        let step = Step::new(small("s")?)?;
        let frame = usize::try_from(number(query, "n")?).ok()?;
        (frame < self.frames.count()).then_some(Wanted { frame, region, step, purpose, pass: 0 })
    }

    /// A window of a frame, as the pixels of a canvas. `None` for a query that is none.
    fn frame(&self, query: &str) -> Option<Reply> {
        // While it stands, the frames beside it are the ones that may be shown next.
        let stride = number(query, "d").unwrap_or(0);
        let purpose = if stride == 0 { Purpose::Standing } else { Purpose::Playing };
        let wanted = self.wanted(query, purpose)?;
        let frame = wanted.frame;
        let list = self.next(frame, stride).map(|frame| Wanted { frame, ..wanted });
        let fps = number(query, "f").filter(|_| stride != 0).map(|fps| fps as f64 / 100.0);
        self.ahead.plan(list, fps);
        self.shown(wanted)
    }

    /// The window of a query with larger squares, which is shown until the window has arrived. `None` if it would not arrive
    /// sooner.
    fn coarse(&self, query: &str) -> Option<Reply> {
        let fine = self.wanted(query, Purpose::Standing)?;
        // Pictures of a playing sequence may be lossy.
        let step = Step::new(fine.step.get().saturating_mul(COARSER))?;
        let coarse = Wanted { step, purpose: Purpose::Playing, ..fine };
        // The error is reported with the window itself.
        let is_sooner = self.frames.is_sooner(coarse, fine.step).unwrap_or(false);
        is_sooner.then(|| self.shown(coarse))?
    }

    fn shown(&self, wanted: Wanted) -> Option<Reply> {
        let frame = wanted.frame;
        Some(match self.ahead.take(wanted)? {
            Ok(window) => Reply {
                status: Status::Ok,
                kind: window.kind(),
                body: Body::Shared(Arc::new(Shown(window))),
            },
            Err(error) => {
                Reply::text(Status::Failed, format!("{}: {error}", self.frames.name(frame)))
            }
        })
    }

    /// The frame and those that come after it, `stride` apart; 0 for none.
    fn next(&self, frame: usize, stride: i64) -> impl Iterator<Item = usize> {
        let count = self.frames.count() as i64;
        let listed = if stride == 0 { 1 } else { LISTED.min(count) };
        let is_looping = self.is_looping;
        let frames = (0..listed).map(move |turn| frame as i64 + turn * stride.clamp(-64, 64));
        frames.filter_map(move |at| match (0..count).contains(&at) {
            true => Some(at as usize),
            false if is_looping => Some(at.rem_euclid(count) as usize),
            false => None,
        })
    }

    fn figures(&self) -> String {
        let (windows_at_once, bytes_per_sec) = self.ahead.pace();
        let figures = Figures {
            bits_per_second: 8.0 * bytes_per_sec,
            bytes: self.frames.figures().bytes,
            round_trip_seconds: self.frames.round_trip().map(|time| time.as_secs_f64()),
            windows_at_once,
            quality: self.frames.jpeg(),
        };
        serde_json::to_string(&figures).unwrap_or_default()
    }
}

/// A number of a query such as `n=7&d=-1`.
// fuzz: none, the user's own page, behind a token; numbers only
fn number(query: &str, name: &str) -> Option<i64> {
    let value = query.split('&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='))?;
    value.parse().ok()
}
