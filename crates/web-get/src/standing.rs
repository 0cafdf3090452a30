//! The servers that have a file, and what became of each during a download.

use crate::metalink::Expect;
use crate::offer::{Known, Offer, Parts, Proof};
use hikyaku_http::{Fault, Head, Place};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The waits that servers ask for, of all attempts without a byte between them. A server that wants more is given up: who
/// asks it again may as well be the user.
const ASKED_WAITS_MAX: Duration = Duration::from_secs(600);

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
    /// Failures in a row without a byte between. Those of requests that were sent beside each other are one.
    pub(crate) failures: u32,
    /// When the last of them was counted.
    pub(crate) failed: Instant,
    pub(crate) not_before: Instant,
    /// The time that it has asked for since its last byte.
    pub(crate) waited: Waited,
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
        known: &Known,
    ) -> Result<Range<u64>, Fault> {
        if let Some(offer) = self.offer() {
            return offer.check_part(head, asked, known.proof);
        }
        let offer = Offer::of(head, Some(asked))?;
        check_same(&offer, &known.offer)?;
        if offer.parts == Parts::Refused {
            return Err(Fault::NoRanges);
        }
        if known.proof == Proof::Version && offer.proof(&Expect::default()) == Proof::None {
            return Err(Fault::Unrecognised);
        }
        let range = offer.check_part(head, asked, known.proof)?;
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
        let (waited, workers, flowing) = (Waited::default(), 0, 0);
        Self { fate, failures: 0, failed: now, not_before: now, waited, workers, flowing }
    }

    /// A request that was begun at this instant failed, and the next one may be sent after `wait` of the number of
    /// failures.
    pub(crate) fn fail(&mut self, begun: Instant, now: Instant, wait: impl Fn(u32) -> Duration) {
        if begun >= self.failed {
            self.failures += 1;
            self.failed = now;
        }
        self.not_before = now + wait(self.failures);
    }

    /// Bytes have come.
    pub(crate) fn succeed(&mut self) {
        self.failures = 0;
        self.waited = Waited::default();
    }

    pub(crate) fn may_be_asked(&self, now: Instant) -> bool {
        self.fate == Fate::Used && now >= self.not_before
    }
}

/// What servers have made this end wait (`Retry-After`).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Waited(Duration);

impl Waited {
    /// The time before the next attempt: what the server asks for, or else `own`. `None` if the server asks for more than
    /// is waited for.
    pub(crate) fn next(&mut self, fault: &Fault, own: Duration) -> Option<Duration> {
        let Some(asked) = fault.retry_after() else { return Some(own) };
        let waited = self.0.saturating_add(asked);
        if waited > ASKED_WAITS_MAX {
            return None;
        }
        self.0 = waited;
        Some(asked)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hikyaku_units::RetryPolicy;

    #[test]
    fn failures_beside_each_other_are_one() {
        let begin = Instant::now();
        let at = |seconds| begin + Duration::from_secs(seconds);
        let mut standing = Standing::new(Fate::Used, begin);
        let wait = |failures| RetryPolicy::of_web(Duration::from_secs(1)).wait(failures);
        for _ in 0..10 {
            standing.fail(at(1), at(2), wait);
        }
        assert_eq!((standing.failures, standing.not_before), (1, at(3)));
        standing.fail(at(3), at(4), wait);
        assert_eq!((standing.failures, standing.not_before), (2, at(6)));
    }

    #[test]
    fn a_server_that_asks_for_too_long_a_wait_is_given_up() {
        let fault = |seconds: Option<u64>| Fault::Status {
            code: 503,
            retry_after: seconds.map(Duration::from_secs),
        };
        let own = Duration::from_secs(1);
        let mut waited = Waited::default();
        assert_eq!(waited.next(&fault(Some(100_000)), own), None);
        assert_eq!(waited.next(&fault(Some(400)), own), Some(Duration::from_secs(400)));
        assert_eq!(waited.next(&fault(None), own), Some(own));
        assert_eq!(waited.next(&fault(Some(400)), own), None, "both together");
        assert_eq!(waited.next(&fault(Some(u64::MAX)), own), None);
    }
}
