//! Going on by itself after an outage that no connection outlives: a network that is away for hours, a
//! laptop that slept.

use crate::outcome::exit_code;
use hikyaku_console::{ExitCode, Kept};
use hikyaku_pair::LostConnection;
use hikyaku_units::{Retries, RetryPolicy};
use std::time::{Duration, Instant};

/// How long a lost copy is tried again.
pub(crate) struct Patience {
    /// When the connection was lost.
    lost: Option<Instant>,
    /// The attempts since then.
    retries: Retries,
}

/// Which attempt of a copy this is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Attempt {
    /// The one that the user sees begin.
    First,
    /// It goes on where one before it was lost.
    Again,
}

/// Whether an attempt brought anything.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Progress {
    Some,
    None,
    /// Bytes went to a stream, which cannot be begun again.
    Streamed,
    /// Bytes were read of a stream, which cannot be read again.
    Spent,
}

impl Progress {
    /// What it means that a copy is stopped which has come so far.
    pub(crate) const fn interrupted(self) -> Kept {
        match self {
            Self::Some | Self::None => Kept::Everything,
            Self::Streamed | Self::Spent => Kept::Spent,
        }
    }

    /// Why a copy that has come so far is not begun again, and what its user can do.
    pub(crate) const fn hindrance(self) -> Option<(&'static str, &'static str)> {
        match self {
            Self::Some | Self::None => None,
            Self::Streamed => Some((
                "what was written to the target cannot be taken back: the copy is not begun again",
                "try: the same command with a new target",
            )),
            Self::Spent => Some((
                "what was read of the source cannot be read again: the copy is not begun again",
                "try: the command that writes into the pipe and this one, both again",
            )),
        }
    }
}

/// The policy has no jitter, so any number does.
const NO_JITTER: f64 = 0.5;

impl Patience {
    pub(crate) const fn new(policy: RetryPolicy) -> Self {
        Self { lost: None, retries: Retries::new(policy) }
    }

    /// How long to wait before the next attempt; none if there is to be none. A first attempt that does
    /// not come about at all is the user's to mend.
    pub(crate) fn after(
        &mut self,
        now: Instant,
        error: &anyhow::Error,
        progress: Progress,
    ) -> Option<Duration> {
        let is_lost = error.chain().any(|link| link.is::<LostConnection>());
        let is_away = ExitCode::of(error, &[exit_code]) == ExitCode::MayPass;
        if is_lost && (self.lost.is_none() || progress == Progress::Some) {
            self.lost = Some(now);
            self.retries.reset();
        }
        if !(is_lost || is_away) || self.retries.is_over(now.duration_since(self.lost?)) {
            return None;
        }
        Some(self.retries.next(NO_JITTER))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::anyhow;
    use hikyaku_reach::SshFailed;

    const HOUR: Duration = Duration::from_secs(3600);
    const LONGEST_WAIT: Duration = Duration::from_secs(60);

    fn lost() -> anyhow::Error {
        anyhow::Error::new(LostConnection).context("try: something").context("it is lost")
    }

    fn away() -> anyhow::Error {
        anyhow::Error::new(SshFailed::Ended { host: "far".to_owned() }).context("try: ssh far")
    }

    #[test]
    fn what_never_began_is_not_tried_again() {
        let mut patience = Patience::new(RetryPolicy::COPY.within(HOUR));
        assert_eq!(patience.after(Instant::now(), &away(), Progress::None), None);
        assert_eq!(patience.after(Instant::now(), &anyhow!("disk full"), Progress::Some), None);
    }

    #[test]
    fn a_lost_copy_is_tried_until_patience_ends() {
        let (mut patience, begin) = (Patience::new(RetryPolicy::COPY.within(HOUR)), Instant::now());
        let mut now = begin;
        let mut pause = patience.after(now, &lost(), Progress::Some).unwrap();
        assert_eq!(pause, RetryPolicy::COPY.wait(1));
        let mut tries = 0;
        loop {
            now += pause;
            tries += 1;
            match patience.after(now, &away(), Progress::None) {
                Some(next) => pause = next,
                None => break,
            }
            assert!(pause <= LONGEST_WAIT && tries < 100);
        }
        assert!(now - begin >= HOUR && now - begin < HOUR + LONGEST_WAIT, "{:?}", now - begin);
        assert_eq!(patience.after(now, &lost(), Progress::None), None);
        // An attempt that brought something begins a new wait.
        assert_eq!(patience.after(now, &lost(), Progress::Some), Some(RetryPolicy::COPY.wait(1)));
    }

    #[test]
    fn other_failures_end_it() {
        let mut patience = Patience::new(RetryPolicy::COPY.within(HOUR));
        let now = Instant::now();
        assert!(patience.after(now, &lost(), Progress::Some).is_some());
        assert_eq!(patience.after(now, &anyhow!("disk full"), Progress::Some), None);
        let mut none = Patience::new(RetryPolicy::COPY.within(Duration::ZERO));
        assert_eq!(none.after(now, &lost(), Progress::Some), None);
    }
}
