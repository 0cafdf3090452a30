//! A copy between storages whose connection to a host behind ssh is lost: the copy connects again and goes on, as one between two
//! hosts does.

use super::ends::{End, Part, Transfer};
use super::{Order, Outcome, copy};
use crate::run::LATER;
use crate::run::patience::{Patience, Progress};
use anyhow::Result;
use hikyaku_console::{Kept, Tone, headline, say};
use hikyaku_pair::LostConnection;
use hikyaku_reach::settings;
use hikyaku_stores::Location;
use hikyaku_units::RetryPolicy;
use std::sync::Arc;
use std::time::Instant;

/// Copies. Begins again as long as the user wants if the connection to a host behind ssh is lost.
pub(super) fn persist(order: &Order<'_>, transfer: &Transfer, outcome: &mut Outcome) -> Result<()> {
    let Some(policy) = retries(order, transfer)? else { return copy(order, transfer, outcome) };
    let mut patience = Patience::new(policy);
    loop {
        outcome.held = Some(Vec::new());
        let done = copy(order, transfer, outcome);
        let is_lost = order.has_lost_host();
        let counts = outcome.attempt();
        let progress = if counts.sent() > 0 { Progress::Some } else { Progress::None };
        let pause = match &done {
            Err(error) if Kept::of(error).is_some() => None,
            _ if is_lost => patience.after(Instant::now(), &LostConnection.into(), progress),
            Err(error) => patience.after(Instant::now(), error, progress),
            Ok(()) => None,
        };
        let Some(pause) = pause else {
            tell(outcome);
            return done;
        };
        outcome.earlier.files += counts.files;
        outcome.earlier.bytes += counts.sent();
        outcome.progress = Arc::default();
        let lost = || "the connection is lost".to_owned();
        let why = done.as_ref().err().filter(|_| !is_lost).map_or_else(lost, headline);
        let secs = pause.as_secs();
        let text = format_args!("{why}; trying again in {secs} s (Ctrl-C ends it; {LATER})");
        say(Tone::Warning, text);
        if order.scope.sleep(pause).is_some() {
            return Err(outcome.kept.unwrap_or(Kept::Nothing).into());
        }
    }
}

/// How often and how long a lost copy is tried again; `None` if no host behind ssh takes part.
fn retries(order: &Order<'_>, transfer: &Transfer) -> Result<Option<RetryPolicy>> {
    let sources = transfer.parts.iter().flat_map(|Part(all)| all);
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

/// Reports the failures that no other connection has mended.
fn tell(outcome: &mut Outcome) {
    let held = outcome.held.take().unwrap_or_default();
    let messages: Vec<_> = held.iter().filter_map(|failed| outcome.add(failed)).collect();
    if !messages.is_empty() {
        outcome.tell(&messages);
    }
}
