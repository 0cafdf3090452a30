//! Forged messages: an attacker without keys sends packets in the name of either end.

use super::path::{history, link};
use hikyaku_proto::{ConnectionId, Session, Side, StreamKind, code};
use hikyaku_sim::{Load, Meddler, Outcome, Scenario, SimSession};
use hikyaku_units::Instant;
use hikyaku_wire::{
    Frame, KeyPhase, LongHeader, LongType, PacketKind, ShortHeader, TAG_LEN, Version, is_long,
};
use std::time::Duration;

/// What an attacker knows beside the addresses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Knows {
    /// Nothing: it is not on the path.
    Nothing,
    /// All that can be read on the path. It sends once data flows.
    Path,
}

/// An attacker that sends forged CLOSE packets to both ends.
struct Forger {
    rng: fastrand::Rng,
    knows: Knows,
    /// The client's first destination id, its own id, and the server's id.
    ids: [Option<ConnectionId>; 3],
    /// The largest packet numbers of each end's short-header packets.
    numbers: [Option<u64>; 2],
}

impl Forger {
    fn new(knows: Knows) -> Box<Self> {
        let rng = fastrand::Rng::with_seed(9);
        Box::new(Self { rng, knows, ids: [None; 3], numbers: [None; 2] })
    }

    fn learn(&mut self, to: Side, datagram: &[u8]) {
        if !is_long(datagram) {
            let Ok(header) = ShortHeader::decode(datagram) else { return };
            let number = &mut self.numbers[usize::from(to == Side::Client)];
            *number = (*number).max(Some(header.packet_number));
        } else if let Ok((header, _)) = LongHeader::decode(datagram) {
            match to {
                Side::Server => {
                    self.ids[0].get_or_insert(header.destination);
                    self.ids[1].get_or_insert(header.source);
                }
                Side::Client => {
                    self.ids[2].get_or_insert(header.source);
                }
            }
        }
    }

    /// The real id if the attacker knows it, otherwise a random one.
    fn id(&mut self, which: usize) -> ConnectionId {
        let known = self.ids[which].filter(|_| self.knows == Knows::Path);
        known.unwrap_or_else(|| ConnectionId(self.rng.u64(..)))
    }

    fn words(&mut self, to: Side) -> Vec<Vec<u8>> {
        let (near, far, from) = match to {
            Side::Client => (1, 2, Side::Server),
            Side::Server => (2, 1, Side::Client),
        };
        let (first, near, far) = (self.id(0), self.id(near), self.id(far));
        let header = LongHeader {
            kind: LongType::Initial,
            version: Version::CURRENT,
            destination: near,
            source: far,
            packet_number: self.rng.u32(..),
            token: Vec::new(),
        };
        let of = |kind| LongHeader { kind, ..header.clone() };
        let versions = LongHeader { version: Version(0), ..of(LongType::VersionNegotiation) };
        let retry = LongHeader { token: vec![7; 40], ..of(LongType::Retry) };
        let keys = SimSession::new(from, Vec::new()).initial_keys(first);
        let mut words = vec![
            plain(&versions, &77_u32.to_le_bytes()),
            plain(&LongHeader { source: first, ..versions }, &77_u32.to_le_bytes()),
            plain(&retry, &[]),
            plain(&LongHeader { source: first, ..retry }, &[]),
            plain(&of(LongType::Handshake), &[0; 60]),
        ];
        let mut close = plain(&header, &[]);
        let head = close.len();
        Frame::Close { code: code::DONE, reason: Vec::new() }.encode(&mut close);
        close.resize(close.len() + TAG_LEN, 0);
        let (aad, body) = close.split_at_mut(head);
        keys.seal.seal(u64::from(header.packet_number), aad, body);
        words.push(close);
        words.extend(self.short(to, near));
        words
    }

    /// A forged CLOSE with the next packet number of the data, sealed with a wrong key.
    fn short(&mut self, to: Side, destination: ConnectionId) -> Vec<Vec<u8>> {
        let next = self.numbers[usize::from(to == Side::Client)].map_or(0, |number| number + 1);
        let phases = [KeyPhase::Even, KeyPhase::Odd];
        let forged = phases.map(|phase| {
            let header = ShortHeader {
                kind: PacketKind::Control,
                phase,
                ack_now: true,
                packet_number: next + self.rng.u64(0..3),
                destination,
            };
            let mut packet = header.encode().to_vec();
            Frame::Close { code: code::DONE, reason: Vec::new() }.encode(&mut packet);
            packet.extend((0..TAG_LEN).map(|_| self.rng.u8(..)));
            packet
        });
        forged.into()
    }
}

fn plain(header: &LongHeader, body: &[u8]) -> Vec<u8> {
    let mut packet = Vec::new();
    header.encode(&mut packet);
    packet.extend_from_slice(body);
    packet
}

impl Meddler for Forger {
    fn on_arrival(&mut self, _: Instant, to: Side, bytes: Vec<u8>) -> Vec<(Duration, Vec<u8>)> {
        self.learn(to, &bytes);
        let flows = self.numbers.iter().all(Option::is_some);
        let mut arriving = match self.knows {
            Knows::Path if !flows => Vec::new(),
            _ => self.words(to),
        };
        arriving.push(bytes);
        arriving.into_iter().map(|bytes| (Duration::ZERO, bytes)).collect()
    }
}

/// Passes all packets unchanged.
struct PassThrough;

impl Meddler for PassThrough {}

fn beside(meddler: Box<dyn Meddler>) -> Outcome {
    let load = Load::Bytes(2_000_000, StreamKind::Ordered);
    let mut scenario = Scenario::over(link(50, 20), load, 3);
    scenario.meddler = Some(meddler);
    scenario.run().expect("right bytes and no closed connection")
}

#[test]
fn forged_closes_end_no_connection() {
    let plain = beside(Box::new(PassThrough));
    for knows in [Knows::Nothing, Knows::Path] {
        let forged = beside(Forger::new(knows));
        assert_eq!(history(&plain), history(&forged), "{knows:?}");
    }
}

/// Drops all data packets of the server, and sends packets without keys in its name for an hour.
struct Impersonator {
    began: bool,
}

impl Meddler for Impersonator {
    fn on_arrival(&mut self, _: Instant, to: Side, bytes: Vec<u8>) -> Vec<(Duration, Vec<u8>)> {
        if to == Side::Client && !is_long(&bytes) {
            return Vec::new();
        }
        let mut arriving = vec![(Duration::ZERO, bytes)];
        if to == Side::Client && !std::mem::replace(&mut self.began, true) {
            let words = Forger::new(Knows::Nothing).words(to);
            let hour = (1..36_000).map(|tenth| Duration::from_millis(100 * tenth));
            let at = |at: Duration| words.iter().map(move |word| (at, word.clone()));
            arriving.extend(hour.flat_map(at));
        }
        arriving
    }
}

#[test]
fn packets_without_keys_do_not_reset_the_idle_timeout() {
    let load = Load::Bytes(2_000_000, StreamKind::Ordered);
    let mut scenario = Scenario::over(link(50, 20), load, 3);
    scenario.meddler = Some(Box::new(Impersonator { began: false }));
    let idle = scenario.client.idle_timeout;
    let error = scenario.run().expect_err("nobody answers");
    assert!(error.what.contains("nothing heard"), "{error}");
    let took = error.at - Instant::from_millis(1000);
    assert!(took < idle + Duration::from_secs(1), "{took:?}");
}
