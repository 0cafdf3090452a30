//! Long packets from anybody: raw, and sealed under the keys that anybody has or that only a liar has.
#![no_main]

use hikyaku_proto::{Config, Session, Side};
use hikyaku_sim::{Duo, FIRST, SimSession, id, other};
use hikyaku_wire::{LongHeader, LongType, TAG_LEN, Version};
use libfuzzer_sys::fuzz_target;
use std::time::Duration;

/// A well-sealed packet around any bytes.
fn sealed(from: Side, kind: LongType, number: u32, body: &[u8]) -> Vec<u8> {
    let source = id(from);
    let destination = if from == Side::Client { FIRST } else { id(Side::Client) };
    let header = LongHeader {
        kind,
        version: Version::CURRENT,
        destination,
        source,
        packet_number: number,
        token: Vec::new(),
    };
    let mut packet = Vec::new();
    header.encode(&mut packet);
    let head = packet.len();
    packet.extend_from_slice(body);
    packet.resize(packet.len() + TAG_LEN, 0);
    let keys = match kind {
        LongType::Initial => SimSession::new(from, Vec::new()).initial_keys(FIRST),
        _ => SimSession::handshake_pair(from),
    };
    let (head, body) = packet.split_at_mut(head);
    keys.seal.seal(u64::from(number), head, body);
    packet
}

// Four bytes say what is done, the next so many what is said.
fuzz_target!(|bytes: &[u8]| {
    let mut duo = Duo::apart(&Config::default(), &Config::default());
    let mut rest = bytes;
    let mut number = 100;
    while let Some(([what, time, low, high], tail)) = rest.split_first_chunk::<4>() {
        let len = usize::from(u16::from_le_bytes([*low, *high]) % 1500).min(tail.len());
        let (body, tail) = tail.split_at(len);
        rest = tail;
        number += 1;
        let to = if what & 0x80 == 0 { Side::Client } else { Side::Server };
        let packet = match what & 7 {
            0 => body.to_vec(),
            1 => [&[0x80 | (time & 3), 0, 0, 0], body].concat(),
            2 | 3 => sealed(other(to), LongType::Initial, number, body),
            4 | 5 => sealed(other(to), LongType::Handshake, number, body),
            6 => {
                duo.exchange(Duration::from_millis(u64::from(*time)));
                continue;
            }
            _ => {
                duo.now += Duration::from_micros(u64::from(*time) * 100);
                let said = duo.take(to);
                assert!(said.len() < 1000, "endless words");
                continue;
            }
        };
        duo.give(to, [packet]);
    }
    (0..20).for_each(|_| duo.exchange(Duration::from_millis(10)));
});
