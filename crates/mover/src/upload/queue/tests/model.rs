//! Servers of unlike rates in virtual time: how long an upload takes, and how long it has to take.
//!
//! What is under way to a server, its rate, and whether that is settled, is what the real [`Flow`] makes of the answers.

use super::super::*;
use super::MB;
use hikyaku_remote::Flow;
use std::collections::VecDeque;
use std::time::Duration;

/// A server of the model.
#[derive(Clone, Copy, Debug)]
pub(super) struct Line {
    /// Bytes a second.
    pub(super) rate: f64,
    /// Seconds.
    pub(super) round_trip: f64,
    /// Lost packets a second. Each holds back what was sent after it until it has arrived as well.
    pub(super) losses: f64,
}

/// A part of a file on its way.
#[derive(Clone, Copy)]
struct Piece {
    id: TaskId,
    attempt: u32,
    bytes: u64,
    /// Bytes that the line has not taken, or the time at which the answer comes.
    left: f64,
    is_last: bool,
}

/// A file that a stream sends.
#[derive(Clone, Copy)]
struct Sends {
    id: TaskId,
    attempt: u32,
    sent: u64,
    size: u64,
}

struct Server {
    line: Line,
    flow: Flow,
    backlog: u64,
    streams: [Option<Sends>; 3],
    /// Bytes a second that the connection sends: it doubles in each round trip at the begin.
    allowed: f64,
    /// Nothing arrives before this time.
    held_back: f64,
    on_line: VecDeque<Piece>,
    answers: VecDeque<Piece>,
}

const STEP: f64 = 0.01;
const PIECE: u64 = 256 << 10;
/// Bytes of the first round trip.
const FIRST_BYTES: f64 = 40e3;

struct Model {
    queue: Queue,
    servers: Vec<Server>,
    now: f64,
    rng: fastrand::Rng,
}

/// Uploads files of these sizes to servers; returns the seconds that it took.
pub(super) fn upload(sizes: &[u64], lines: &[Line]) -> f64 {
    let files = sizes.iter().enumerate().map(|(number, size)| (number, *size, None));
    let server = |line: &Line| Server {
        line: *line,
        flow: Flow::new(Duration::from_secs_f64(line.round_trip), Duration::ZERO),
        backlog: 0,
        streams: [None; 3],
        allowed: (FIRST_BYTES / line.round_trip).min(line.rate),
        held_back: 0.0,
        on_line: VecDeque::new(),
        answers: VecDeque::new(),
    };
    let queue = Queue::new(files.collect(), lines.len());
    let servers = lines.iter().map(server).collect();
    let mut model = Model { queue, servers, now: 0.0, rng: fastrand::Rng::with_seed(7) };
    for step in 0.. {
        model.now = f64::from(step) * STEP;
        assert!(model.now < 1e5, "{} are left", model.queue.open);
        for server in 0..lines.len() {
            (0..3).for_each(|stream| model.send(server, stream));
            model.carry(server);
            model.hear(server);
        }
        // The program looks every 0.1 s.
        if step % 10 == 0 {
            let loads = model.loads();
            for Judged { loser, .. } in model.queue.judge(&loads) {
                model.servers[loser.server.0].backlog -= loser.left;
            }
        }
        if model.queue.is_empty() {
            break;
        }
    }
    model.now
}

impl Model {
    fn time(&self) -> Duration {
        Duration::from_secs_f64(self.now)
    }

    fn loads(&self) -> Vec<Option<Load>> {
        let load = |server: &Server| {
            let (rate, pace) = (server.flow.rate(self.time()), server.flow.pace());
            Some(Load { backlog: server.backlog, rate, pace, full_from: u64::MAX })
        };
        self.servers.iter().map(load).collect()
    }

    /// A stream of a server sends as much as there is room for.
    fn send(&mut self, number: usize, stream: usize) {
        let now = self.time();
        loop {
            let Some(Sends { id, attempt, sent, size }) = self.servers[number].streams[stream]
            else {
                if !self.servers[number].flow.has_room() || !self.take(number, stream) {
                    return;
                }
                continue;
            };
            let turn = self.queue.turn(id, attempt);
            let is_over = turn == Turn::Over;
            if !is_over
                && sent < size
                && (turn == Turn::Wait || !self.servers[number].flow.has_room())
            {
                return;
            }
            let is_named = !is_over && sent == size && self.queue.hand_over(id, attempt);
            let server = &mut self.servers[number];
            let bytes = if is_over { 0 } else { PIECE.min(size - sent) };
            if bytes > 0 {
                server.flow.sent(bytes, now);
            }
            if bytes > 0 || is_named {
                let (left, is_last) = (bytes as f64, is_named);
                server.on_line.push_back(Piece { id, attempt, bytes, left, is_last });
            }
            let next = Sends { id, attempt, sent: sent + bytes, size };
            server.streams[stream] = (bytes > 0).then_some(next);
        }
    }

    /// Gives a stream its next file. `false` if there is none for it.
    fn take(&mut self, number: usize, stream: usize) -> bool {
        let loads = self.loads();
        let Some(Given { id, attempt, before }) = self.queue.take(ServerId(number), &loads) else {
            return false;
        };
        let size = self.queue.task(id).size;
        self.servers[number].backlog += size;
        self.servers[number].streams[stream] = Some(Sends { id, attempt, sent: 0, size });
        if let Some(before) = before {
            self.servers[before.server.0].backlog -= before.left;
        }
        true
    }

