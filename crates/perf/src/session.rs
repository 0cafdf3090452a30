//! A running test at either end. The receiving end counts bytes and decides when the test is over.
//! The sending end reports the state of the path. Both show the same figures.

mod receive;
mod send;

use crate::compete::{Competition, CompetitorCount};
use crate::control::{ControlError, ControlReader, ControlSender};
use crate::message::{CountReport, EndReport, Ending, Message, Plain};
use crate::output::Output;
use crate::plan::{Direction, Plan};
use crate::sample::{PathDelta, PathReport};
use crate::usage::{Usage, max_rss_bytes};
use crate::wait::{Stop, Worker, wait};
use crate::worker::{Counter, Gate, Source, Tally, reader, writer};
use hikyaku_net::Connection;
use hikyaku_units::Rate;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

/// Events for the loop of a running test.
pub(crate) enum Event {
    Message(Message),
    /// The control stream has ended or failed.
    ControlLost(ControlError),
    /// A reader has reached the end of its stream.
    ReaderDone,
    /// A writer has delivered its bytes, or the receiver has stopped its stream.
    WriterDone,
    /// A data stream has failed.
    DataLost(String),
    /// Byte counts of the competing flows for one interval.
    Competitors(CompetitorCount),
    /// The user at this end interrupted the test.
    Interrupt,
}

/// Which end this is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Side {
    Client,
    Server,
}

/// A test that both ends have agreed on.
pub(crate) struct Session {
    pub(crate) side: Side,
    pub(crate) plan: Plan,
    pub(crate) connections: Vec<Connection>,
    pub(crate) control_channel: ControlChannel,
    pub(crate) output: Output,
    /// State of the paths when the test began.
    pub(crate) before: PathReport,
    pub(crate) usage: Usage,
    /// The message that lets the sender begin, sent at the receiver's time zero.
    pub(crate) opening: Option<Message>,
    /// The threads that write or read the data.
    pub(crate) data_threads: DataThreads,
    /// The competing flows, if any.
    pub(crate) competition: Option<Competition>,
}

/// The threads that move the data of a test at one end.
pub(crate) enum DataThreads {
    Writers(Vec<Worker>),
    Readers(Readers),
}

/// The reader threads, and their counters since `zero`.
pub(crate) struct Readers {
    pub(crate) zero: Instant,
    pub(crate) counters: Vec<Arc<Counter>>,
    pub(crate) workers: Vec<Worker>,
}

/// The control stream, and the queue of all events of a test.
pub(crate) struct ControlChannel {
    pub(crate) sender: ControlSender,
    pub(crate) events: Receiver<Event>,
    pub(crate) post: Sender<Event>,
    _reader: Worker,
}

/// One interval as printed: the receiver's counts, and the state of the sender's paths where known.
#[derive(Clone, Debug)]
pub(crate) struct Interval {
    pub(crate) count: CountReport,
    pub(crate) path: Vec<PathDelta>,
}

/// A finished test.
pub(crate) struct Outcome {
    pub(crate) plan: Plan,
    pub(crate) side: Side,
    pub(crate) intervals: Vec<Interval>,
    pub(crate) local: EndReport,
    pub(crate) remote: Option<EndReport>,
    /// State of the paths when the test began.
    pub(crate) before: PathReport,
    /// Why the test is incomplete, if it is.
    pub(crate) broken: Option<String>,
}

/// How long the other end may take for the final exchange.
const END_TIMEOUT: Duration = Duration::from_secs(10);

impl ControlChannel {
    /// Starts the thread that reads the control stream. Returns `sender` if no thread can be
    /// started.
    pub(crate) fn new(
        sender: ControlSender,
        mut reader: ControlReader,
    ) -> Result<Self, (ControlSender, io::Error)> {
        let (post, events) = channel();
        let reader = Worker::spawn("control", {
            let post = post.clone();
            move |stop| {
                loop {
                    let received = reader.receive(stop, None);
                    let event = match received {
                        Ok(message) => Event::Message(message),
                        Err(error) => {
                            let _ = post.send(Event::ControlLost(error));
                            break;
                        }
                    };
                    if post.send(event).is_err() {
                        break;
                    }
                }
            }
        });
        match reader {
            Ok(reader) => Ok(Self { sender, events, post, _reader: reader }),
            Err(error) => Err((sender, error)),
        }
    }

