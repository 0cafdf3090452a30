//! A thread that takes samples of rates and buffers while somebody looks.

use super::doing::Doing;
use super::file::{self, SOUGHT_BYTES};
use super::limit::{Limit, Observed};
use super::program::Program;
use super::status::{FileBuffers, FlowStatus, SocketBuffers, Status, Transport};
use super::{Board, Ends, Track};
use crate::meter::Reading;
use crate::near::Uplink;
use crate::switch::{Route, Switch};
use hikyaku_net::blocking::{Stop, wait};
use hikyaku_reach::Seen;
use hikyaku_tcp::{Diag, Queues};
use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

/// A sample is taken so often.
const EVERY: Duration = Duration::from_millis(500);
/// Rates over a longer time than this say little of now.
const STALE: Duration = Duration::from_secs(2);
/// The transport tells its figures within this.
const PATIENCE: Duration = Duration::from_millis(500);
/// Flows of a sample. Their buffers are looked at one by one.
const FLOWS_MAX: usize = 100;
/// Programs of a sample of which it is looked what they do, which takes time.
const JUDGED_MAX: u32 = 4;
/// What samples are taken with.
struct Sampler {
    board: Arc<Board>,
    uplink: Arc<Uplink>,
    switch: Arc<Switch>,
    diag: Option<Diag>,
    at: Instant,
    before: HashMap<u64, Readings>,
    programs: HashMap<u64, Program>,
}

/// Both directions of a flow.
#[derive(Clone, Copy, Default)]
struct Readings {
    outgoing: Reading,
    incoming: Reading,
}

/// Starts the thread. It ends with [`Board::end`].
///
/// # Errors
///
/// The system refuses a thread.
pub(crate) fn start(board: Arc<Board>, uplink: Arc<Uplink>, switch: Arc<Switch>) -> io::Result<()> {
    let (diag, at) = (Diag::new().ok(), Instant::now());
    let (before, programs) = (HashMap::new(), HashMap::new());
    let mut sampler = Sampler { board, uplink, switch, diag, at, before, programs };
    thread::Builder::new().name("proxy-samples".to_owned()).spawn(move || sampler.run()).map(drop)
}

impl Sampler {
    fn run(&mut self) {
        while self.board.wait_for_a_look() {
            let (tracks, now) = (self.board.open(), Instant::now());
            let time = now.saturating_duration_since(self.at);
            // The first sample after a pause only begins the time that the next one looks at.
            if time < STALE {
                let status = self.sample(&tracks, now, time);
                self.board.publish(status);
            }
            self.at = now;
            self.before = tracks.iter().map(|track| (track.id, track.read(now))).collect();
            self.programs.retain(|id, _| self.before.contains_key(id));
            self.board.pause(EVERY);
        }
    }

