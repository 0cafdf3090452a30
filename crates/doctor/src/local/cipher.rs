//! The encryption rate of one core, for each cipher that this machine would use.

use crate::check::{Check, Id, State};
use hikyaku_crypto::{
    ClientCredentials, Identity, PeerName, ServerCredentials, Trust, cipher_name, preferred_ciphers,
};
use hikyaku_proto::{CipherId, KeyPair, Session};
use hikyaku_units::Rate;
use std::time::{Duration, Instant};

/// How long each cipher is tried.
const TRIAL: Duration = Duration::from_millis(50);
/// Bytes of a packet that are encrypted, the tag included: what an MTU of 1,500 leaves.
const BODY_BYTES: usize = 1_456;
/// Packets between two looks at the clock.
const PACKETS_PER_LOOK: u64 = 64;
/// Packets in memory, one after the other: 4 MiB, more than most caches of one core.
const PLACES: usize = (4 << 20) / BODY_BYTES;

/// The rates of all ciphers, and that of the preferred one.
pub(super) fn check() -> (Check, Option<Rate>) {
    let ciphers = preferred_ciphers();
    let rates: Vec<(CipherId, Rate)> =
        ciphers.into_iter().filter_map(|cipher| Some((cipher, rate(cipher)?))).collect();
    let Some(&(_, best)) = rates.first() else {
        return (Check::new(Id::Cipher, State::Fail, "no cipher could be tried"), None);
    };
    let shown: Vec<String> =
        rates.iter().map(|(cipher, rate)| format!("{} {rate}", cipher_name(*cipher))).collect();
    let check = Check::ok(Id::Cipher, format!("one core encrypts: {}", shown.join(", ")));
    (check.measured(best.bits_per_sec() as f64, "bit/s"), Some(best))
}

fn rate(cipher: CipherId) -> Option<Rate> {
    let keys = keys(cipher)?;
    let mut memory = vec![0x5a; PLACES * BODY_BYTES];
    let (begin, mut packets) = (Instant::now(), 0);
    let seconds = loop {
        for number in packets..packets + PACKETS_PER_LOOK {
            let at = number as usize % PLACES * BODY_BYTES;
            keys.seal.seal(number, &[1; 16], &mut memory[at..at + BODY_BYTES]);
        }
        packets += PACKETS_PER_LOOK;
        let elapsed = begin.elapsed();
        if elapsed >= TRIAL {
            break elapsed.as_secs_f64();
        }
    };
    let bits = packets as f64 * BODY_BYTES as f64 * 8.0;
    Some(Rate::from_bits_per_sec((bits / seconds) as u64))
}

/// Data keys, from a handshake of two ends within this process.
fn keys(cipher: CipherId) -> Option<KeyPair> {
    let identity = Identity::generate().ok()?;
    let peer = PeerName::new("localhost", 1).ok()?;
    let trust = Trust::Pinned(identity.fingerprint());
    let (client, _) = ClientCredentials::new(trust).session(&peer, vec![1]).ok()?;
    let server = ServerCredentials::new(&identity).session(vec![1]).ok()?;
    let mut ends = [client, server];
    for turn in 0..6 {
        let (speaker, listener) = (turn % 2, 1 - turn % 2);
        loop {
            let mut bytes = Vec::new();
            let is_last = ends[speaker].write(&mut bytes).is_none();
            ends[listener].read(&bytes).ok()?;
            if is_last {
                break;
            }
        }
    }
    Some(ends[0].data_keys(cipher)?.next_pair())
}
