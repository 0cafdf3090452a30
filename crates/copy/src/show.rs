//! What the user sees while it is copied, and when it is done.

mod events;

use crate::engine::{End, Meter, Tally};
use events::Event;
use hikyaku_console::ExitCode;
use hikyaku_transfer::{LimitedBy, PathFigures};
use hikyaku_units::{DataSize, Rate};
use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

/// Who looks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Output {
    /// A person: a line that is written over, if standard error is a terminal.
    Person,
    /// The same, and a line a second if it is none.
    Lines,
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
    /// When bytes or files last arrived, and how many there were then.
    moved: (Instant, u64, u64),
    stats: Option<Stats>,
    hosts: Hosts,
    /// What was wrong with standard output first.
    lost: Option<io::Error>,
}

/// The other machines of a copy, as they were named.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Hosts {
    /// The one that sends.
    pub(crate) from: Option<String>,
    /// The one that writes.
    pub(crate) to: Option<String>,
}

impl Hosts {
    /// The machine at an end, if it is not this one.
    pub(crate) fn at(&self, end: End) -> Option<&str> {
        match end {
            End::Here => None,
            End::There => self.from.as_deref().or(self.to.as_deref()),
            End::From => self.from.as_deref(),
            End::To => self.to.as_deref(),
        }
    }
}

/// Lines of figures for standard error, and what the last one counted from.
struct Stats {
    every: Duration,
    last: Instant,
    bytes: u64,
    path: PathFigures,
}

/// From so long on it is said that nothing arrives.
const STILL: Duration = Duration::from_secs(3);
/// The rate is that of so long.
const LATELY: Duration = Duration::from_secs(2);
/// How often it is shown.
pub(crate) const EVERY: Duration = Duration::from_millis(200);
/// How often a program is told.
const EVENTS_EVERY: Duration = Duration::from_millis(500);
/// How often a line is written that stays.
const LINES_EVERY: Duration = Duration::from_secs(1);

impl Show {
    pub(crate) fn new(output: Output, stats_every: Option<Duration>, hosts: Hosts) -> Self {
        let is_seen = std::io::stderr().is_terminal();
        let output = match output {
            Output::Person if !is_seen => Output::Quiet,
            Output::Lines if is_seen => Output::Person,
            output => output,
        };
        let began = Instant::now();
        let stats = stats_every.map(|every| Stats {
            every,
            last: began,
            bytes: 0,
            path: PathFigures::default(),
        });
        let (past, moved) = (Vec::new(), (began, 0, 0));
        // Of a copy that is over within a second its last word is enough.
        let told = (output == Output::Lines).then_some(began);
        Self { output, began, past, told, moved, stats, hosts, lost: None }
    }

    /// Shows how far it is; gives the number of failures that were told.
    pub(crate) fn update(&mut self, meter: &Meter) -> usize {
        let now = Instant::now();
        let tally = meter.tally();
        self.past.retain(|(at, _)| now.duration_since(*at) <= LATELY);
        self.past.push((now, tally.sent()));
        if (tally.bytes, tally.files) != (self.moved.1, self.moved.2) {
            self.moved = (now, tally.bytes, tally.files);
        }
        let failures = meter.take_failures();
        for failure in &failures {
            self.clear();
            let host = self.hosts.at(failure.end).map(str::to_owned);
            let line = failure.line(host.as_deref());
            eprintln!("hikyaku: {line}");
            self.event(&Event::Failure {
                why: &line,
                host: host.as_deref(),
                path: &failure.place,
                kind: failure.kind,
                text: &failure.text,
            });
        }
        for remark in meter.take_remarks() {
            self.clear();
            eprintln!("hikyaku: {remark}");
        }
        for note in meter.take_notes() {
            self.clear();
            match self.output {
                Output::Events => self.event(&Event::Would { path: &note }),
                Output::Person | Output::Lines | Output::Quiet => self.print(&note),
            }
        }
        self.tell_stats(meter, &tally, now);
        self.tell_progress(meter, &tally, now);
        failures.len()
    }

