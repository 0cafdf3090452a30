//! The sender's cost of building a batch and of handling an acknowledgement, without encryption.
//!
//! Run with `cargo bench -p hikyaku-sim`. A path of 10 Gbit/s and 20 ms is kept full in virtual
//! time, so that the log of packets in flight has the size that it has on such a path. Only the
//! measured call is timed. Payload is read from one piece of 64 kB, which stays in the cache; on a
//! real host it does not.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use hikyaku_proto::{
    Config, Datagrams, KeyChain, KeyPair, PacketKey, PathHint, Side, StreamId, StreamKind,
};
use hikyaku_sim::{Duo, SimSession, address};
use hikyaku_units::Rate;
use std::time::{Duration, Instant};

/// Keys that neither encrypt nor authenticate.
struct NullKeys;

impl KeyChain for NullKeys {
    fn next_pair(&mut self) -> KeyPair {
        KeyPair { seal: Box::new(Self), open: Box::new(Self) }
    }
}

impl PacketKey for NullKeys {
    fn seal(&self, _: u64, _: &[u8], _: &mut [u8]) {}

    fn open(&self, _: u64, _: &[u8], buffer: &mut [u8]) -> Option<usize> {
        buffer.len().checked_sub(16)
    }

    fn packet_limit(&self) -> u64 {
        u64::MAX
    }
}

/// A transfer without end.
struct Steady {
    duo: Duo,
    stream: StreamId,
    out: Vec<u8>,
    /// Acknowledgements in flight.
    answers: std::collections::VecDeque<(hikyaku_units::Instant, Vec<u8>)>,
    built: Cost,
    applied: Cost,
}

/// Measured time, and the number of packets that it covers.
#[derive(Clone, Copy, Default)]
struct Cost {
    time: Duration,
    count: u64,
}

const ROUND_TRIP: Duration = Duration::from_millis(20);
/// The time that 64 packets take at 10 Gbit/s.
const STEP: Duration = Duration::from_micros(79);
static PIECE: [u8; 65_536] = [7; 65_536];

impl Steady {
    fn new() -> Self {
        let rate = Rate::from_bits_per_sec(9_300_000_000);
        let hint = Some(PathHint { rate, base_rtt: ROUND_TRIP });
        let config = Config { hint, ..Config::default() };
        let mut duo = Duo::over(&config, &config, |side, params| {
            Box::new(SimSession::new(side, params.encode()).with_keys(|_| NullKeys))
        });
        duo.meet(ROUND_TRIP / 2);
        let stream = duo.end(Side::Client).open(StreamKind::Ordered).expect("a stream");
        let mut steady = Self {
            duo,
            stream,
            out: Vec::new(),
            answers: Default::default(),
            built: Cost::default(),
            applied: Cost::default(),
        };
        (0..2000).for_each(|_| steady.step());
        (steady.built, steady.applied) = Default::default();
        steady
    }

    fn step(&mut self) {
        self.duo.now += STEP;
        let now = self.duo.now;
        while self.answers.front().is_some_and(|(at, _)| *at <= now) {
            let Some((_, packet)) = self.answers.pop_front() else { break };
            let batch = Datagrams::one(address(Side::Server), now, packet);
            let begin = Instant::now();
            self.duo.end(Side::Client).handle_datagrams(now, batch);
            self.applied.add(begin, 1);
        }
        let client = self.duo.end(Side::Client);
        while client.unsent(self.stream).is_some_and(|unsent| unsent < 1_000_000) {
            client.write(self.stream, bytes::Bytes::from_static(&PIECE));
        }
        if client.poll_timeout().is_some_and(|(due, _)| due <= now) {
            client.handle_timeout(now);
        }
        loop {
            let begin = Instant::now();
            let Some(sent) = self.duo.end(Side::Client).poll_transmit(now, &mut self.out) else {
                break;
            };
            self.built.add(begin, sent.len.div_ceil(sent.segment) as u64);
            let bytes = self.out[..sent.len].to_vec();
            self.duo.give_many(Side::Server, bytes, sent.segment, hikyaku_sim::Mark::None);
        }
        while let Some((id, delivery)) = self.duo.end(Side::Server).poll_delivery() {
            self.duo.end(Side::Server).consumed(id, delivery.run.len() as u64);
        }
        let answers = self.duo.take(Side::Server);
        self.answers.extend(answers.into_iter().map(|packet| (now + ROUND_TRIP, packet)));
    }
}

impl Cost {
    fn add(&mut self, begin: Instant, count: u64) {
        self.time += begin.elapsed();
        self.count += count;
    }
}

/// The time for `count` packets.
fn of(count: u64, cost: impl Fn(&Steady) -> Cost) -> Duration {
    let mut steady = Steady::new();
    // A step has only some packets and some acknowledgements.
    for _ in 0..1000 + 100 * count {
        if cost(&steady).count >= count {
            break;
        }
        steady.step();
    }
    let Cost { time, count: done } = cost(&steady);
    assert!(done > 0, "nothing is under way");
    time.mul_f64(count as f64 / done as f64)
}

fn benches(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("sender at 10 Gbit/s x 20 ms");
    group.sample_size(20);
    group.throughput(Throughput::Elements(1));
    group.bench_function("a packet built, in batches", |bencher| {
        bencher.iter_custom(|count| of(count, |steady| steady.built));
    });
    group.bench_function("an ACK applied", |bencher| {
        bencher.iter_custom(|count| of(count, |steady| steady.applied));
    });
    group.finish();
}

criterion_group!(all, benches);
criterion_main!(all);
