//! Connections to one server that carry ranges one after the other: each request costs a round trip, and a cut costs the
//! connection, which begins anew with a handshake and a small window.

use hikyaku_spread::{
    AskId, Asking, Command, FileId, SEGMENT_BYTES, ServerId, ServerSettings, Settings, Spread, Work,
};
use hikyaku_units::{DataSize, Instant};
use std::ops::Range;
use std::time::Duration;

const STEP: Duration = Duration::from_millis(5);
/// Bytes in flight of a connection that has just begun (RFC 6928).
const WINDOW_BYTES: f64 = 14_600.0;
/// Bytes that a connection is asked for before its rate is known.
const FIRST_RANGE: DataSize = DataSize::from_bytes(16 << 20);

/// One file by several connections.
#[derive(Clone, Copy)]
struct Case {
    name: &'static str,
    bytes: u64,
    connections: usize,
    /// Seconds between two doublings of the number in use, from 16 on; all at once if it is 0.
    doubling: f64,
    /// Mbit/s that each keeps up, where the link has room.
    each: f64,
    /// The rate of each is up to that many times more, or less, for about two seconds at a time.
    spread: f64,
    /// Mbit/s of all together.
    link: f64,
    rtt_ms: u64,
    /// The bar: bytes over time, as a share of what the connections or the link could carry.
    share: f64,
}

struct Connection {
    /// Its window; `None` while it is not open.
    window: Option<f64>,
    /// The bytes of a round trip when its window has grown.
    level: f64,
    request: Option<Request>,
}

struct Request {
    ask: AskId,
    file: FileId,
    range: Range<u64>,
    arrived: f64,
    told: u64,
    /// From when on bytes come.
    from: Duration,
    /// It is not wanted from here on.
    cut: u64,
}

impl Request {
    fn end(&self) -> u64 {
        self.cut.min(self.range.end - self.range.start)
    }
}

/// Seconds until all has come.
fn run(case: &Case, seed: u64) -> f64 {
    let rtt = Duration::from_millis(case.rtt_ms);
    let (mut rng, mut now) = (fastrand::Rng::with_seed(seed), Duration::ZERO);
    let mut spread = Spread::new(Settings::default());
    let settings = ServerSettings {
        asking: Asking::Ranges(FIRST_RANGE),
        asks_max: 1,
        small_file: DataSize::ZERO,
    };
    let ids: Vec<ServerId> =
        (0..case.connections).map(|_| spread.add_server(settings).expect("they fit")).collect();
    ids.iter().for_each(|id| spread.handle_up(*id, rtt, Instant::ZERO));
    spread.add_file(DataSize::from_bytes(case.bytes), &ids).expect("the file fits");
    let pool = spread.add_pool(&ids, Instant::ZERO);
    let mut awake = if case.doubling > 0.0 { 16 } else { case.connections };
    spread.wake(pool, awake, Instant::ZERO);
    let mut doubled = 0.0;
    let level = case.each * 1e6 / 8.0 * rtt.as_secs_f64();
    let mut all: Vec<Connection> =
        ids.iter().map(|_| Connection { window: None, level, request: None }).collect();
    while spread.unfinished() > 0 && now < Duration::from_secs(600) {
        now += STEP;
        if awake < case.connections && now.as_secs_f64() - doubled >= case.doubling {
            awake = (2 * awake).min(case.connections);
            doubled = now.as_secs_f64();
            spread.wake(pool, awake, Instant::ZERO + now);
        }
        grow(case, &mut all, (level, rtt), &mut rng);
        carry(case, &mut all, (now, rtt), &mut spread);
        obey(&mut spread, &mut all, (now, rtt));
    }
    assert_eq!(spread.unfinished(), 0, "{}", case.name);
    now.as_secs_f64()
}

/// Windows double in a round trip up to the level of their connection, which wanders.
fn grow(
    case: &Case,
    all: &mut [Connection],
    (level, rtt): (f64, Duration),
    rng: &mut fastrand::Rng,
) {
    for one in all.iter_mut() {
        if rng.f64() < STEP.as_secs_f64() / 2.0 {
            one.level = level * case.spread.powf(2.0 * rng.f64() - 1.0);
        }
        if let Some(window) = &mut one.window {
            *window *= 2f64.powf(STEP.as_secs_f64() / rtt.as_secs_f64());
            *window = window.min(one.level);
        }
    }
}

/// The bytes of a step.
fn carry(
    case: &Case,
    all: &mut [Connection],
    (now, rtt): (Duration, Duration),
    spread: &mut Spread,
) {
    let wants = |one: &Connection| {
        let is_sending = one.request.as_ref().is_some_and(|request| request.from <= now);
        if is_sending { one.window.unwrap_or_default() / rtt.as_secs_f64() } else { 0.0 }
    };
    let sum: f64 = all.iter().map(wants).sum();
    let scale = (case.link * 1e6 / 8.0 / sum.max(1.0)).min(1.0);
    for (at, one) in all.iter_mut().enumerate() {
        let (server, bytes) = (ServerId(at as u16), wants(one) * scale * STEP.as_secs_f64());
        let at = Instant::ZERO + now;
        let Some(request) = &mut one.request else { continue };
        let all = request.range.end - request.range.start;
        let before = request.told;
        request.arrived = (request.arrived + bytes).min(all as f64);
        request.told = request.arrived as u64;
        let news = DataSize::from_bytes(request.told - before);
        spread.handle_progress(server, request.ask, news, at);
        let begin = request.range.start;
        for segment in before / SEGMENT_BYTES..request.told.div_ceil(SEGMENT_BYTES) {
            let from = segment * SEGMENT_BYTES;
            let to = (from + SEGMENT_BYTES).min(all);
            if (before..request.told).contains(&(to - 1)) && to <= request.end() {
                spread.handle_proven(request.file, begin + from..begin + to);
            }
        }
        if request.told >= request.end() {
            let (ask, is_cut) = (request.ask, request.end() < all);
            one.request = None;
            if is_cut {
                one.window = None;
            }
            spread.handle_end(server, ask, at);
        }
    }
}

