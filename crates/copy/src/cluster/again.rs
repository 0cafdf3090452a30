//! A copy between storages whose connection to a host behind ssh is lost: the copy connects again and goes on, as one between two
//! hosts does.

use super::ends::{End, Part, Transfer};
use super::{Order, Outcome, copy};
use crate::run::LATER;
use crate::run::patience::{Patience, Progress};
use anyhow::{Error, Result};
use hikyaku_console::{Board, Counts, Ending, Kept, PathFigures, Tone, headline, say, unwritten};
use hikyaku_pair::LostConnection;
use hikyaku_reach::settings;
use hikyaku_stores::Location;
use hikyaku_units::RetryPolicy;
use std::time::Instant;

/// Copies. Begins again as long as the user wants if the connection to a host behind ssh is lost.
pub(super) fn persist(order: &Order<'_>, transfer: &Transfer, outcome: &mut Outcome) -> Result<()> {
    let Some(policy) = retries(order, transfer)? else { return copy(order, transfer, outcome) };
    let (mut patience, mut before) = (Patience::new(policy), Counts::default());
    loop {
        outcome.held = Some(Vec::new());
        let done = copy(order, transfer, outcome);
        let is_lost = order.has_lost_host();
        let counts = std::mem::take(&mut outcome.counts);
        let progress = if counts.sent() > 0 { Progress::Some } else { Progress::None };
        let pause = match &done {
            Err(error) if Kept::of(error).is_some() => None,
            _ if is_lost => patience.after(Instant::now(), &LostConnection.into(), progress),
            Err(error) => patience.after(Instant::now(), error, progress),
            Ok(()) => None,
        };
        let Some(pause) = pause else {
            outcome.counts = together(before, counts);
            tell(order, outcome)?;
            return done;
        };
        before.files += counts.files;
        before.bytes += counts.sent();
        let lost = || "the connection is lost".to_owned();
        let why = done.as_ref().err().filter(|_| !is_lost).map_or_else(lost, headline);
        let secs = pause.as_secs();
        let text = format_args!("{why}; trying again in {secs} s (Ctrl-C ends it; {LATER})");
        say(Tone::Warning, text);
        if order.scope.sleep(pause).is_some() {
            outcome.counts = together(before, Counts::default());
            return Err(outcome.kept.unwrap_or(Kept::Nothing).into());
        }
    }
}

/// How often and how long a lost copy is tried again; `None` if no host behind ssh takes part.
fn retries(order: &Order<'_>, transfer: &Transfer) -> Result<Option<RetryPolicy>> {
    let sources = transfer.parts.iter().flat_map(|part| match part {
        Part::Stored(all) => &all[..],
        Part::Here(_) | Part::Daemons(_) | Part::Gfarm(_) => &[],
    });
    let target = match &transfer.target {
        End::Stored(at) => Some(at),
        End::Here(_) | End::Daemons(_) => None,
    };
    let host = sources.chain(target).find_map(|at| match at {
        Location::Remote(at) => Some(&at.login.host),
        _ => None,
    });
    let Some(host) = host else { return Ok(None) };
    order.plan.retries(host, &settings::of_user()?).map(Some)
}

/// The figures of the last attempt, and of what those before it have copied, which the last one has found.
fn together(before: Counts, last: Counts) -> Counts {
    Counts {
        files: before.files + last.files,
        kept_bytes: last.kept_bytes.saturating_sub(before.bytes),
        ..last
    }
}

/// Tells the failures that no other connection has mended.
fn tell(order: &Order<'_>, outcome: &mut Outcome) -> Result<()> {
    let held = outcome.held.take().unwrap_or_default();
    if held.is_empty() {
        return Ok(());
    }
    let messages: Vec<_> = held.iter().filter_map(|failed| outcome.add(failed)).collect();
    let mut board = Board::new(order.plan.report.audience, None);
    let id = board.add(None, Instant::now());
    board.update(id, (outcome.counts, PathFigures::default()), &messages, Instant::now());
    board.finish(id, Ending::Untold, Instant::now());
    board.into_lost().map_or(Ok(()), |error| Err::<(), Error>(unwritten(error)))
}
