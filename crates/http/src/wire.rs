//! The waits of a connection: a stop, and the time without a byte, end them.

use crate::fault::Fault;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::runtime::{Builder, Runtime};
use tokio::time::timeout;

/// The time between two checks of the stop of a connection that waits for bytes.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// Ends the requests of a download. Clones share one flag.
#[derive(Clone, Debug, Default)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    /// Ends them.
    pub fn set(&self) {
        self.0.store(true, Ordering::Release);
    }

    /// Whether they are to end.
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }

    /// Fails if they are to end.
    ///
    /// # Errors
    ///
    /// [`Fault::Stopped`].
    pub fn check(&self) -> Result<(), Fault> {
        if self.is_set() { Err(Fault::Stopped) } else { Ok(()) }
    }

    /// Waits for this time, or until the stop is set.
    pub fn sleep(&self, time: Duration) {
        let until = Instant::now() + time;
        while !self.is_set() {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            std::thread::sleep(left.min(Duration::from_millis(50)));
        }
    }
}

/// The bytes of a connection: TCP, or TLS over it.
pub(crate) trait Stream: AsyncRead + AsyncWrite + Send + Sync + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Sync + Unpin> Stream for T {}

/// Runs the operations of a connection on the thread that waits for them. The runtime has no thread of its own.
pub(crate) struct Wire {
    runtime: Runtime,
    stop: Stop,
    patience: Duration,
}

impl Wire {
    /// Operations that `stop` ends, and that may wait for `patience` at most.
    pub(crate) fn new(patience: Duration, stop: Stop) -> Result<Self, Fault> {
        let runtime = Builder::new_current_thread().enable_all().build();
        Ok(Self { runtime: runtime.map_err(Fault::Connection)?, stop, patience })
    }

    /// The runtime, which streams are registered with.
    pub(crate) const fn runtime(&self) -> &Runtime {
        &self.runtime
    }

    /// Replaces the stop.
    pub(crate) fn end_with(&mut self, stop: &Stop) {
        self.stop = stop.clone();
    }

    /// Runs an operation to its end. `late` is the fault of one that takes too long.
    pub(crate) fn run<T>(
        &self,
        operation: impl Future<Output = T>,
        late: fn(Duration) -> Fault,
    ) -> Result<T, Fault> {
        self.runtime.block_on(async {
            let (begin, mut operation) = (Instant::now(), pin!(operation));
            loop {
                self.stop.check()?;
                if let Ok(done) = timeout(LOOK_EVERY, operation.as_mut()).await {
                    return Ok(done);
                }
                if begin.elapsed() >= self.patience {
                    return Err(late(self.patience));
                }
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::pending;
    use std::thread;

    #[test]
    fn a_stop_ends_a_wait() {
        let mut wire = Wire::new(Duration::from_secs(60), Stop::default()).unwrap();
        let stop = Stop::default();
        wire.end_with(&stop);
        thread::scope(|scope| {
            let waiting = scope.spawn(|| wire.run(pending::<()>(), Fault::Slow));
            stop.set();
            assert!(matches!(waiting.join().unwrap(), Err(Fault::Stopped)));
        });
    }

    #[test]
    fn an_operation_that_takes_too_long_is_given_up() {
        let patience = Duration::from_millis(1);
        let wire = Wire::new(patience, Stop::default()).unwrap();
        let late = wire.run(pending::<()>(), Fault::Silent);
        assert!(matches!(late, Err(Fault::Silent(time)) if time == patience), "{late:?}");
    }
}
