//! Events for programs: a JSON object a line. `docs/copy.md` describes them.

use super::Failed;
use super::meter::Meter;
use super::{Counts, LimitedBy};
use crate::exit_code::Exit;
use hikyaku_units::Rate;
use serde::Serialize;
use std::time::{Duration, Instant};

/// Fields may be added; none is removed or changed without a new number.
const VERSION: u32 = 1;

/// Something a program may want to know.
#[derive(Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub(super) enum Event<'a> {
    /// How far a meter is.
    Progress(Figures<'a>),
    /// Something failed.
    Failure {
        /// The line that a person is told.
        why: &'a str,
        /// Where, if that is another machine.
        #[serde(skip_serializing_if = "Option::is_none")]
        host: Option<&'a str>,
        /// Its path there; empty, if it is about none.
        path: &'a str,
        kind: &'a str,
        /// The cause.
        text: &'a str,
    },
    /// A rehearsal says what would be written.
    Would { path: &'a str },
    /// The command has ended, and nothing more comes.
    End {
        #[serde(flatten)]
        figures: Figures<'a>,
        exit_code: u8,
        #[serde(skip_serializing_if = "Option::is_none")]
        error: Option<&'a str>,
    },
}

/// Counts since the start.
#[derive(Serialize)]
pub(super) struct Figures<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<u32>,
    /// The meter, if it has a name.
    #[serde(skip_serializing_if = "Option::is_none")]
    meter: Option<&'a str>,
    seconds: f64,
    files: u64,
    bytes: u64,
    /// Of these, bytes that were there already, and holes.
    kept_bytes: u64,
    total_files: u64,
    total_bytes: u64,
    /// All has been found, so that the totals are final.
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
    pub(super) fn failure(failed: &'a Failed) -> Self {
        let Failed { line, host, path, kind, text } = failed;
        Self::Failure { why: line, host: host.as_deref(), path, kind, text }
    }

    pub(super) fn progress(meter: &'a Meter, now: Instant) -> Self {
        let rate = meter.rate().map(Rate::bits_per_sec);
        let lost_percent = meter.path().lost_percent();
        let limited_by = meter.path().limited_by;
        let is_known = lost_percent.is_some() || limited_by != LimitedBy::Starting;
        let limited_by = is_known.then_some(limited_by);
        let figures = Figures::new(meter.counts(), meter.took(now), rate);
        Self::Progress(Figures { meter: meter.name(), lost_percent, limited_by, ..figures })
    }

    pub(super) fn end(counts: &Counts, took: Duration, exit: Exit, error: Option<&'a str>) -> Self {
        let bits = counts.sent() as f64 * 8.0 / took.as_secs_f64().max(1e-3);
        let figures = Figures::new(counts, took, Some(bits as u64));
        Self::End { figures, exit_code: exit.number(), error }
    }

    /// The event as it is printed.
    pub(super) fn line(&self) -> String {
        // Nothing in it can fail to be written.
        serde_json::to_string(self).unwrap_or_default()
    }
}

impl Figures<'_> {
    /// The figures without the number of the format of events.
    pub(super) fn bare(self) -> Self {
        Self { version: None, ..self }
    }

    fn new(counts: &Counts, took: Duration, bits_per_second: Option<u64>) -> Self {
        Self {
            version: Some(VERSION),
            meter: None,
            seconds: took.as_secs_f64(),
            files: counts.files,
            bytes: counts.bytes,
            kept_bytes: counts.kept_bytes,
            total_files: counts.total_files,
            total_bytes: counts.total_bytes,
            is_counted: counts.is_counted,
            bits_per_second,
            lost_percent: None,
            limited_by: None,
        }
    }
}
