//! Events for programs: a JSON object a line. `docs/copy.md` describes them.

use crate::engine::Tally;
use hikyaku_transfer::{FailureKind, LimitedBy, PathFigures};
use hikyaku_units::Rate;
use serde::Serialize;
use std::time::Duration;

/// Fields may be added; none is removed or changed without a new number.
const VERSION: u32 = 1;

/// Something a program may want to know.
#[derive(Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub(super) enum Event<'a> {
    /// How far it is.
    Progress(Figures),
    /// Something could not be copied.
    Failure {
        /// The line that a person is told.
        why: &'a str,
        /// Where, if that is another machine.
        #[serde(skip_serializing_if = "Option::is_none")]
        host: Option<&'a str>,
        /// Its path there; empty, if it is about none.
        path: &'a str,
        kind: FailureKind,
        /// The cause.
        text: &'a str,
    },
    /// A rehearsal says what would be written.
    Would { path: &'a str },
    /// It is over, and nothing more comes.
    End {
        #[serde(flatten)]
        figures: Figures,
        exit_code: u8,
        #[serde(skip_serializing_if = "Option::is_none")]
        error: Option<&'a str>,
    },
}

/// Counts since the begin.
#[derive(Serialize)]
pub(super) struct Figures {
    version: u32,
    seconds: f64,
    files: u64,
    bytes: u64,
    /// Of these, bytes that were there already, and holes.
    kept_bytes: u64,
    total_files: u64,
    total_bytes: u64,
    /// All has been found, so that the totals are what they say.
    is_counted: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    bits_per_second: Option<u64>,
    /// Of all packets so far, by the sender's count.
    #[serde(skip_serializing_if = "Option::is_none")]
    lost_percent: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    limited_by: Option<LimitedBy>,
}

impl<'a> Event<'a> {
    pub(super) fn end(
        tally: &Tally,
        took: Duration,
        exit_code: u8,
        error: Option<&'a str>,
    ) -> Self {
        let bits = tally.sent() as f64 * 8.0 / took.as_secs_f64().max(1e-3);
        Self::End { figures: Figures::new(tally, took, Some(bits as u64)), exit_code, error }
    }

    pub(super) fn progress(
        tally: &Tally,
        took: Duration,
        rate: Option<Rate>,
        path: &PathFigures,
    ) -> Self {
        let figures = Figures::new(tally, took, rate.map(Rate::bits_per_sec));
        let lost_percent = path.lost_percent();
        let limited_by = lost_percent.map(|_| path.limited_by);
        Self::Progress(Figures { lost_percent, limited_by, ..figures })
    }

    /// The event as it is printed.
    pub(super) fn line(&self) -> String {
        // Nothing in it can fail to be written.
        serde_json::to_string(self).unwrap_or_default()
    }
}

impl Figures {
    fn new(tally: &Tally, took: Duration, bits_per_second: Option<u64>) -> Self {
        Self {
            version: VERSION,
            seconds: took.as_secs_f64(),
            files: tally.files,
            bytes: tally.bytes,
            kept_bytes: tally.kept_bytes,
            total_files: tally.total_files,
            total_bytes: tally.total_bytes,
            is_counted: tally.is_counted,
            bits_per_second,
            lost_percent: None,
            limited_by: None,
        }
    }
}
