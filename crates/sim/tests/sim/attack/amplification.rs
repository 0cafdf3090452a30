//! Amplification: a server sends an unvalidated address at most three times the bytes received
//! from it. The simulator checks this in every run. The runs here lose and repeat packets so that
//! the limit is reached.

use hikyaku_link::{LossModel, Reorder};
use hikyaku_proto::{
    ClientIds, Config, Connection, ConnectionId, Datagrams, Side, StreamKind, code,
};
use hikyaku_sim::{Load, Meddler, Scenario, SimSession, plain_link};
use hikyaku_units::{Instant, Probability, Rate};
use hikyaku_wire::is_long;
use std::net::SocketAddr;
use std::time::Duration;

/// Randomly drops and repeats the client's packets before its address is validated.
struct LossyPath {
    rng: fastrand::Rng,
    loss: f64,
    copies: usize,
}

impl Meddler for LossyPath {
    fn on_arrival(&mut self, _: Instant, to: Side, bytes: Vec<u8>) -> Vec<(Duration, Vec<u8>)> {
        if to == Side::Client || !is_long(&bytes) {
            return vec![(Duration::ZERO, bytes)];
        }
        // Packets that validate the address are dropped more often.
        let loss = if bytes[0] == 0x81 { 0.5 + self.loss / 2.0 } else { self.loss };
        let copies = if self.rng.f64() < loss { 0 } else { self.rng.usize(1..=self.copies) };
        let later = |rng: &mut fastrand::Rng| Duration::from_micros(rng.u64(..200_000));
        (0..copies).map(|_| (later(&mut self.rng), bytes.clone())).collect()
    }
}

#[test]
fn no_seed_makes_a_listener_say_more_than_three_times_what_it_hears() {
    let mut failed = 0;
    for seed in 0..1500 {
        let mut rng = fastrand::Rng::with_seed(seed);
        let rate = Rate::from_bits_per_sec(20_000_000);
        let rtt = Duration::from_millis(rng.u64(1..300));
        let mut path = plain_link(rate, rtt, 0.0);
        path.loss = LossModel::Bernoulli(Probability::new(rng.f64() * 0.3));
        path.duplicate = Probability::new(rng.f64() * 0.2);
        path.reorder =
            Reorder { probability: Probability::new(0.2), extra: Duration::from_millis(20) };
        let mut scenario = Scenario::over(path, Load::Bytes(1000, StreamKind::Ordered), seed);
        let (loss, copies) = (rng.f64() * 0.9, rng.usize(1..4));
        scenario.meddler = Some(Box::new(LossyPath { rng, loss, copies }));
        // Some connections fail within ten seconds, which is not what is tested here.
        if let Err(error) = scenario.run() {
            failed += 1;
            assert!(error.what.contains("no answer"), "{error}");
        }
    }
    println!("{failed} of 1500 without a connection");
    assert!(failed < 300, "{failed}");
}

fn address(port: u16) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, 1], port))
}

fn end(now: Instant, side: Side) -> Connection {
    let config = Config::default();
    let first = ConnectionId(7);
    let (local, peer) = match side {
        Side::Client => (ConnectionId(1), address(2)),
        Side::Server => (ConnectionId(2), address(1)),
    };
    let ids = ClientIds { local, destination: first, seed: 5 };
    let params = Connection::local_params(&config, local, first).encode();
    let session = Box::new(SimSession::new(side, params));
    match side {
        Side::Client => Connection::client(now, config, session, peer, ids),
        Side::Server => Connection::server(now, config, session, peer, ids),
    }
}

/// The datagrams that `end` sends until `until`.
fn said(end: &mut Connection, mut now: Instant, until: Instant) -> Vec<Vec<u8>> {
    let (mut said, mut out) = (Vec::new(), Vec::new());
    while now <= until {
        if end.poll_timeout().is_some_and(|(due, _)| due <= now) {
            end.handle_timeout(now);
        }
        while let Some(transmit) = end.poll_transmit(now, &mut out) {
            said.extend(out[..transmit.len].chunks(transmit.segment).map(<[u8]>::to_vec));
        }
        now += Duration::from_millis(10);
    }
    said
}

/// The client sends its first flight and then nothing, as with a spoofed source address.
#[test]
fn a_listener_that_gives_up_says_no_more_than_three_times_what_it_heard() {
    for closes in [false, true] {
        let now = Instant::from_millis(1000);
        let hello = said(&mut end(now, Side::Client), now, now);
        let heard: usize = hello.iter().map(Vec::len).sum();
        let mut server = end(now, Side::Server);
        for bytes in hello {
            server.handle_datagrams(now, Datagrams::one(address(1), now, bytes));
        }
        let late = now + Duration::from_secs(9);
        let mut bytes: usize = said(&mut server, now, late).iter().map(Vec::len).sum();
        assert!(bytes > heard, "it repeats itself");
        if closes {
            server.close(code::DONE, "going");
        }
        let end = late + Duration::from_secs(9);
        bytes += said(&mut server, late, end).iter().map(Vec::len).sum::<usize>();
        assert!(server.is_closed());
        assert!(bytes <= 3 * heard, "{bytes} bytes for {heard}");
    }
}
