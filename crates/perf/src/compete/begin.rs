//! The start of a test with competing flows: they begin to send, run alone for one part, and then
//! the measured sender may begin.

use super::flows::{self, Line};
use super::parts::{Flows, Parts, Timetable};
use super::verdict::Standing;
use super::{Compete, CompetitorCount, Kind, tcp};
use crate::control::ControlSender;
use crate::message::{Message, Plain};
use crate::output::Output;
use crate::plan::{Limit, Plan};
use crate::session::{ControlChannel, Event};
use crate::trouble;
use crate::wait::Worker;
use crate::worker::{Counter, Gate, Source};
use anyhow::{Context, Error, Result, bail};
use hikyaku_net::Connection;
use std::io;
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

/// The connections of all competing flows, in their order.
pub(crate) struct Lines(Vec<Line>);

/// Running competing flows at one end.
pub(crate) struct Competition {
    parts: Option<Parts>,
    _workers: Vec<Worker>,
    /// Keeps the hikyaku connections open while they are measured: dropping the last handle closes
    /// them.
    _lines: Lines,
}

/// Grace period for the other end, beyond the agreed times.
const START_GRACE: Duration = Duration::from_secs(15);

impl Lines {
    /// Assigns the connections of each kind to the flows, in order.
    pub(crate) fn new(compete: &Compete, tcp: Vec<TcpStream>, ours: Vec<Connection>) -> Self {
        let (mut tcp, mut ours) = (tcp.into_iter(), ours.into_iter());
        let line = |kind| match kind {
            Kind::Tcp => tcp.next().map(Line::Tcp),
            Kind::Hikyaku => ours.next().map(Line::Hikyaku),
        };
        Self(compete.flows().map(|group| group.kind).filter_map(line).collect())
    }

    /// Sets the congestion controls of the plan on this end's TCP sockets.
    pub(crate) fn set_controls(&self, compete: &Compete) -> Result<()> {
        for (line, group) in self.0.iter().zip(compete.flows()) {
            if let (Line::Tcp(stream), Some(Plain(name))) = (line, &group.manner) {
                tcp::set_control(stream, name)?;
            }
        }
        Ok(())
    }

    /// Starts sending on all connections.
    fn send(self, lasts: Duration) -> io::Result<Competition> {
        let source = Source::new(Gate::open());
        let send = |(index, line)| flows::send(line, index, source.clone(), lasts);
        let workers: io::Result<Vec<Worker>> = self.0.into_iter().enumerate().map(send).collect();
        Ok(Competition { parts: None, _workers: workers?, _lines: Self(Vec::new()) })
    }
}

impl Competition {
    /// The counters of the measured flows at the receiving end.
    pub(crate) fn ours(&self) -> Vec<Arc<Counter>> {
        self.parts.as_ref().map(Parts::ours).unwrap_or_default()
    }

    /// Goodput of each flow, if this end counted and the test ran to its end.
    pub(crate) fn standing(&self) -> Option<Standing> {
        self.parts.as_ref()?.standing()
    }
}

/// At the receiving end: lets the competing flows begin, and returns after they have run alone for
/// one part.
pub(crate) fn begin(
    lines: Lines,
    plan: &Plan,
    control_channel: &mut ControlChannel,
    output: &mut Output,
) -> Result<Competition> {
    control_channel.sender.send(&Message::Compete)?;
    let zero = Instant::now();
    let (ended, ends) = channel();
    let counters = |count: usize| (0..count).map(|_| Arc::<Counter>::default()).collect::<Vec<_>>();
    let flows = Flows { rivals: counters(lines.0.len()), ours: counters(plan.streams as usize) };
    let read = |(index, line): (usize, &Line)| {
        flows::receive(line, index, flows.rivals[index].clone(), zero, ended.clone())
    };
    let workers: Result<Vec<Worker>, _> = lines.0.iter().enumerate().map(read).collect();
    let workers = workers.context("cannot read from a competing flow")?;
    let parts = Parts::count(timetable(plan), flows, zero, ends, control_channel.post.clone());
    let parts = parts.context("cannot count the competing flows")?;
    let until = zero + part(plan);
    while let Some(event) = control_channel.next(until) {
        match event {
            Event::Competitors(count) => relay(&count, &mut control_channel.sender, output),
            event => stop_at(event)?,
        }
    }
    Ok(Competition { parts: Some(parts), _workers: workers, _lines: lines })
}

/// At the sending end: waits until the measured flows may begin. Before that it starts the
/// competing flows, if there are any, when the receiving end says so.
pub(crate) fn await_start(
    lines: Option<Lines>,
    plan: &Plan,
    control_channel: &ControlChannel,
    output: &mut Output,
) -> Result<Option<Competition>> {
    let (mut lines, mut competition) = (lines, None);
    let mut until = Instant::now() + START_GRACE;
    loop {
        match control_channel.next(until).context("the receiving end did not begin")? {
            Event::Message(Message::Start) => return Ok(competition),
            Event::Message(Message::Compete) => {
                if let Some(lines) = lines.take() {
                    until = Instant::now() + part(plan) + START_GRACE;
                    let sending = lines.send(2 * part(plan));
                    competition = Some(sending.context("cannot send on a competing flow")?);
                }
            }
            Event::Message(Message::Competitors(count)) => output.competitors(&count),
            event => stop_at(event)?,
        }
    }
}

/// Shows a count of the competing flows here and sends it to the other end.
pub(crate) fn relay(count: &CompetitorCount, sender: &mut ControlSender, output: &mut Output) {
    // A failure to send shows up as an error of the control stream's reader.
    let _ = sender.send(&Message::Competitors(count.clone()));
    output.competitors(count);
}

/// Fails for events that end a test before it has begun.
fn stop_at(event: Event) -> Result<()> {
    match event {
        Event::ControlLost(error) => Err(Error::from(error)),
        Event::DataLost(text) => bail!(text),
        Event::Interrupt => bail!("stopped by the user"),
        Event::Message(Message::Stop) => bail!("stopped by the user at the other end"),
        Event::Message(Message::Refused { reason, lasts }) => Err(trouble::refused(&reason, lasts)),
        _ => Ok(()),
    }
}

fn timetable(plan: &Plan) -> Timetable {
    Timetable { part: part(plan).as_secs_f64(), omit: plan.omit, interval: plan.interval }
}

/// Length of each part. `Plan::check` has made sure that a plan with competing flows is limited by
/// time.
fn part(plan: &Plan) -> Duration {
    match plan.limit {
        Limit::Seconds(seconds) => Duration::from_secs_f64(seconds),
        Limit::Bytes(_) => Duration::ZERO,
    }
}
