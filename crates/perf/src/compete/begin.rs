//! How a test with competitors begins: they are let loose, run alone for a part, and then the measured
//! sender may begin.

use super::flows::{self, Line};
use super::parts::{Flows, Parts, Timetable};
use super::verdict::Standing;
use super::{Compete, CompetitorCount, Kind, tcp};
use crate::control::ControlSender;
use crate::message::{Message, Plain};
use crate::output::Output;
use crate::plan::{Limit, Plan};
use crate::session::{Event, Talk};
use crate::trouble;
use crate::wait::Worker;
use crate::worker::{Counter, random_block};
use anyhow::{Context, Error, Result, bail};
use hikyaku_net::Connection;
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

/// The connections of all competitors, in their order.
pub(crate) struct Lines(Vec<Line>);

/// Competitors that run, at one end.
pub(crate) struct Competition {
    parts: Option<Parts>,
    _workers: Vec<Worker>,
    /// Ours would end with the last who holds them.
    _lines: Lines,
}

/// How long the other end may take beyond what is agreed.
const PATIENCE: Duration = Duration::from_secs(15);

impl Lines {
    /// From the connections of each kind, in their order.
    pub(crate) fn new(compete: &Compete, tcp: Vec<TcpStream>, ours: Vec<Connection>) -> Self {
        let (mut tcp, mut ours) = (tcp.into_iter(), ours.into_iter());
        let line = |kind| match kind {
            Kind::Tcp => tcp.next().map(Line::Tcp),
            Kind::Hikyaku => ours.next().map(Line::Hikyaku),
        };
        Self(compete.flows().map(|group| group.kind).filter_map(line).collect())
    }

    /// Has TCP at this end use the congestion controls of these names.
    pub(crate) fn set_controls(&self, compete: &Compete) -> Result<()> {
        for (line, group) in self.0.iter().zip(compete.flows()) {
            if let (Line::Tcp(stream), Some(Plain(name))) = (line, &group.manner) {
                tcp::set_control(stream, name)?;
            }
        }
        Ok(())
    }

    /// Begins to send on all of them.
    fn send(self, lasts: Duration) -> Competition {
        let block = random_block();
        let send = |(index, line)| flows::send(line, index, block.clone(), lasts);
        let workers = self.0.into_iter().enumerate().map(send).collect();
        Competition { parts: None, _workers: workers, _lines: Self(Vec::new()) }
    }
}

impl Competition {
    /// The counters of the measured flows, at the receiving end.
    pub(crate) fn ours(&self) -> Vec<Arc<Counter>> {
        self.parts.as_ref().map(Parts::ours).unwrap_or_default()
    }

    /// What each got, if this end counted and the test came to its end.
    pub(crate) fn standing(&self) -> Option<Standing> {
        self.parts.as_ref()?.standing()
    }
}

/// At the receiving end: lets the competitors begin, and returns when they have been alone for a part.
pub(crate) fn begin(
    lines: Lines,
    plan: &Plan,
    talk: &mut Talk,
    output: &mut Output,
) -> Result<Competition> {
    talk.sender.send(&Message::Compete)?;
    let zero = Instant::now();
    let (ended, ends) = channel();
    let counters = |count: usize| (0..count).map(|_| Arc::<Counter>::default()).collect::<Vec<_>>();
    let flows = Flows { rivals: counters(lines.0.len()), ours: counters(plan.streams as usize) };
    let read = |(index, line): (usize, &Line)| {
        flows::receive(line, index, flows.rivals[index].clone(), zero, ended.clone())
    };
    let workers: Result<Vec<Worker>, _> = lines.0.iter().enumerate().map(read).collect();
    let workers = workers.context("cannot read from a competing flow")?;
    let parts = Parts::count(timetable(plan), flows, zero, ends, talk.post.clone());
    let until = zero + part(plan);
    while let Some(event) = talk.next(until) {
        match event {
            Event::Competitors(count) => relay(&count, &mut talk.sender, output),
            event => stop_at(event)?,
        }
    }
    Ok(Competition { parts: Some(parts), _workers: workers, _lines: lines })
}

/// At the sending end: waits until the measured flows may begin, and has the competitors begin before
/// that, if there are any.
pub(crate) fn await_start(
    lines: Option<Lines>,
    plan: &Plan,
    talk: &Talk,
    output: &mut Output,
) -> Result<Option<Competition>> {
    let (mut lines, mut competition) = (lines, None);
    let mut until = Instant::now() + PATIENCE;
    loop {
        match talk.next(until).context("the receiving end did not begin")? {
            Event::Message(Message::Start) => return Ok(competition),
            Event::Message(Message::Compete) => {
                if let Some(lines) = lines.take() {
                    until = Instant::now() + part(plan) + PATIENCE;
                    competition = Some(lines.send(2 * part(plan)));
                }
            }
            Event::Message(Message::Competitors(count)) => output.competitors(&count),
            event => stop_at(event)?,
        }
    }
}

/// Shows a count at both ends.
pub(crate) fn relay(count: &CompetitorCount, sender: &mut ControlSender, output: &mut Output) {
    // If the other end cannot be told, the reader of the control stream finds out why.
    let _ = sender.send(&Message::Competitors(count.clone()));
    output.competitors(count);
}

/// What ends a test before it has begun.
fn stop_at(event: Event) -> Result<()> {
    match event {
        Event::ControlLost(error) => Err(Error::from(error)),
        Event::DataLost(text) => bail!(text),
        Event::Interrupt => bail!("stopped by the user"),
        Event::Message(Message::Stop) => bail!("stopped by the user at the other end"),
        Event::Message(Message::Refused { reason }) => Err(trouble::refused(&reason)),
        _ => Ok(()),
    }
}

fn timetable(plan: &Plan) -> Timetable {
    Timetable { part: part(plan).as_secs_f64(), omit: plan.omit, interval: plan.interval }
}

/// How long each part is. A plan with competitors has been checked to have a time.
fn part(plan: &Plan) -> Duration {
    match plan.limit {
        Limit::Seconds(seconds) => Duration::from_secs_f64(seconds),
        Limit::Bytes(_) => Duration::ZERO,
    }
}
