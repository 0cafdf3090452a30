//! The progress of a transfer, in a line on the terminal.

use super::Meter as Shown;
use hikyaku_mover::{Meter, Plan};
use std::io::{Write, stderr};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

/// How often it is printed.
const UPDATE: Duration = Duration::from_millis(200);

/// The progress of a transfer.
pub(super) struct Progress {
    name: String,
    shown: Shown,
    meter: Meter,
    begin: Instant,
}

impl Progress {
    /// Of the files of a plan, which come from so many servers.
    pub(super) fn new((name, shown): (String, Shown), plan: &Plan, servers: usize) -> Self {
        let meter = Meter::new(servers);
        meter.add_plan(plan);
        Self { name, shown, meter, begin: Instant::now() }
    }

    /// Does the transfer, and prints how far it is.
    pub(super) fn shown_while<T>(&self, transfer: impl FnOnce(&Meter) -> T) -> T {
        if self.shown == Shown::Hidden {
            return transfer(&self.meter);
        }
        let done = thread::scope(|scope| {
            let (over, is_over) = channel::<()>();
            scope.spawn(move || {
                while is_over.recv_timeout(UPDATE) == Err(RecvTimeoutError::Timeout) {
                    self.print("");
                }
            });
            let done = transfer(&self.meter);
            drop(over);
            done
        });
        self.print("\n");
        done
    }

    fn print(&self, end: &str) {
        let ((_, total), moved) = (self.meter.found(), self.meter.written());
        let done = moved + self.meter.kept();
        let percent = (done * 100).checked_div(total).unwrap_or(100).min(100);
        let rate = moved as f64 / self.begin.elapsed().as_secs_f64().max(1e-3);
        let (name, done, rate) = (&self.name, done as f64 / 1e6, rate / 1e6);
        // If standard error cannot be written, the progress is not seen.
        let _ =
            write!(stderr(), "\r{name}  {percent:>3}%  {done:.1} MB  {rate:.1} MB/s\x1b[K{end}");
    }
}
