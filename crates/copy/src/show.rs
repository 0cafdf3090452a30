//! What the user sees of a copy: the engine's meter, shown on the board of the program.

use crate::plan::CopyPlan;
use hikyaku_console::{Audience, Board, Counts, Ending, Failed, Message, MeterId, decision};
use hikyaku_job::{End, Meter, Tally};
use hikyaku_reach::tcp::Decisions;
use serde::Serialize;
use std::io;
use std::time::Instant;

/// Follows a copy.
pub(crate) struct Show {
    audience: Audience,
    board: Board,
    id: MeterId,
    hosts: Hosts,
    begin: Instant,
    decisions: Decisions,
}

/// The other machines of a copy, as they were named.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Hosts {
    /// The one that sends.
    pub(crate) from: Option<String>,
    /// The one that writes.
    pub(crate) to: Option<String>,
}

/// What was shown of a copy.
pub(crate) struct Shown {
    /// Failures since the last call of [`Show::update`].
    pub(crate) failures: usize,
    pub(crate) tally: Tally,
    /// What was wrong with standard output, if anything was.
    pub(crate) lost: Option<io::Error>,
}

impl Hosts {
    /// The machine at an end, if it is not this one.
    pub(crate) fn at(&self, end: End) -> Option<&str> {
        match end {
            End::Here => None,
            End::There => self.from.as_deref().or(self.to.as_deref()),
            End::From => self.from.as_deref(),
            End::To => self.to.as_deref(),
        }
    }
}

impl Show {
    /// For this plan, whose copy is made between these hosts.
    pub(crate) fn new(plan: &CopyPlan, hosts: Hosts) -> Self {
        let mut board = Board::new(plan.report.audience, plan.report.stats_every);
        let (begin, decisions) = (Instant::now(), plan.transport.way.decisions.clone());
        let id = board.add(None, begin);
        Self { audience: plan.report.audience, board, id, hosts, begin, decisions }
    }

    /// Shows how far the copy is. Returns the number of failures that were told.
    pub(crate) fn update(&mut self, meter: &Meter) -> usize {
        let now = Instant::now();
        let figures = (counts(&meter.tally()), meter.path());
        let failures = meter.take_failures();
        let told = failures.len();
        let failures = failures.into_iter().map(|told| {
            let host = self.hosts.at(told.end).map(str::to_owned);
            let (line, kind) = (told.line(host.as_deref()), word(told.kind));
            Message::Failure(Failed { line, host, path: told.place, kind, text: told.text })
        });
        let mut messages: Vec<Message> = failures.collect();
        messages.extend(meter.take_remarks().into_iter().map(Message::Remark));
        messages.extend(meter.take_notes().into_iter().map(Message::Would));
        let elapsed = now - self.begin;
        let decisions = self.decisions.take().into_iter();
        messages.extend(
            decisions.filter_map(|(measured, phase)| {
                decision(self.audience, elapsed, (&measured, phase))
            }),
        );
        self.board.update(self.id, figures, &messages, now);
        told
    }

    /// Shows how the copy ended.
    pub(crate) fn finish(mut self, meter: &Meter, is_done: bool) -> Shown {
        let failures = self.update(meter);
        let more = meter.more_failures();
        if more > 0 {
            self.board.remark(&format!("{more} more could not be copied for these reasons"));
        }
        let failures = failures + usize::try_from(more).unwrap_or(usize::MAX);
        let ending = if is_done { Ending::Done } else { Ending::Untold };
        self.board.finish(self.id, ending, Instant::now());
        Shown { failures, tally: meter.tally(), lost: self.board.into_lost() }
    }
}

/// The counts of a copy.
pub(crate) const fn counts(tally: &Tally) -> Counts {
    let Tally { total_files, total_bytes, is_counted, files, bytes, kept_bytes } = *tally;
    Counts { total_files, total_bytes, is_counted, files, bytes, kept_bytes }
}

/// A kind of failure, or what limits the rate, as events spell it, which is how the two ends of a copy do.
pub(crate) fn word(value: impl Serialize) -> String {
    let word = serde_json::to_value(value).ok();
    word.and_then(|word| word.as_str().map(str::to_owned)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use hikyaku_transfer::{FailureKind, LimitedBy};

    #[test]
    fn kinds_are_spelled_as_documented() {
        assert_eq!(word(LimitedBy::Link), "link");
        assert_eq!(word(FailureKind::NotFound), "not_found");
        assert_eq!(word(FailureKind::IsDirectory), "is_directory");
    }
}