    /// How far it is.
    fn tell_progress(&mut self, meter: &Meter, tally: &Tally, now: Instant) {
        let is_due = |every| self.told.is_none_or(|at| now.duration_since(at) >= every);
        match self.output {
            Output::Quiet => {}
            Output::Person => {
                eprint!("\r{}\x1b[K", cut(&self.line(meter, tally, now), width()));
                let _ = std::io::stderr().flush();
            }
            Output::Lines if is_due(LINES_EVERY) => {
                self.told = Some(now);
                eprintln!("{}", self.line(meter, tally, now));
            }
            Output::Events if is_due(EVENTS_EVERY) => {
                self.told = Some(now);
                let (took, rate) = (self.began.elapsed(), self.rate());
                self.event(&Event::progress(tally, took, rate, &meter.path()));
            }
            Output::Lines | Output::Events => {}
        }
    }

    fn line(&self, meter: &Meter, tally: &Tally, now: Instant) -> String {
        let still = now.duration_since(self.moved.0);
        match still < STILL {
            true => line(tally, self.rate(), &meter.path()),
            false => still_line(tally, still),
        }
    }

    /// Rate and what was sent again since the last line (P-SCP-4).
    fn tell_stats(&mut self, meter: &Meter, tally: &Tally, now: Instant) {
        let Some(stats) = &mut self.stats else { return };
        let passed = now.duration_since(stats.last);
        if passed < stats.every {
            return;
        }
        let (path, bytes) = (meter.path(), tally.sent());
        let line = stats_line(&path, &stats.path, bytes.saturating_sub(stats.bytes), passed);
        let at = now.duration_since(self.began).as_secs_f64();
        *stats = Stats { every: stats.every, last: now, bytes, path };
        self.clear();
        eprintln!("{at:8.1} s  {line}");
    }

    fn event(&mut self, event: &Event<'_>) {
        if self.output == Output::Events {
            self.print(&event.line());
        }
    }

    /// If nobody reads any more, or what is written gets lost, the copy is still wanted.
    fn print(&mut self, line: &str) {
        if let Err(error) = writeln!(io::stdout(), "{line}") {
            self.lost.get_or_insert(error);
        }
    }

    fn rate(&self) -> Option<Rate> {
        let ((first, before), (last, now)) = (self.past.first()?, self.past.last()?);
        let seconds = last.duration_since(*first).as_secs_f64();
        (seconds > 0.1)
            .then(|| Rate::from_bytes_per_sec(now.saturating_sub(*before) as f64 / seconds))
    }

    fn clear(&self) {
        if self.output == Output::Person {
            eprint!("\r\x1b[K");
        }
    }

    /// The last word.
    pub(crate) fn finish(mut self, meter: &Meter, is_done: bool) -> Shown {
        let failures = self.update(meter);
        self.clear();
        let more = meter.more_failures();
        if more > 0 {
            eprintln!("hikyaku: {more} more could not be copied for these reasons");
        }
        let failures = failures + usize::try_from(more).unwrap_or(usize::MAX);
        let (tally, took) = (meter.tally(), self.began.elapsed());
        if is_done && matches!(self.output, Output::Person | Output::Lines) {
            eprintln!("{}", summary(&tally, took));
        }
        Shown { failures, tally, lost: self.lost }
    }
}

/// What was shown of a copy.
pub(crate) struct Shown {
    /// Failures since the last call of [`Show::update`].
    pub(crate) failures: usize,
    pub(crate) tally: Tally,
    /// What was wrong with standard output, if anything was.
    pub(crate) lost: Option<io::Error>,
}

/// The last event of a run, however it ended.
pub(crate) fn print_end(
    tally: &Tally,
    took: Duration,
    code: ExitCode,
    error: Option<&str>,
) -> io::Result<()> {
    writeln!(io::stdout(), "{}", Event::end(tally, took, code.number(), error).line())
}