    /// A line takes what it can within one step. Answers come a round trip later, in order.
    fn carry(&mut self, number: usize) {
        let Server { line, allowed, held_back, on_line, answers, .. } = &mut self.servers[number];
        if on_line.is_empty() {
            return;
        }
        let is_lost = self.rng.f64() < line.losses * STEP;
        if is_lost {
            *held_back = held_back.max(self.now + line.round_trip * (1.5 + self.rng.f64()));
        }
        let mut can = *allowed * STEP;
        *allowed = line.rate.min(*allowed * 2f64.powf(STEP / line.round_trip.max(STEP)));
        while let Some(piece) = on_line.front_mut() {
            let taken = piece.left.min(can);
            piece.left -= taken;
            can -= taken;
            if piece.left > 0.0 {
                return;
            }
            let before = answers.back().map_or(0.0, |before: &Piece| before.left);
            let left = (self.now + line.round_trip).max(*held_back).max(before);
            answers.extend(on_line.pop_front().map(|piece| Piece { left, ..piece }));
        }
    }

    /// The answers that have come.
    fn hear(&mut self, number: usize) {
        let now = self.time();
        while let Some(piece) =
            self.servers[number].answers.pop_front_if(|next| next.left <= self.now)
        {
            let Piece { id, attempt, bytes, is_last, .. } = piece;
            let server = &mut self.servers[number];
            server.flow.answered(bytes, now);
            server.backlog -= self.queue.written(id, attempt, bytes).0;
            if is_last && self.queue.turn(id, attempt) != Turn::Over {
                let Sent { main, trials } = self.queue.end(id);
                for ended in main.iter().chain(&trials) {
                    self.servers[ended.server.0].backlog -= ended.left;
                }
            }
        }
    }
}

/// The least time for a few large files of one size and many small ones, if every rate is known at the begin.
fn least(large: u64, count: u64, small_bytes: u64, lines: &[Line]) -> f64 {
    let total =
        (large * count + small_bytes) as f64 / lines.iter().map(|line| line.rate).sum::<f64>();
    // Each large file goes to the server that is done with it first.
    let mut given = vec![0u64; lines.len()];
    let mut end: f64 = 0.0;
    for _ in 0..count {
        let time = |server: usize| (given[server] + large) as f64 / lines[server].rate;
        let best = (0..lines.len()).min_by(|one, other| time(*one).total_cmp(&time(*other)));
        let best = best.unwrap();
        end = end.max(time(best));
        given[best] += large;
    }
    total.max(end)
}

/// How many times the least time uploads take of four large files and a hundred small ones to lines of 40 to 400 Mbit/s, or of
/// a tenth of that with a tenth of the bytes, in ascending order.
fn ratios(losses: f64) -> Vec<f64> {
    let mut ratios = Vec::new();
    for (servers, seed) in (1..=13).flat_map(|servers| (0..3).map(move |seed| (servers, seed))) {
        for part in [1, 10] {
            let mut rng = fastrand::Rng::with_seed(seed * 100 + servers);
            let line = |_| Line {
                rate: f64::from(rng.u32(40..=400)) * 125_000.0 / part as f64,
                round_trip: f64::from(rng.u32(45..=200)) / 1000.0,
                losses,
            };
            let lines: Vec<Line> = (0..servers).map(line).collect();
            let mut sizes = vec![1000 * MB / part; 4];
            sizes.extend(vec![MB / part; 100]);
            let least = least(1000 * MB / part, 4, 100 * MB / part, &lines);
            ratios.push(upload(&sizes, &lines) / least);
        }
    }
    ratios.sort_by(f64::total_cmp);
    ratios
}

#[test]
fn a_few_large_files_reach_the_fastest_of_unlike_servers() {
    let ratios = ratios(0.0);
    assert!(ratios.iter().all(|ratio| *ratio < 1.2), "{ratios:.2?}");
}

/// Bytes behind a lost packet arrive late, and then all at once: in between a rate looks far too low or too high.
#[test]
fn so_they_do_where_packets_are_lost() {
    let ratios = ratios(3.0);
    assert!(ratios[ratios.len() / 2] < 1.1, "{ratios:.2?}");
    assert!(ratios[ratios.len() * 9 / 10] < 1.2, "{ratios:.2?}");
    assert!(ratios[ratios.len() - 1] < 1.5, "{ratios:.2?}");
}

/// If small files went first, the fastest servers would begin with the large ones later.
#[test]
fn the_file_that_the_end_waits_for_is_tried_before_small_ones_are_sent() {
    const MBIT_PER_SEC: [u32; 13] = [100, 40, 240, 60, 400, 50, 140, 320, 70, 180, 80, 260, 120];
    const ROUND_TRIPS_MS: [u32; 13] = [45, 200, 100, 150, 60, 80, 120, 180, 90, 140, 70, 160, 110];
    let line = |(rate, round_trip): (u32, u32)| {
        let (rate, round_trip) = (f64::from(rate) * 125_000.0, f64::from(round_trip) / 1000.0);
        Line { rate, round_trip, losses: 0.0 }
    };
    let lines: Vec<Line> = MBIT_PER_SEC.into_iter().zip(ROUND_TRIPS_MS).map(line).collect();
    let sizes = [vec![1000 * MB; 4], vec![MB; 100]].concat();
    let ratio = upload(&sizes, &lines) / least(1000 * MB, 4, 100 * MB, &lines);
    assert!(ratio < 1.03, "{ratio:.3}");
}
