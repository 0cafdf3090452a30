//! Rules of `docs/internals/protocol.md` that only a whole connection can keep or violate.

mod handshake;
mod packets;
mod places;
mod repair;
mod streams;

use hikyaku_proto::{Config, Side};
use hikyaku_sim::{Duo, Overheard, overhear};
use hikyaku_units::Instant;
use hikyaku_wire::{Frame, ShortHeader, Trailer, is_long};
use std::time::Duration;

const HALF: Duration = Duration::from_millis(50);

fn met() -> Duo {
    Duo::met(&Config::default(), &Config::default(), HALF)
}

/// The header of a packet under data keys.
fn short(packet: &[u8]) -> Option<ShortHeader> {
    (!is_long(packet)).then(|| ShortHeader::decode(packet).expect("a packet of ours"))
}

/// The stream and offset of a data packet's payload, and its length.
fn placed(packet: &[u8]) -> Option<(Trailer, u64)> {
    match overhear(packet)? {
        Overheard::Data { trailer, len } => Some((trailer, len)),
        Overheard::Control(_) => None,
    }
}

/// The frames of a control packet under data keys.
fn frames(packet: &[u8]) -> Vec<Frame> {
    match overhear(packet) {
        Some(Overheard::Control(frames)) => frames,
        _ => Vec::new(),
    }
}

/// Lets time pass for one end run_alone until `until`. Returns what it sends, and when.
fn run_alone(duo: &mut Duo, side: Side, until: Instant) -> Vec<(Instant, Vec<u8>)> {
    let mut said = Vec::new();
    for _ in 0..100_000 {
        said.extend(duo.take(side).into_iter().map(|packet| (duo.now, packet)));
        let due = duo.end(side).poll_timeout().map(|(due, _)| due);
        let next = due.map_or(until, |due| due.max(duo.now + Duration::from_micros(10)));
        if next >= until {
            duo.now = until;
            return said;
        }
        duo.now = next;
    }
    panic!("a busy loop");
}