fn stats_line(now: &PathFigures, before: &PathFigures, bytes: u64, passed: Duration) -> String {
    let rate = Rate::from_bytes_per_sec(bytes as f64 / passed.as_secs_f64().max(1e-3));
    let sent = now.sent_packets.saturating_sub(before.sent_packets);
    let lost = now.lost_packets.saturating_sub(before.lost_packets);
    let resent = now.resent_bytes.saturating_sub(before.resent_bytes);
    let resent = resent.checked_div(u64::from(now.packet)).unwrap_or(0);
    let percent = 100.0 * lost as f64 / (sent as f64).max(1.0);
    let (rtt, queue) = (now.rtt * 1e3, now.queue * 1e3);
    format!(
        "{rate}, re-sent {resent} packets, lost {percent:.2} %, RTT {rtt:.1} ms, queue {queue:.1} ms"
    )
}

fn summary(tally: &Tally, took: Duration) -> String {
    let seconds = took.as_secs_f64();
    let rate = Rate::from_bytes_per_sec(tally.sent() as f64 / seconds.max(1e-3));
    let size = DataSize::from_bytes(tally.sent());
    let files = if tally.files == 1 { "file" } else { "files" };
    let kept = match tally.kept_bytes {
        0 => String::new(),
        kept => format!("; {} needed not be sent", DataSize::from_bytes(kept)),
    };
    format!("{} {files}, {size} in {seconds:.1} s, {rate}{kept}", tally.files)
}

fn line(tally: &Tally, rate: Option<Rate>, path: &PathFigures) -> String {
    let Tally { total_files, total_bytes, files, bytes, .. } = *tally;
    // The other end counts, and may say anything.
    let percent = bytes.saturating_mul(100).checked_div(total_bytes).unwrap_or(0).min(100);
    let (size, total) = (DataSize::from_bytes(bytes), DataSize::from_bytes(total_bytes));
    let left = rate.filter(|rate| rate.bytes_per_sec() > 1.0).map_or_else(String::new, |rate| {
        let seconds = total_bytes.saturating_sub(bytes) as f64 / rate.bytes_per_sec();
        format!("  {} left", clock(seconds))
    });
    let rate = rate.map_or_else(String::new, |rate| format!("  {rate}"));
    let path = held_back(path);
    format!("{percent:3} %  {size} of {total}  {files}/{total_files} files{rate}{left}{path}")
}

/// Columns of the terminal.
fn width() -> usize {
    let size = rustix::termios::tcgetwinsize(std::io::stderr());
    size.ok().map(|size| usize::from(size.ws_col)).filter(|&width| width > 0).unwrap_or(80)
}

/// As much of a line as does not wrap: one that did could not be written over.
fn cut(line: &str, width: usize) -> &str {
    let end = line.char_indices().nth(width.saturating_sub(1)).map_or(line.len(), |(at, _)| at);
    &line[..end]
}

/// Nothing has arrived for so long.
fn still_line(tally: &Tally, still: Duration) -> String {
    let (size, total) =
        (DataSize::from_bytes(tally.bytes), DataSize::from_bytes(tally.total_bytes));
    let seconds = still.as_secs();
    format!(
        "{size} of {total}  nothing has arrived for {seconds} s; Ctrl-C ends, the same command goes on"
    )
}

/// Loss, and what holds the copy back; nothing, before anything is known.
fn held_back(path: &PathFigures) -> String {
    let Some(loss) = path.lost_percent() else { return String::new() };
    let loss = if path.lost_packets == 0 { String::new() } else { format!("  loss {loss:.1} %") };
    let by = match path.limited_by {
        LimitedBy::Starting => "  starting",
        LimitedBy::Link => "  limited by the link",
        LimitedBy::Source => "  limited by the source",
        LimitedBy::Target => "  limited by the target",
        LimitedBy::Limit => "  limited by -l",
    };
    format!("{loss}{by}")
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
