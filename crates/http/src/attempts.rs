//! Repeated requests after faults that may pass.

use crate::fault::Fault;
use hikyaku_units::RetryPolicy;
use std::time::Duration;

/// The sum of the waits that a server may ask for (`Retry-After`) without a byte between them. A request to a server that
/// asks for more fails.
const REQUESTED_WAITS_MAX: Duration = Duration::from_secs(600);

/// The waits that a server has asked for since its last byte.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Waited(Duration);

impl Waited {
    /// The time before the next attempt: the server's `Retry-After`, or else `own`. `None` if the server asks for more than
    /// ten minutes in all.
    pub fn next(&mut self, fault: &Fault, own: Duration) -> Option<Duration> {
        let Some(requested) = fault.retry_after() else { return Some(own) };
        let waited = self.0.saturating_add(requested);
        if waited > REQUESTED_WAITS_MAX {
            return None;
        }
        self.0 = waited;
        Some(requested)
    }
}

/// The attempts of one request, or of one answer after the other.
#[derive(Clone, Copy, Debug)]
pub struct Attempts {
    policy: RetryPolicy,
    failures: u32,
    waited: Waited,
}

impl Attempts {
    /// Attempts with the waits of `policy`, unless a server asks for another wait.
    pub fn new(policy: RetryPolicy) -> Self {
        Self { policy, failures: 0, waited: Waited::default() }
    }

    /// Bytes have arrived: earlier failures do not count.
    pub fn succeed(&mut self) {
        *self = Self::new(self.policy);
    }

    /// The time before the next attempt after a fault. `None`: the fault does not pass, or this was the last of `retries`
    /// repeated attempts.
    pub fn next(&mut self, fault: &Fault, retries: u32) -> Option<Duration> {
        self.failures += 1;
        let wait = self.waited.next(fault, self.policy.wait(self.failures));
        wait.filter(|_| fault.may_pass() && self.failures <= retries)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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

    #[test]
    fn attempts_are_counted_from_the_last_byte() {
        let (busy, gone) = (Fault::Closed, Fault::Status { code: 404, retry_after: None });
        let mut attempts = Attempts::new(RetryPolicy::of_web(Duration::from_secs(1)));
        let waits = |attempts: &mut Attempts| [(); 3].map(|()| attempts.next(&busy, 2));
        let seconds = |seconds| Some(Duration::from_secs(seconds));
        assert_eq!(waits(&mut attempts), [seconds(1), seconds(2), None]);
        attempts.succeed();
        assert_eq!(waits(&mut attempts), [seconds(1), seconds(2), None]);
        attempts.succeed();
        assert_eq!(attempts.next(&gone, 2), None);
    }
}