    /// The next event, or `None` if there is none before `until`.
    pub(crate) fn next(&self, until: Instant) -> Option<Event> {
        let left = until.saturating_duration_since(Instant::now());
        self.events.recv_timeout(left).ok()
    }
}

impl Side {
    /// Whether this end receives in a test of this direction.
    pub(crate) fn receives(self, direction: Direction) -> bool {
        (self == Self::Server) == (direction == Direction::Upload)
    }
}

impl Session {
    /// Runs the test. Time zero of the receiving end is the time of this call.
    pub(crate) fn run(mut self) -> (Outcome, Output, Vec<Connection>) {
        match std::mem::replace(&mut self.data_threads, DataThreads::Writers(Vec::new())) {
            DataThreads::Readers(readers) => receive::run(self, readers),
            DataThreads::Writers(writers) => send::run(self, writers),
        }
    }

    /// The final figures of this end.
    fn end_report(&self, ending: Ending, seconds: f64) -> EndReport {
        EndReport {
            ending,
            seconds,
            cpu_seconds: self.usage.cpu_seconds(),
            max_rss_bytes: max_rss_bytes(),
            host_drops: host_drops(&self.connections),
            busiest: self.usage.busiest().map(|(name, share)| (Plain(name), share)),
            received: None,
            sent: None,
            standing: None,
        }
    }
}

/// Starts writers for all connections; they send once the gate opens. A client opens it before the
/// server has answered: it sent the plan in the same flight, and waiting would cost a round trip.
pub(crate) fn writers(
    connections: &[Connection],
    plan: &Plan,
    control_channel: &ControlChannel,
    gate: &Gate,
) -> io::Result<Vec<Worker>> {
    let source = Source::new(gate.clone());
    let begin = |(index, connection): (usize, &Connection)| {
        writer(connection.clone(), plan, index, source.clone(), control_channel.post.clone())
    };
    connections.iter().enumerate().map(begin).collect()
}

/// Starts readers for all connections; time zero is the time of this call. Each reads at most at
/// rate `most`, if that is given.
pub(crate) fn readers(
    connections: &[Connection],
    plan: &Plan,
    control_channel: &ControlChannel,
    competition: Option<&Competition>,
    most: Option<Rate>,
) -> io::Result<Readers> {
    let zero = Instant::now();
    let counters: Vec<Arc<Counter>> = match competition {
        // With competing flows the thread that counts them owns the counters of the measured flows
        // too.
        Some(competition) => competition.ours(),
        None => connections.iter().map(|_| Arc::default()).collect(),
    };
    let begin = |(index, connection): (usize, &Connection)| {
        let tally = Tally { counter: counters[index].clone(), zero, most };
        reader(connection.clone(), plan, index, tally, control_channel.post.clone())
    };
    let workers: io::Result<Vec<Worker>> = connections.iter().enumerate().map(begin).collect();
    Ok(Readers { zero, workers: workers?, counters })
}

/// State of the paths, from the statistics of the sender's connections.
pub(crate) fn paths(connections: &[Connection], seconds: f64) -> PathReport {
    // A driver thread that has not answered by then is stuck; the sample is left empty.
    let until = Some(Instant::now() + Duration::from_secs(5));
    wait(PathReport::take(connections, seconds), &Stop::default(), until).unwrap_or_default()
}

fn host_drops(connections: &[Connection]) -> u64 {
    // Connections of one endpoint share its socket, and each reports the socket's drop count. Hence
    // the maximum, not the sum.
    let until = Some(Instant::now() + Duration::from_secs(5));
    let ask = async {
        let mut most = 0;
        for connection in connections {
            most = most.max(connection.stats().await.map_or(0, |stats| stats.host_drops));
        }
        most
    };
    wait(ask, &Stop::default(), until).unwrap_or(0)
}
