//! The sending end of a running test. It writes until the receiver ends the test.

use super::{END_TIMEOUT, Event, Interval, Outcome, Session, paths};
use crate::message::{CountReport, EndReport, Ending, Message};
use crate::output::Output;
use crate::sample::PathReport;
use crate::wait::Worker;
use hikyaku_net::Connection;
use std::time::{Duration, Instant};

/// State of the sending loop.
struct Sending {
    session: Session,
    zero: Instant,
    writers: Vec<Worker>,
    intervals: Vec<Interval>,
    shown: PathReport,
    next_report: Duration,
    /// Number of writers that have not ended.
    writing: usize,
    /// State of the paths when the last writer ended. Later changes are not part of the test.
    last: Option<PathReport>,
    /// Set when the user interrupts the test: when to end without an answer of the receiver.
    end_without_answer_at: Option<Instant>,
    broken: Option<String>,
}

/// The receiver shows the most recent path report at the end of its interval, so several are sent
/// in each.
const REPORTS_PER_INTERVAL: f64 = 5.0;
/// Least time between two path reports, in seconds.
const REPORT_SECONDS_MIN: f64 = 0.05;
/// How long a receiver may take to answer an interrupt before the sender ends without it.
const INTERRUPT_TIMEOUT: Duration = Duration::from_secs(3);

pub(super) fn run(session: Session, writers: Vec<Worker>) -> (Outcome, Output, Vec<Connection>) {
    let shown = session.before.clone();
    let mut sending = Sending {
        zero: Instant::now(),
        intervals: Vec::new(),
        next_report: Duration::ZERO,
        writing: writers.len(),
        last: None,
        end_without_answer_at: None,
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
            if let Some(end_without_answer_at) = self.end_without_answer_at {
                until = until.min(end_without_answer_at);
            }
            match self.session.control_channel.next(until) {
                Some(Event::Message(Message::Count(count))) => self.on_count(count),
                Some(Event::Message(Message::End(remote))) => {
                    return (remote.ending, Some(*remote));
                }
                Some(Event::Interrupt) => {
                    let _ = self.session.control_channel.sender.send(&Message::Stop);
                    self.end_without_answer_at = Some(Instant::now() + INTERRUPT_TIMEOUT);
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
                None if self.end_without_answer_at.is_some_and(|at| at <= Instant::now()) => {
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

    /// State of the paths now, or at the time when the last writer ended.
    fn sample(&self) -> PathReport {
        if let Some(last) = &self.last {
            return last.clone();
        }
        paths(&self.session.connections, self.zero.elapsed().as_secs_f64())
    }

    /// Sends the receiver the state of the paths.
    fn report(&mut self) {
        let pause = (self.session.plan.interval / REPORTS_PER_INTERVAL).max(REPORT_SECONDS_MIN);
        let report = self.sample();
        self.next_report = self.zero.elapsed() + Duration::from_secs_f64(pause);
        // A failure to send shows up as an error of the control stream's reader.
        let _ = self.session.control_channel.sender.send(&Message::Path(report));
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
            let control_channel = &mut self.session.control_channel;
            if control_channel.sender.send(&Message::End(Box::new(local.clone()))).is_ok() {
                // The receiver has its figures and may have disconnected already.
                let _ = control_channel.sender.finish(END_TIMEOUT);
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
