//! `hikyaku view --bench`: reads frames as a display would, and prints the rate.

use crate::ahead::Ahead;
use crate::args::ViewArgs;
use crate::frames::{Figures, Frames, Purpose, Wanted};
use anyhow::{Context, Result, bail};
use hikyaku_console::{Document, Form, Interrupt, print};
use hikyaku_image_source::{Region, Size, Step};
use hikyaku_units::counted;
use serde::Serialize;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Instant;

/// The result of a run.
#[derive(Debug, Serialize)]
struct Report {
    frames: u32,
    window: [u32; 2],
    seconds: f64,
    frames_per_second: f64,
    /// Bytes of files that were read, heads included.
    bytes: u64,
    bits_per_second: f64,
    first_frame_seconds: f64,
    round_trip_seconds: Option<f64>,
    windows_at_once: usize,
    /// The quality of JPEG in which the frames came; none if they came exact.
    quality: Option<u8>,
    limited_by: &'static str,
}

/// The part of a picture that is read unless the user names another.
const USUAL: (u32, u32) = (1920, 1080);
/// Frames that are on the list beyond those that are read at once.
const LISTED: u32 = 20;

pub(crate) fn run(
    args: &ViewArgs,
    interrupt: &Interrupt,
    frames: &Arc<Frames>,
    count: NonZeroU32,
) -> Result<()> {
    let size = frames.size(0).with_context(|| frames.name(0).to_owned())?;
    let region = args.window.unwrap_or_else(|| middle(size));
    // A frame that is read again is read again, not taken from memory.
    let ahead = Arc::new(Ahead::new(frames.clone(), 0, args.ahead)?);
    let scope = interrupt.scope();
    let all = frames.count() as u64;
    let wanted = |turn: u32| {
        let frame = (u64::from(turn) % all) as usize;
        let (step, purpose) = (Step::ALL, Purpose::Playing);
        Wanted { frame, region, step, purpose, pass: u64::from(turn) / all }
    };
    let (begin, before) = (Instant::now(), frames.figures());
    let (mut first, mut window) = (None, [0, 0]);
    for turn in 0..count.get() {
        let end = count.get().min(turn.saturating_add(LISTED));
        ahead.plan((turn..end).map(wanted), None);
        let wanted = wanted(turn);
        let shown = ahead.take(wanted).context("reading has ended")?;
        let name = || frames.name(wanted.frame).to_owned();
        // A display decodes what is coded.
        window = shown.and_then(|window| window.size()).with_context(name)?.into();
        first.get_or_insert_with(|| begin.elapsed());
        if scope.stop_cause().is_some() {
            bail!("interrupted after {}", counted(turn + 1, "frame"));
        }
    }
    let seconds = begin.elapsed().as_secs_f64();
    let figures = frames.figures();
    let bytes = figures.bytes - before.bytes;
    let report = Report {
        frames: count.get(),
        window,
        seconds,
        frames_per_second: f64::from(count.get()) / seconds,
        bytes,
        bits_per_second: 8.0 * bytes as f64 / seconds,
        first_frame_seconds: first.unwrap_or_default().as_secs_f64(),
        round_trip_seconds: frames.round_trip().map(|time| time.as_secs_f64()),
        windows_at_once: ahead.pace().0,
        quality: frames.jpeg(),
        limited_by: limit(&figures, &before),
    };
    match args.form.form() {
        Form::Words => print(report.text()),
        Form::Document | Form::Lines => print(Document::new(&report).line()),
    }
}

/// The operation in which the threads spent most of their time. It also limits a display, which takes each frame at once.
fn limit(after: &Figures, before: &Figures) -> &'static str {
    let (reading, decoding) = (after.reading - before.reading, after.decoding - before.decoding);
    let making = after.making - before.making;
    match reading.saturating_sub(making) {
        path if path > decoding.max(making) => "path",
        _ if making > decoding => "server",
        _ => "decoding",
    }
}

/// The middle of a picture.
fn middle(size: Size) -> Region {
    let (width, height) = (USUAL.0.min(size.width), USUAL.1.min(size.height));
    Region { x: (size.width - width) / 2, y: (size.height - height) / 2, width, height }
}

impl Report {
    fn text(&self) -> String {
        let path = self
            .round_trip_seconds
            .map_or(String::new(), |seconds| format!(", round trip {:.0} ms", 1e3 * seconds));
        let coding =
            self.quality.map_or(String::new(), |quality| format!(" as JPEG of quality {quality}"));
        format!(
            "{} frames of {}x{}{coding} in {:.2} s: {:.1} frames/s, {:.0} MB at {:.0} Mbit/s{path}\n\
             the first after {:.2} s, {} windows read at once, limited by {}\n",
            self.frames,
            self.window[0],
            self.window[1],
            self.seconds,
            self.frames_per_second,
            self.bytes as f64 / 1e6,
            self.bits_per_second / 1e6,
            self.first_frame_seconds,
            self.windows_at_once,
            match self.limited_by {
                "path" => "the path (reading)",
                "server" => "the servers, which make the windows",
                _ => "decoding",
            },
        )
    }
}
