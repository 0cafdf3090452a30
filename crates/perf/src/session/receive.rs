//! The receiving end of a running test. Its clock decides when the test ends.

use super::{END_TIMEOUT, Event, Interval, Outcome, Readers, Session};
use crate::compete::{self, Competition};
use crate::message::{CountReport, EndReport, Ending, Message, Received, Share, Span, StreamCount};
use crate::output::Output;
use crate::sample::{PathDelta, PathReport};
use crate::wait::{Stop, Worker, wait};
use crate::worker::Counter;
use hikyaku_net::Connection;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// State of the receiving loop.
struct Receiving {
    session: Session,
    zero: Instant,
    counters: Vec<Arc<Counter>>,
    readers: Vec<Worker>,
    /// Number of streams that have not ended.
    open: usize,
    intervals: Vec<Interval>,
    last: Tick,
    /// The counters at the end of the omitted time; `None` before.
    omitted: Option<Tick>,
    path: PathReport,
    path_shown: PathReport,
    broken: Option<String>,
}

/// The byte counters at one time, in seconds since time zero.
#[derive(Clone, Default)]
struct Tick {
    at: f64,
    bytes: Vec<u64>,
}

pub(super) fn run(mut session: Session, readers: Readers) -> (Outcome, Output, Vec<Connection>) {
    let Readers { zero, counters, workers: readers } = readers;
    if let Some(opening) = session.opening.take() {
        // A failure to send shows up as an error of the control stream's reader.
        let _ = session.control_channel.sender.send(&opening);
    }
    let last = Tick { at: 0.0, bytes: vec![0; counters.len()] };
    let omitted = (session.plan.omit == 0.0).then(|| last.clone());
    let mut receiving = Receiving {
        open: readers.len(),
        path_shown: PathReport::default(),
        path: PathReport::default(),
        intervals: Vec::new(),
        broken: None,
        session,
        zero,
        counters,
        readers,
        last,
        omitted,
    };
    let ending = receiving.count();
    receiving.finish(ending)
}

impl Receiving {
    fn seconds(&self) -> f64 {
        self.zero.elapsed().as_secs_f64()
    }

    /// Counts until the test ends.
    fn count(&mut self) -> Ending {
        loop {
            let due = self.due();
            let until = self.zero + Duration::from_secs_f64(due);
            match self.session.control_channel.next(until) {
                Some(Event::Message(Message::Path(path))) => self.on_path(path),
                Some(Event::Message(Message::Stop) | Event::Interrupt) => {
                    return Ending::Interrupted;
                }
                Some(Event::Message(_) | Event::WriterDone) => {}
                Some(Event::Competitors(count)) => {
                    let Session { control_channel, output, .. } = &mut self.session;
                    compete::relay(&count, &mut control_channel.sender, output);
                }
                Some(Event::ReaderDone) => {
                    self.open -= 1;
                    if self.open == 0 {
                        return Ending::Complete;
                    }
                }
                Some(Event::ControlLost(error)) => return self.lose(error.to_string()),
                Some(Event::DataLost(text)) => return self.lose(text),
                None if self.is_over() => return Ending::Complete,
                None if self.seconds() >= due => self.tick(),
                None => {}
            }
        }
    }

    fn lose(&mut self, text: String) -> Ending {
        self.broken = Some(text);
        Ending::Broken
    }

    fn is_over(&self) -> bool {
        self.session.plan.total_seconds().is_some_and(|total| self.seconds() >= total)
    }

    /// When the current interval ends, in seconds since time zero.
    fn due(&self) -> f64 {
        let next = self.last.at.max(self.scheduled()) + self.session.plan.interval;
        let border = if self.omitted.is_none() { self.session.plan.omit } else { f64::INFINITY };
        next.min(border).min(self.session.plan.total_seconds().unwrap_or(f64::INFINITY))
    }

    /// When the last interval should have ended. Basing the next one on it keeps delays from
    /// accumulating.
    fn scheduled(&self) -> f64 {
        let interval = self.session.plan.interval;
        let base = self.omitted.as_ref().map_or(0.0, |_| self.session.plan.omit);
        base + ((self.last.at - base) / interval).round().max(0.0) * interval
    }

    fn on_path(&mut self, path: PathReport) {
        if path.streams.len() == self.counters.len() {
            self.path = path;
        }
    }

