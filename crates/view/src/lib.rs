//! `hikyaku view`: plays a sequence of very large pictures, a window at a time, from this machine or from daemons.
//!
//! [`run()`] finds the frames (`sequence`), reads windows of them on several threads ahead of what is shown (`ahead`), and
//! hands them to a page in the user's browser (`web`) or counts them (`bench`).
#![forbid(unsafe_code)]

mod ahead;
mod args;
mod bench;
mod fleet;
mod frames;
mod pattern;
mod quality;
mod sequence;
mod web;
mod window;

pub use args::ViewArgs;

use anyhow::{Context, Result};
use frames::Frames;
use hikyaku_console::{ExitCode, Interrupt};
use hikyaku_image_source::Hints;
use std::sync::Arc;

/// Shows the pictures until the user ends it, or measures how fast they can be shown.
///
/// # Errors
///
/// There are no such pictures, no server can be reached, or the first picture cannot be read.
pub fn run(args: &ViewArgs, interrupt: &Interrupt) -> Result<()> {
    interrupt.listen().context("cannot listen for signals")?;
    let hints = Hints { raw: args.raw, levels: args.levels };
    let frames = Arc::new(Frames::new(sequence::find(args)?, hints, args.fidelity()));
    if frames.count() == 0 {
        return Err(ExitCode::WillFail.error("no picture has such a name"));
    }
    match args.bench {
        Some(count) => bench::run(args, interrupt, &frames, count),
        None => web::run(args, interrupt, &frames),
    }
}
