//! What the user sees while it is copied, and when it is done.

mod events;

use crate::engine::{Meter, Tally};
use events::Event;
use hikyaku_units::{DataSize, Rate};
use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

/// Who looks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Output {
    /// A person: a line that is written over, if standard error is a terminal.
    Person,
    /// Nobody: errors only.
    Quiet,
    /// A program: events on standard output.
    Events,
}

/// Follows a copy.
pub(crate) struct Show {
    output: Output,
    began: Instant,
    /// Bytes at earlier times, for the present rate.
    past: Vec<(Instant, u64)>,
    told: Option<Instant>,
}

/// The rate is that of so long.
const LATELY: Duration = Duration::from_secs(2);
/// How often it is shown.
pub(crate) const EVERY: Duration = Duration::from_millis(200);
/// How often a program is told.
const EVENTS_EVERY: Duration = Duration::from_millis(500);

impl Show {
    pub(crate) fn new(output: Output) -> Self {
        let is_seen = std::io::stderr().is_terminal();
        let output = match output {
            Output::Person if !is_seen => Output::Quiet,
            output => output,
        };
        Self { output, began: Instant::now(), past: Vec::new(), told: None }
    }

    /// Shows how far it is; gives the number of failures that were told.
    pub(crate) fn update(&mut self, meter: &Meter) -> usize {
        let now = Instant::now();
        let tally = meter.tally();
        self.past.retain(|(at, _)| now.duration_since(*at) <= LATELY);
        self.past.push((now, tally.sent()));
        let failures = meter.take_failures();
        for failure in &failures {
            self.clear();
            eprintln!("hikyaku: {failure}");
            self.event(&Event::Failure { why: failure });
        }
        match self.output {
            Output::Quiet => {}
            Output::Person => {
                eprint!("\r{}\x1b[K", line(&tally, self.rate()));
                let _ = std::io::stderr().flush();
            }
            Output::Events => {
                if self.told.is_none_or(|at| now.duration_since(at) >= EVENTS_EVERY) {
                    self.told = Some(now);
                    self.event(&Event::progress(&tally, self.began.elapsed(), self.rate()));
                }
            }
        }
        failures.len()
    }

    fn event(&self, event: &Event<'_>) {
        if self.output == Output::Events {
            // If nobody reads any more, the copy is still wanted.
            let _ = writeln!(std::io::stdout(), "{}", event.line());
        }
    }

    fn rate(&self) -> Option<Rate> {
        let ((first, before), (last, now)) = (self.past.first()?, self.past.last()?);
        let seconds = last.duration_since(*first).as_secs_f64();
        (seconds > 0.1).then(|| Rate::from_bytes_per_sec((now - before) as f64 / seconds))
    }

    fn clear(&self) {
        if self.output == Output::Person {
            eprint!("\r\x1b[K");
        }
    }

    /// The last word; gives the number of failures that were told.
    pub(crate) fn finish(&mut self, meter: &Meter, is_done: bool) -> usize {
        let failures = self.update(meter);
        self.clear();
        let (tally, took) = (meter.tally(), self.began.elapsed());
        if is_done {
            self.event(&Event::end(&tally, took));
            if self.output == Output::Person {
                eprintln!("{}", summary(&tally, took));
            }
        }
        failures
    }
}

fn summary(tally: &Tally, took: Duration) -> String {
    let seconds = took.as_secs_f64();
    let rate = Rate::from_bytes_per_sec(tally.sent() as f64 / seconds.max(1e-3));
    let size = DataSize::from_bytes(tally.sent());
    let files = if tally.files == 1 { "file" } else { "files" };
    let kept = match tally.kept_bytes {
        0 => String::new(),
        kept => format!("; {} were there", DataSize::from_bytes(kept)),
    };
    format!("{} {files}, {size} in {seconds:.1} s, {rate}{kept}", tally.files)
}

fn line(tally: &Tally, rate: Option<Rate>) -> String {
    let Tally { total_files, total_bytes, files, bytes, .. } = *tally;
    let percent = (bytes * 100).checked_div(total_bytes).unwrap_or(0).min(100);
    let (size, total) = (DataSize::from_bytes(bytes), DataSize::from_bytes(total_bytes));
    let left = rate.filter(|rate| rate.bytes_per_sec() > 1.0).map_or_else(String::new, |rate| {
        let seconds = total_bytes.saturating_sub(bytes) as f64 / rate.bytes_per_sec();
        format!("  {} left", clock(seconds))
    });
    let rate = rate.map_or_else(String::new, |rate| format!("  {rate}"));
    format!("{percent:3} %  {size} of {total}  {files}/{total_files} files{rate}{left}")
}

/// Seconds as people read them.
fn clock(seconds: f64) -> String {
    let seconds = seconds.min(360_000.0).ceil() as u64;
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    match hours {
        0 => format!("{minutes}:{seconds:02}"),
        hours => format!("{hours}:{minutes:02}:{seconds:02}"),
    }
}

#[cfg(test)]
mod tests;
