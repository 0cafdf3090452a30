//! When a failed attempt is made again: one rule, and one table with the waits of all commands.

use core::time::Duration;

/// Waits between attempts: the first one, and each further one twice as long up to the longest.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RetryPolicy {
    first: Duration,
    longest: Duration,
    /// A wait is shorter or longer by up to this part of it.
    jitter_percent: u32,
    /// `None` for ever.
    limit: Option<Duration>,
}

/// The table of waits.
///
/// Programs that lose one server at the same time have [jitter](Self::with_jitter), so that they do not all connect to it
/// again in the same moment.
impl RetryPolicy {
    /// A copy through ssh whose connection is lost. Each attempt logs in, so the waits grow to a minute. The limit is a
    /// night and the day after it. No jitter: the user reads the wait.
    pub const COPY: Self = Self::doubling(Duration::from_secs(2), Duration::from_secs(60))
        .within(Duration::from_secs(24 * 3600));
    /// A server of a download that is lost or silent while others send. No jitter: the scheduler is deterministic.
    pub const DOWNLOAD: Self = Self::doubling(Duration::from_secs(5), Duration::from_secs(60));
    /// A server of an upload that is lost. Files may have to wait for this one, so it is tried sooner than in a download.
    pub const UPLOAD: Self =
        Self::doubling(Duration::from_secs(2), Duration::from_secs(30)).with_jitter(20);
    /// A server of a mount. Programs that use its files are blocked meanwhile, so the waits stay short.
    pub const MOUNT: Self =
        Self::doubling(Duration::from_millis(500), Duration::from_secs(5)).with_jitter(20);
    /// The far gateway of a proxy. Programs that connect meanwhile are refused, and an attempt may be a login by ssh.
    pub const PROXY: Self =
        Self::doubling(Duration::from_millis(500), Duration::from_secs(30)).with_jitter(20);
    /// A server of pictures. An attempt is made only when a picture is wanted.
    pub const VIEW: Self = Self::constant(Duration::from_secs(2));
    /// A web server that reports that it is busy, at least: a first wait of the user's may be shorter.
    pub const WEB_BUSY: Self = Self::of_web(Duration::from_millis(100));

    /// A web server whose user has chosen the first wait.
    pub const fn of_web(first: Duration) -> Self {
        const LONGEST: Duration = Duration::from_secs(30);
        let longest = if first.as_nanos() > LONGEST.as_nanos() { first } else { LONGEST };
        Self::doubling(first, longest)
    }
}

impl RetryPolicy {
    /// The first wait, and the longest one.
    pub const fn doubling(first: Duration, longest: Duration) -> Self {
        Self { first, longest, jitter_percent: 0, limit: None }
    }

    /// One wait for all failures.
    pub const fn constant(wait: Duration) -> Self {
        Self::doubling(wait, wait)
    }

    /// Makes waits shorter or longer by up to `percent` of their length. Default: 0.
    #[must_use]
    pub const fn with_jitter(self, percent: u32) -> Self {
        Self { jitter_percent: percent, ..self }
    }

    /// Allows no attempt after this time since the first failure. Default: no limit.
    #[must_use]
    pub const fn within(self, limit: Duration) -> Self {
        Self { limit: Some(limit), ..self }
    }

    /// The wait without jitter after this number of failures in a row: 1 after the first failure.
    pub fn wait(&self, failures: u32) -> Duration {
        let doublings = failures.saturating_sub(1).min(31);
        self.first.saturating_mul(1 << doublings).min(self.longest)
    }
}

/// Failures in a row under a policy.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Retries {
    policy: RetryPolicy,
    failures: u32,
}

impl Retries {
    /// A row without a failure.
    pub const fn new(policy: RetryPolicy) -> Self {
        Self { policy, failures: 0 }
    }

    /// The wait after one failure more. `random` is from 0 to 1 and chooses within the jitter.
    pub fn next(&mut self, random: f64) -> Duration {
        self.failures = self.failures.saturating_add(1);
        let wait = self.policy.wait(self.failures);
        let part = f64::from(self.policy.jitter_percent.min(100)) / 100.0;
        wait.mul_f64(1.0 + part * (2.0 * random.clamp(0.0, 1.0) - 1.0))
    }

    /// Whether no attempt is to follow a failure that is this long after the first one in the row.
    pub fn is_over(&self, since_first: Duration) -> bool {
        self.policy.limit.is_some_and(|limit| since_first >= limit)
    }

    /// An attempt has succeeded: the next failure is the first one again.
    pub const fn reset(&mut self) {
        self.failures = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);
    const MIDDLE: f64 = 0.5;

    #[test]
    fn waits_double_up_to_the_longest_one() {
        let policy = RetryPolicy::doubling(SECOND, 30 * SECOND);
        for (failures, seconds) in [(0, 1), (1, 1), (2, 2), (3, 4), (6, 30), (u32::MAX, 30)] {
            assert_eq!(policy.wait(failures), seconds * SECOND, "{failures}");
        }
        assert_eq!(RetryPolicy::constant(SECOND).wait(9), SECOND);
    }

    #[test]
    fn a_success_begins_the_waits_anew() {
        let mut retries = Retries::new(RetryPolicy::doubling(SECOND, 30 * SECOND));
        assert_eq!([retries.next(MIDDLE), retries.next(MIDDLE)], [SECOND, 2 * SECOND]);
        retries.reset();
        assert_eq!(retries.next(MIDDLE), SECOND);
    }

    #[test]
    fn no_attempt_follows_after_the_limit() {
        let endless = RetryPolicy::constant(SECOND);
        let is_over = |policy, seconds: u32| Retries::new(policy).is_over(seconds * SECOND);
        let limited = endless.within(10 * SECOND);
        assert_eq!([9, 10, 11].map(|seconds| is_over(limited, seconds)), [false, true, true]);
        assert!(is_over(endless.within(Duration::ZERO), 0) && !is_over(endless, u32::MAX));
    }

    #[test]
    fn jitter_stays_within_its_share() {
        let policy = RetryPolicy::constant(10 * SECOND).with_jitter(20);
        for (random, seconds) in [(0.0, 8), (0.5, 10), (1.0, 12), (7.0, 12)] {
            assert_eq!(Retries::new(policy).next(random), seconds * SECOND, "{random}");
        }
    }

    #[test]
    fn a_longer_first_wait_of_a_user_holds() {
        assert_eq!(RetryPolicy::of_web(90 * SECOND).wait(5), 90 * SECOND);
        assert_eq!(RetryPolicy::of_web(SECOND).wait(9), 30 * SECOND);
    }
}
