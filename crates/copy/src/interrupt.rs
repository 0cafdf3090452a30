//! What it means for a copy that its user stopped it.

use crate::engine::Meter;
use anyhow::Error;

/// The user stopped the copy.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub(crate) enum Interrupted {
    /// What has been copied is kept.
    #[error("stopped; the same command again goes on from here")]
    GoesOn,
    /// Complete files are kept, and nothing of the others.
    #[error(
        "stopped; complete files are kept, the same command copies the others from their beginnings"
    )]
    WholeFiles,
    /// Complete files are kept. The target is there now, so that it would receive the directory whose new name it was.
    #[error(
        "stopped; complete files are kept; remove the target before the same command, which would copy into it"
    )]
    NewTree,
    /// Nothing was complete, and nothing is kept.
    #[error("stopped; no file was complete and nothing is kept, the same command begins anew")]
    FromBegin,
    /// Complete files are kept; nothing is known of the others.
    #[error("stopped; the same command copies everything again")]
    Anew,
    /// A stream is read or written once.
    #[error("stopped; what came through the pipe is gone")]
    Over,
}

impl Interrupted {
    /// What it means for a copy that has come so far.
    pub(crate) fn after(meter: &Meter) -> Self {
        if meter.is_spent() || meter.has_streamed() { Self::Over } else { Self::GoesOn }
    }
}

/// The error of a copy whose target may be the new name of a directory, with the truth on the same command.
pub(crate) fn of_new_tree(error: Error, is_new_tree: bool) -> Error {
    match is_new_tree && error.is::<Interrupted>() {
        true => Interrupted::NewTree.into(),
        false => error,
    }
}