    /// The current byte counters.
    fn read_counters(&self) -> Tick {
        let at = self.seconds();
        Tick { at, bytes: self.counters.iter().map(|counter| counter.bytes()).collect() }
    }

    /// Ends an interval.
    fn tick(&mut self) {
        let tick = self.read_counters();
        self.show(tick);
    }

    fn show(&mut self, tick: Tick) {
        let share = if self.omitted.is_some() { Share::Counted } else { Share::Omitted };
        let windows = windows(&self.session.connections, &tick.bytes);
        let streams = tick.bytes.iter().zip(&self.last.bytes).zip(windows);
        let streams = streams
            .map(|((now, before), window)| StreamCount { bytes: now - before, ..window })
            .collect();
        let count = CountReport { start: self.last.at, end: tick.at, share, streams };
        // A failure to send shows up as an error of the control stream's reader.
        let _ = self.session.control_channel.sender.send(&Message::Count(count.clone()));
        let path: Vec<PathDelta> = self.path.since(&self.path_shown);
        self.path_shown = self.path.clone();
        let interval = Interval { count, path };
        self.session.output.interval(&interval);
        self.intervals.push(interval);
        if self.omitted.is_none() && tick.at >= self.session.plan.omit {
            self.omitted = Some(tick.clone());
        }
        self.last = tick;
    }

    /// Shows the last interval, computes the totals and performs the final exchange.
    fn finish(mut self, ending: Ending) -> (Outcome, Output, Vec<Connection>) {
        let mut tick = self.read_counters();
        if self.open == 0 {
            tick.at = self.counters.iter().map(|counter| counter.last()).fold(0.0, f64::max);
        }
        self.readers.iter().for_each(Worker::stop);
        if tick.at > self.last.at
            && (tick.bytes != self.last.bytes || tick.at - self.last.at > 0.01)
        {
            self.show(tick.clone());
        }
        let mut local = self.session.end_report(ending, tick.at);
        local.received = Some(self.received(&tick));
        local.standing = self.session.competition.as_ref().and_then(Competition::standing);
        let remote = self.exchange_end(&local);
        self.readers.clear();
        let outcome = Outcome {
            plan: self.session.plan,
            side: self.session.side,
            intervals: self.intervals,
            local,
            remote,
            before: self.session.before,
            broken: self.broken,
        };
        (outcome, self.session.output, self.session.connections)
    }

    fn received(&self, end: &Tick) -> Received {
        let nothing = Tick { at: end.at, bytes: end.bytes.clone() };
        let omitted = self.omitted.as_ref().unwrap_or(&nothing);
        let streams: Vec<u64> =
            end.bytes.iter().zip(&omitted.bytes).map(|(end, start)| end - start).collect();
        let whole = Span { start: 0.0, end: end.at, bytes: end.bytes.iter().sum() };
        let counted = Span { start: omitted.at, end: end.at, bytes: streams.iter().sum() };
        Received { whole, counted, streams }
    }

    fn exchange_end(&mut self, local: &EndReport) -> Option<EndReport> {
        if local.ending == Ending::Broken {
            return None;
        }
        let control_channel = &mut self.session.control_channel;
        control_channel.sender.send(&Message::End(Box::new(local.clone()))).ok()?;
        let until = Instant::now() + END_TIMEOUT;
        loop {
            match control_channel.next(until)? {
                Event::Message(Message::End(remote)) => return Some(*remote),
                Event::ControlLost(_) => return None,
                _ => {}
            }
        }
    }
}

/// Size of each connection's receive window, and how much of it is in use.
fn windows(connections: &[Connection], counted: &[u64]) -> Vec<StreamCount> {
    let ask = async {
        let mut found = Vec::with_capacity(connections.len());
        for (connection, counted) in connections.iter().zip(counted) {
            let stats = connection.stats().await;
            found.push(stats.map_or_else(StreamCount::default, |stats| StreamCount {
                bytes: 0,
                window: stats.receive_window.bytes(),
                unread: stats.received_payload.bytes().saturating_sub(*counted),
            }));
        }
        found
    };
    let until = Some(Instant::now() + Duration::from_secs(1));
    let found = wait(ask, &Stop::default(), until);
    found.unwrap_or_else(|_| vec![StreamCount::default(); connections.len()])
}
