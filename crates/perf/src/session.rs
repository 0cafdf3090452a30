//! A test under way, at either end: the receiving end counts and decides when it is over, the
//! sending end says how the path is, and both show the same figures.

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
use crate::worker::{random_block, writer};
use hikyaku_net::Connection;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

/// What an end's loop is told.
pub(crate) enum Event {
    Message(Message),
    /// The control stream is over.
    ControlLost(ControlError),
    /// A reader came to the end of its stream.
    ReaderDone,
    /// A writer has delivered its share, or its reader has had enough.
    WriterDone,
    /// A stream of data failed.
    DataLost(String),
    /// Competitors have run for an interval.
    Competitors(CompetitorCount),
    /// The user at this end has had enough.
    Interrupt,
}

/// Which end this is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Side {
    Client,
    Server,
}

/// A test that is agreed upon.
pub(crate) struct Session {
    pub(crate) side: Side,
    pub(crate) plan: Plan,
    pub(crate) connections: Vec<Connection>,
    pub(crate) talk: Talk,
    pub(crate) output: Output,
    /// The state of the paths when the test began.
    pub(crate) before: PathReport,
    pub(crate) usage: Usage,
    /// What tells the sender to begin, sent at the receiver's time zero.
    pub(crate) opening: Option<Message>,
    /// Who writes, at the sending end.
    pub(crate) writers: Vec<Worker>,
    /// What runs beside it.
    pub(crate) competition: Option<Competition>,
}

/// The control stream and the queue into which everything comes.
pub(crate) struct Talk {
    pub(crate) sender: ControlSender,
    pub(crate) events: Receiver<Event>,
    pub(crate) post: Sender<Event>,
    _reader: Worker,
}

/// An interval as shown: the receiver's count, and the sender's paths if they are known.
#[derive(Clone, Debug)]
pub(crate) struct Interval {
    pub(crate) count: CountReport,
    pub(crate) path: Vec<PathDelta>,
}

/// A test that is over.
pub(crate) struct Outcome {
    pub(crate) plan: Plan,
    pub(crate) side: Side,
    pub(crate) intervals: Vec<Interval>,
    pub(crate) local: EndReport,
    pub(crate) remote: Option<EndReport>,
    /// Where the paths began.
    pub(crate) before: PathReport,
    /// Why the test is not complete, if it is not.
    pub(crate) broken: Option<String>,
}

/// How long the other end may take for its part of the end.
const LAST_WORDS: Duration = Duration::from_secs(10);

impl Talk {
    pub(crate) fn new(sender: ControlSender, mut reader: ControlReader) -> Self {
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
        Self { sender, events, post, _reader: reader }
    }

    /// The next event, if one comes in time.
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
    /// Does the test. For the receiving end time zero is when this is called.
    pub(crate) fn run(self) -> (Outcome, Output, Vec<Connection>) {
        if self.side.receives(self.plan.direction) { receive::run(self) } else { send::run(self) }
    }

    /// How this end ended.
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

/// Begins to write on all connections. A client does so before the server has answered: it was told
/// the plan in the same breath, and waiting would cost a round trip.
pub(crate) fn begin_writing(connections: &[Connection], plan: &Plan, talk: &Talk) -> Vec<Worker> {
    let block = random_block();
    let begin = |(index, connection): (usize, &Connection)| {
        writer(connection.clone(), plan, index, block.clone(), talk.post.clone())
    };
    connections.iter().enumerate().map(begin).collect()
}

/// The state of the paths, as the sender asks for it.
pub(crate) fn paths(connections: &[Connection], seconds: f64) -> PathReport {
    // A driver that does not answer for so long has other worries.
    let until = Some(Instant::now() + Duration::from_secs(5));
    wait(PathReport::take(connections, seconds), &Stop::default(), until).unwrap_or_default()
}

fn host_drops(connections: &[Connection]) -> u64 {
    // Connections of one endpoint share its socket, and each counts what the socket dropped.
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