fn obey(spread: &mut Spread, all: &mut [Connection], (now, rtt): (Duration, Duration)) {
    while let Some(command) = spread.poll_command(Instant::ZERO + now) {
        match command {
            Command::Ask { server, ask, work: Work::Ranges { file, ranges } } => {
                let one = &mut all[usize::from(server.0)];
                let from = now + if one.window.is_some() { rtt } else { 2 * rtt };
                one.window.get_or_insert(WINDOW_BYTES);
                let range = ranges[0].clone();
                let (arrived, told, cut) = (0.0, 0, u64::MAX);
                one.request = Some(Request { ask, file, range, arrived, told, from, cut });
            }
            Command::Cut { server, ask, from } => {
                let one = &mut all[usize::from(server.0)];
                if let Some(request) = one.request.as_mut().filter(|request| request.ask == ask) {
                    request.cut = request.cut.min(from.bytes());
                }
            }
            _ => {}
        }
    }
}

const CASES: &[Case] = &[
    Case {
        name: "1 GiB, 16, 32, 64 connections of 6 Mbit/s, 200 ms",
        bytes: 1 << 30,
        connections: 64,
        doubling: 2.5,
        each: 6.0,
        spread: 1.5,
        link: 940.0,
        rtt_ms: 200,
        share: 0.88,
    },
    Case {
        name: "1 GiB, 16, 32, 64 connections of 10 Mbit/s, 100 ms",
        bytes: 1 << 30,
        connections: 64,
        doubling: 1.5,
        each: 10.0,
        spread: 1.5,
        link: 940.0,
        rtt_ms: 100,
        share: 0.88,
    },
    Case {
        name: "1 GiB, 16 connections fill 940 Mbit/s, 200 ms",
        bytes: 1 << 30,
        connections: 16,
        doubling: 0.0,
        each: 80.0,
        spread: 1.3,
        link: 940.0,
        rtt_ms: 200,
        share: 0.85,
    },
    Case {
        name: "1 GiB, 16 connections fill 940 Mbit/s, 20 ms",
        bytes: 1 << 30,
        connections: 16,
        doubling: 0.0,
        each: 80.0,
        spread: 1.3,
        link: 940.0,
        rtt_ms: 20,
        share: 0.97,
    },
    Case {
        name: "1 GiB, 64 connections of 6 Mbit/s, 200 ms",
        bytes: 1 << 30,
        connections: 64,
        doubling: 0.0,
        each: 6.0,
        spread: 1.5,
        link: 940.0,
        rtt_ms: 200,
        share: 0.85,
    },
    Case {
        name: "256 MiB, 16 connections of 6 Mbit/s, 100 ms",
        bytes: 256 << 20,
        connections: 16,
        doubling: 0.0,
        each: 6.0,
        spread: 1.5,
        link: 940.0,
        rtt_ms: 100,
        share: 0.89,
    },
    Case {
        name: "256 MiB, 64 connections of 0.9 Mbit/s, 200 ms",
        bytes: 256 << 20,
        connections: 64,
        doubling: 0.0,
        each: 0.9,
        spread: 1.5,
        link: 940.0,
        rtt_ms: 200,
        share: 0.7,
    },
    Case {
        name: "64 MiB, 16 connections fill 10 Mbit/s, 60 ms",
        bytes: 64 << 20,
        connections: 16,
        doubling: 0.0,
        each: 1.0,
        spread: 1.5,
        link: 9.4,
        rtt_ms: 60,
        share: 0.89,
    },
];

#[test]
fn connections_are_busy_to_the_end() {
    let mut missed = Vec::new();
    for case in CASES {
        // A level between `1 / spread` and `spread`, even in logarithm.
        let mean = (case.spread - 1.0 / case.spread) / (2.0 * case.spread.ln());
        let rate =
            |connections: usize| (case.each * mean * connections as f64).min(case.link) * 1e6 / 8.0;
        let (mut best, mut left, mut awake) = (0.0, case.bytes as f64, 16);
        while case.doubling > 0.0 && awake < case.connections {
            left -= rate(awake) * case.doubling;
            best += case.doubling;
            awake *= 2;
        }
        best += left / rate(case.connections);
        let shares: Vec<f64> = (1..=5).map(|seed| best / run(case, seed)).collect();
        let mean = shares.iter().sum::<f64>() / shares.len() as f64;
        let worst = shares.iter().copied().fold(f64::INFINITY, f64::min);
        println!("{}: mean {mean:.3}, worst {worst:.3}", case.name);
        if worst < case.share {
            missed.push(case.name);
        }
    }
    assert!(missed.is_empty(), "below the bar: {missed:#?}");
}
