//! The log of a transfer from or to many servers: samples of it, and what the servers tell of themselves.

use crate::census::ServerId;
use crate::meter::{Meter, OnFile, ServerMeter};
use crate::session::Session;
use hikyaku_net::blocking::{Stop, wait};
use hikyaku_reach::Seen;
use hikyaku_remote::{Client, PathReport, Report};
use hikyaku_run_log::{Flow, Line, Load, MachineId, Recorder, Role, millis};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The transport tells of a connection within this, or the sample is without it.
const PATIENCE: Duration = Duration::from_millis(20);

/// Where the bytes of a transfer go, seen from this machine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    /// They come.
    In,
    /// They go.
    Out,
}

/// What is written of a transfer.
pub struct Watch {
    recorder: Arc<Recorder>,
    servers: Vec<Watched>,
    direction: Direction,
}

/// A server, and what it has told last.
struct Watched {
    m: MachineId,
    /// The connection to a daemon.
    client: Option<Client>,
    told: Arc<Mutex<Told>>,
}

#[derive(Default)]
struct Told {
    report: Option<Report>,
    /// A question is under way, or the server answers none. There is never a second one, so that a slow server has few.
    is_asked: bool,
}

impl Watch {
    /// A watch of these servers, by their names. Of the daemons of a session those are asked that have the feature.
    pub fn new(
        recorder: Option<&Arc<Recorder>>,
        names: &[String],
        session: Option<&Session>,
        direction: Direction,
    ) -> Option<Self> {
        let recorder = recorder?.clone();
        let met: Vec<String> = session.map_or_else(Vec::new, Session::names);
        let watched = |name: &String| {
            let at = met.iter().position(|other| other == name).map(ServerId);
            let daemon = session.zip(at);
            let tells = daemon.is_some_and(|(session, at)| session.tells(at));
            Watched {
                m: recorder.machine(name, Role::Server),
                client: daemon.and_then(|(session, at)| session.client(at)),
                told: Arc::new(Mutex::new(Told { report: None, is_asked: !tells })),
            }
        };
        let servers = names.iter().map(watched).collect();
        Some(Self { recorder, servers, direction })
    }

    /// What writes begins and ends of files.
    pub fn on_file(&self) -> OnFile {
        let recorder = self.recorder.clone();
        let machines: Vec<MachineId> = self.servers.iter().map(|server| server.m).collect();
        Arc::new(move |stage, path, size, server| {
            let m = server.and_then(|server| machines.get(server.0)).copied();
            recorder.file(stage, path, Some(size), m);
        })
    }

    /// Writes samples if they are due, and asks the servers for the next ones.
    pub fn poll(&self, meter: &Meter) {
        self.recorder.poll(Instant::now(), |t, lines| self.add(meter, t, lines));
    }

    /// Writes the last samples.
    pub fn last(&self, meter: &Meter) {
        self.recorder.sample(Instant::now(), |t, lines| self.add(meter, t, lines));
    }

    fn add(&self, meter: &Meter, t: f64, lines: &mut Vec<Line>) {
        for (number, server) in self.servers.iter().enumerate() {
            let report = server.take_report();
            // A meter without servers counts for the only one.
            let counted = meter.servers().get(number);
            let bytes = Some(counted.map_or_else(|| meter.written(), ServerMeter::bytes));
            let mut flow = Flow { t, m: server.m, ..Flow::default() };
            match self.direction {
                Direction::In => {
                    flow.received_bytes = bytes;
                    // The server sends, so it knows what was lost.
                    if let Some(path) = report.as_ref().and_then(|report| report.path) {
                        add_path(&mut flow, &path);
                    }
                }
                Direction::Out => {
                    flow.sent_bytes = bytes;
                    if let Some(seen) = server.seen() {
                        add_seen(&mut flow, &seen);
                    }
                }
            }
            lines.push(Line::Flow(flow));
            if let Some(report) = report {
                lines.push(Line::Load(Load { t, m: server.m, ..report.machine.load() }));
            }
            server.ask();
        }
    }
}

impl Watched {
    fn told(&self) -> MutexGuard<'_, Told> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What the server has told since the last call.
    fn take_report(&self) -> Option<Report> {
        self.told().report.take()
    }

    /// Asks the server, unless it has not answered yet.
    fn ask(&self) {
        let Some(client) = &self.client else { return };
        if std::mem::replace(&mut self.told().is_asked, true) {
            return;
        }
        let told = self.told.clone();
        client.report_then(move |report| {
            let mut told = told.lock().unwrap_or_else(PoisonError::into_inner);
            // A server that does not answer any more is asked no more.
            if let Ok(report) = report {
                *told = Told { report: Some(report), is_asked: false };
            }
        });
    }

    /// The connection, as this end sees it.
    fn seen(&self) -> Option<Seen> {
        let connection = self.client.as_ref()?.connection();
        let until = Some(Instant::now() + PATIENCE);
        wait(connection.seen(), &Stop::default(), until).ok().flatten()
    }
}

fn add_path(flow: &mut Flow, path: &PathReport) {
    flow.sent_packets = path.sent_packets;
    flow.lost_packets = path.lost_packets;
    flow.resent_bytes = path.resent_bytes;
    flow.rtt_ms = Some(millis(path.rtt_micros as f64 / 1e6));
    flow.queue_ms = path.queue_micros.map(|micros| millis(micros as f64 / 1e6));
    flow.allowed_bytes_per_second = path.allowed_rate;
}

fn add_seen(flow: &mut Flow, seen: &Seen) {
    flow.rtt_ms = Some(millis(seen.round_trip.as_secs_f64()));
    if let Some(packets) = &seen.packets {
        flow.sent_packets = Some(packets.sent);
        flow.lost_packets = Some(packets.lost);
        flow.resent_bytes = Some(packets.resent_bytes);
        flow.queue_ms = Some(millis(packets.queue));
    }
}
