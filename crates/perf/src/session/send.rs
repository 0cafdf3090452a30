//! The sending end: it writes until it is told that it is enough.

use super::{Event, Interval, LAST_WORDS, Outcome, Session, paths};
use crate::message::{CountReport, EndReport, Ending, Message};
use crate::output::Output;
use crate::sample::PathReport;
use crate::wait::Worker;
use hikyaku_net::Connection;
use std::time::{Duration, Instant};

/// The state of the loop.
struct Sending {
    session: Session,
    zero: Instant,
    writers: Vec<Worker>,
    intervals: Vec<Interval>,
    shown: PathReport,
    next_report: Duration,
    /// Writers that have not ended.
    writing: usize,
    /// The paths when the last of them ended: what comes later is not the test.
    last: Option<PathReport>,
    /// Set when the user has had enough: when to end without the receiver.
    give_up: Option<Instant>,
    broken: Option<String>,
}

/// The receiver shows the path of its own interval's end, so it hears of it several times in one.
const REPORTS_PER_INTERVAL: f64 = 5.0;
const LEAST_REPORT: f64 = 0.05;
/// How long a receiver may take to answer a user who has had enough.
const PATIENCE: Duration = Duration::from_secs(3);

pub(super) fn run(mut session: Session) -> (Outcome, Output, Vec<Connection>) {
    let writers = std::mem::take(&mut session.writers);
    let shown = session.before.clone();
    let mut sending = Sending {
        zero: Instant::now(),
        intervals: Vec::new(),
        next_report: Duration::ZERO,
        writing: writers.len(),
        last: None,
        give_up: None,
        broken: None,
        shown,
        writers,
        session,
    };
    let (ending, remote) = sending.send();
    sending.finish(ending, remote)
}

impl Sending {
    fn send(&mut self) -> (Ending, Option<EndReport>) {
        loop {
            let mut until = self.zero + self.next_report;
            if let Some(give_up) = self.give_up {
                until = until.min(give_up);
            }
            match self.session.talk.next(until) {
                Some(Event::Message(Message::Count(count))) => self.on_count(count),
                Some(Event::Message(Message::End(remote))) => {
                    return (remote.ending, Some(*remote));
                }
                Some(Event::Interrupt) => {
                    let _ = self.session.talk.sender.send(&Message::Stop);
                    self.give_up = Some(Instant::now() + PATIENCE);
                }
                Some(Event::WriterDone) => {
                    self.writing -= 1;
                    if self.writing == 0 {
                        self.last = Some(self.sample());
                    }
                }
                Some(Event::Message(Message::Competitors(count))) => {
                    self.session.output.competitors(&count);
                }
                Some(Event::Message(_) | Event::ReaderDone | Event::Competitors(_)) => {}
                Some(Event::ControlLost(error)) => return self.lose(error.to_string()),
                Some(Event::DataLost(text)) => return self.lose(text),
                None if self.give_up.is_some_and(|at| at <= Instant::now()) => {
                    return (Ending::Interrupted, None);
                }
                None => self.report(),
            }
        }
    }

    fn lose(&mut self, text: String) -> (Ending, Option<EndReport>) {
        self.broken = Some(text);
        (Ending::Broken, None)
    }

    /// The paths as they are, or as they were when the test was over.
    fn sample(&self) -> PathReport {
        if let Some(last) = &self.last {
            return last.clone();
        }
        paths(&self.session.connections, self.zero.elapsed().as_secs_f64())
    }

    /// Tells the receiver how the paths are.
    fn report(&mut self) {
        let pause = (self.session.plan.interval / REPORTS_PER_INTERVAL).max(LEAST_REPORT);
        let report = self.sample();
        self.next_report = self.zero.elapsed() + Duration::from_secs_f64(pause);
        // If it does not arrive, the reader of the control stream will find out why.
        let _ = self.session.talk.sender.send(&Message::Path(report));
    }

    fn on_count(&mut self, count: CountReport) {
        if count.streams.len() != self.session.connections.len() {
            return;
        }
        let sample = self.sample();
        let path = sample.since(&self.shown);
        self.shown = sample;
        let interval = Interval { count, path };
        self.session.output.interval(&interval);
        self.intervals.push(interval);
    }

    fn finish(
        mut self,
        ending: Ending,
        remote: Option<EndReport>,
    ) -> (Outcome, Output, Vec<Connection>) {
        let sent = self.sample();
        let mut local = self.session.end_report(ending, sent.seconds);
        local.sent = Some(sent);
        self.writers.iter().for_each(Worker::stop);
        self.writers.clear();
        if ending != Ending::Broken {
            let talk = &mut self.session.talk;
            if talk.sender.send(&Message::End(Box::new(local.clone()))).is_ok() {
                // The receiver may be gone already: it has its figures.
                let _ = talk.sender.finish(LAST_WORDS);
            }
        }
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
}
