//! The output while a program is sent.

use super::place::Place;
use hikyaku_console::{Noise, print_error};
use hikyaku_units::DataSize;
use std::cell::Cell;
use std::io::{IsTerminal, stderr};
use std::time::{Duration, Instant};

/// A line when a program begins to be sent, and at a terminal how far it is.
pub struct Progress<'a> {
    host: &'a str,
    place: &'a Place,
    /// When a line was printed last; `None` before the first one.
    printed: Cell<Option<Instant>>,
}

/// The time between two lines, and before the first of them.
const EVERY: Duration = Duration::from_secs(1);
/// Clears a terminal's line from the cursor on.
const CLEAR: &str = "\x1b[K";

impl<'a> Progress<'a> {
    /// Of a program that goes to this place on this host.
    pub const fn new(host: &'a str, place: &'a Place) -> Self {
        Self { host, place, printed: Cell::new(None) }
    }

    /// The host has `sent` of `size` bytes.
    pub fn show(&self, sent: u64, size: u64) {
        if Noise::chosen() == Noise::Quiet {
            return;
        }
        let Some(printed) = self.printed.get() else {
            let (size, place) = (DataSize::from_bytes(size), self.place.shown());
            print_error(format_args!(
                "hikyaku: copying hikyaku ({size}) to {place} on {}\n",
                self.host
            ));
            return self.printed.set(Some(Instant::now()));
        };
        if printed.elapsed() < EVERY || !stderr().is_terminal() {
            return;
        }
        self.printed.set(Some(Instant::now()));
        let percent = sent.saturating_mul(100) / size.max(1);
        let [sent, size] = [sent, size].map(DataSize::from_bytes);
        print_error(format_args!("\r  {percent} %  {sent} of {size}{CLEAR}\r"));
    }
}

impl Drop for Progress<'_> {
    fn drop(&mut self) {
        if self.printed.get().is_some() && stderr().is_terminal() {
            print_error(CLEAR);
        }
    }
}
