//! The servers that have a file, and what became of each during a download.

use crate::http::client::Place;
use crate::http::fault::Fault;
use crate::http::head::Head;
use crate::offer::{Offer, Parts};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The longest wait between two attempts that no server asked for.
const BACKOFF_MAX: Duration = Duration::from_secs(30);

/// Where the bytes of a file may come from.
#[derive(Debug)]
pub(crate) struct Source {
    pub(crate) place: Place,
    offer: Mutex<Option<Offer>>,
    /// The server answers `If-Range` with the whole file, though that was not changed.
    is_without_if_range: AtomicBool,
}

/// How a source is doing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Standing {
    pub(crate) fate: Fate,
    /// Failures in a row without a byte between.
    pub(crate) failures: u32,
    pub(crate) not_before: Instant,
    /// Workers that use it.
    pub(crate) workers: usize,
    /// Those of them to which bytes flow.
    pub(crate) flowing: usize,
}

/// Whether a source is used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Fate {
    Used,
    /// For this time: another attempt with other sources is under way.
    Excluded,
    /// It failed or lied.
    Dropped,
}

impl Source {
    pub(crate) fn new(place: Place) -> Self {
        Self { place, offer: Mutex::default(), is_without_if_range: AtomicBool::new(false) }
    }

    /// What it has offered; `None` before its first answer.
    pub(crate) fn offer(&self) -> Option<Offer> {
        self.offer.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn set_offer(&self, offer: Option<Offer>) {
        *self.offer.lock().unwrap_or_else(PoisonError::into_inner) = offer;
    }

    /// The value of `If-Range` for its next request.
    pub(crate) fn if_range(&self) -> Option<String> {
        if self.is_without_if_range.load(Ordering::Relaxed) {
            return None;
        }
        self.offer()?.version.if_range
    }

    /// Its next requests have no `If-Range`: their answers are compared in place of that.
    pub(crate) fn leave_if_range(&self) {
        self.is_without_if_range.store(true, Ordering::Relaxed);
    }

    /// Checks an answer before a byte of it is used. `known` is what another source has offered of the same file.
    pub(crate) fn check(
        &self,
        head: &Head,
        asked: &Range<u64>,
        known: &Offer,
    ) -> Result<Range<u64>, Fault> {
        if let Some(offer) = self.offer() {
            return offer.check_part(head, asked);
        }
        let offer = Offer::of(head, Some(asked))?;
        check_same(&offer, known)?;
        if offer.parts == Parts::Refused {
            return Err(Fault::NoRanges);
        }
        let range = offer.check_part(head, asked)?;
        self.set_offer(Some(offer));
        Ok(range)
    }
}

/// Whether two servers have the same file, as far as they tell.
fn check_same(offer: &Offer, known: &Offer) -> Result<(), Fault> {
    if let (Some(one), Some(other)) = (offer.total, known.total)
        && one != other
    {
        return Err(Fault::OtherFile(format!("{one} bytes in place of {other}")));
    }
    for digest in &offer.digests {
        let others = known.digests.iter().filter(|other| other.function == digest.function);
        if others.into_iter().any(|other| other != digest) {
            return Err(Fault::OtherFile(format!("it tells another {}", digest.function)));
        }
    }
    Ok(())
}

impl Standing {
    pub(crate) fn new(fate: Fate, now: Instant) -> Self {
        Self { fate, failures: 0, not_before: now, workers: 0, flowing: 0 }
    }

    pub(crate) fn may_be_asked(&self, now: Instant) -> bool {
        self.fate == Fate::Used && now >= self.not_before
    }
}

/// The time before attempt number `failures` after the first.
pub(crate) fn backoff(wait: Duration, failures: u32) -> Duration {
    wait.saturating_mul(1 << failures.saturating_sub(1).min(10)).min(BACKOFF_MAX.max(wait))
}