    fn sample(&mut self, tracks: &[Arc<Track>], now: Instant, time: Duration) -> Status {
        let connection = self.uplink.current();
        let seen: Option<Seen> = connection.as_ref().and_then(|connection| {
            wait(connection.seen(), &Stop::default(), Some(now + PATIENCE)).ok().flatten()
        });
        let position = self.switch.position();
        let mut moved: Vec<(u64, &Arc<Track>, Readings)> = tracks
            .iter()
            .map(|track| {
                let before = self.before.get(&track.id).copied().unwrap_or_default();
                let since = track.read(now).since(&before);
                (since.outgoing.bytes + since.incoming.bytes, track, since)
            })
            .collect();
        let rate = |bytes: u64| 8.0 * bytes as f64 / time.as_secs_f64().max(f64::MIN_POSITIVE);
        let (sent, received) = moved.iter().fold((0, 0), |(sent, received), (_, _, since)| {
            (sent + since.outgoing.bytes, received + since.incoming.bytes)
        });
        moved.sort_by_key(|(bytes, track, _)| std::cmp::Reverse((*bytes, track.meters.bytes())));
        moved.truncate(FLOWS_MAX);
        let mut judged = 0;
        let flows = moved.iter().map(|(_, track, since)| {
            let (socket, file) = self.buffers(track);
            let mut observed = Observed {
                time,
                outgoing: since.outgoing,
                incoming: since.incoming,
                socket: socket.as_ref().map_or(0.0, SocketBuffers::fullness),
                far: self.board.far_parts(track, now),
                disk: file::disk(file.as_ref()),
                doing: Doing::Other,
            };
            if let Some(program) = self.programs.get_mut(&track.id)
                && observed.is_held_by_program()
                && judged < JUDGED_MAX
            {
                judged += 1;
                observed.doing = program.doing(time);
            }
            let (route, limited_by) = match track.stream.get() {
                Some((route, _)) => (*route, observed.limit()),
                None => (Route::default(), Limit::Idle),
            };
            FlowStatus {
                id: track.id,
                program: track.ends.map(|ends| ends.program.to_string()),
                target: track.target.clone(),
                route,
                seconds: now.saturating_duration_since(track.begun).as_secs_f64(),
                received_bytes: track.meters.incoming.bytes(),
                sent_bytes: track.meters.outgoing.bytes(),
                received_bits_per_second: rate(since.incoming.bytes),
                sent_bits_per_second: rate(since.outgoing.bytes),
                limited_by,
                socket,
                file,
            }
        });
        let flows = flows.collect();
        Status {
            seconds: now.saturating_duration_since(self.board.begun).as_secs_f64(),
            far: self.board.far.clone(),
            connection: position.far,
            mode: position.mode,
            direct: self.board.direct(),
            carrier: match connection {
                Some(connection) if connection.is_udp() => "udp",
                Some(_) => "pipe",
                None => "none",
            }
            .to_owned(),
            round_trip_seconds: seen.as_ref().map_or(0.0, |seen| seen.round_trip.as_secs_f64()),
            received_bits_per_second: rate(received),
            sent_bits_per_second: rate(sent),
            transport: seen.and_then(|seen| seen.unread).map(|unread| Transport {
                unread_bytes: unread.bytes,
                held_bytes: unread.held,
                // The transport has granted what is there, also where that is more than its window of now.
                window_bytes: unread.window.max(unread.bytes),
            }),
            open: tracks.len(),
            flows,
            ended: self.board.ended(),
        }
    }

    /// The buffers of a flow at the program's side: of both sockets, and of its file.
    fn buffers(&mut self, track: &Track) -> (Option<SocketBuffers>, Option<FileBuffers>) {
        let mut queues = |local, remote| self.diag.as_mut()?.queues(local, remote).ok().flatten();
        let Some(Ends { program, gateway }) = track.ends else { return (None, None) };
        let own: Option<Queues> = queues(gateway, program);
        // A program on another machine has its socket there.
        let theirs: Option<Queues> = queues(program, gateway);
        let socket = theirs.map(|theirs| SocketBuffers {
            unread_bytes: theirs.unread,
            used_bytes: theirs.receive_memory.map(|(used, _)| used),
            limit_bytes: theirs.receive_memory.map(|(_, limit)| limit),
            unacknowledged_bytes: own.map_or(0, |own| own.unacknowledged),
        });
        let arrived = track.meters.incoming.bytes();
        let file = theirs.filter(|_| arrived >= SOUGHT_BYTES).and_then(|theirs| {
            let program = self.programs.entry(track.id).or_default();
            program.file(theirs.inode, arrived)?.look()
        });
        (socket, file)
    }
}

impl Readings {
    fn since(&self, before: &Self) -> Self {
        Self {
            outgoing: self.outgoing.since(&before.outgoing),
            incoming: self.incoming.since(&before.incoming),
        }
    }
}

impl Track {
    fn read(&self, now: Instant) -> Readings {
        Readings {
            outgoing: self.meters.outgoing.read(now),
            incoming: self.meters.incoming.read(now),
        }
    }
}
