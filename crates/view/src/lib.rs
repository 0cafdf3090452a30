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

use anyhow::{Context, Error, Result};
use frames::Frames;
use hikyaku_console::{ExitCode, Interrupt};
use hikyaku_image_source::{Hints, ImageError, ReadFailed};
use hikyaku_remote::{RemoteError, code_of};
use std::io;
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
    match args.bench {
        Some(count) => bench::run(args, interrupt, &frames, count),
        None => web::run(args, interrupt, &frames),
    }
}

/// The exit code of an error that a picture cannot be shown, or of an answer of a daemon; `None` for all other errors.
pub fn exit_code(error: &Error) -> Option<ExitCode> {
    let of_picture = error.chain().find_map(|link| link.downcast_ref()).map(of_image);
    of_picture.or_else(|| error.chain().find_map(|link| link.downcast_ref()).map(RemoteError::code))
}

fn of_image(error: &ImageError) -> ExitCode {
    match error {
        ImageError::Read(ReadFailed::Local(kind)) => {
            ExitCode::of(&io::Error::from(*kind).into(), &[])
        }
        ImageError::Read(ReadFailed::Store(kind)) => code_of(*kind),
        ImageError::Read(ReadFailed::Far(error)) => error.code(),
        ImageError::Read(ReadFailed::Damaged) | ImageError::Damaged(_) => ExitCode::Failed,
        ImageError::Read(ReadFailed::Overlapping | ReadFailed::Short)
        | ImageError::UnknownFormat
        | ImageError::Unsupported(_)
        | ImageError::TooLarge { .. }
        | ImageError::NoWindow(_) => ExitCode::WillFail,
    }
}
