//! What it means for a copy that its user stopped it.

use crate::engine::Meter;

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
