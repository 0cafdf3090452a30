//! Datagrams of nobody known, and the tokens in them: what is answered is shorter than the question, and
//! no token is good that was not made here.
#![no_main]

use hikyaku_crypto::{Secret, TokenKey};
use hikyaku_units::Instant;
use hikyaku_wire::{ConnectionId, MIN_INITIAL_LEN};
use libfuzzer_sys::fuzz_target;
use route::{Entrance, Load, Verdict, judge, retry};
use std::sync::OnceLock;

#[allow(dead_code, unreachable_pub, reason = "a file of another crate")]
#[path = "../../crates/net/src/route.rs"]
mod route;

fuzz_target!(|bytes: &[u8]| {
    static KEYS: OnceLock<(TokenKey, Secret)> = OnceLock::new();
    let (key, secret) = KEYS.get_or_init(|| (TokenKey::generate(), Secret::generate()));
    let Some((&busy, rest)) = bytes.split_first() else { return };
    let from = "192.0.2.1:5000".parse().expect("an address");
    let now = Instant::from_millis(60_000);
    assert!(!key.check(now, from, ConnectionId(7), rest));
    assert!(!secret.admits(ConnectionId(7), rest));
    // As long as a first packet, so that it is looked into.
    let mut datagram = rest.to_vec();
    datagram.resize(datagram.len().max(MIN_INITIAL_LEN), busy);
    for datagram in [rest, &datagram] {
        let load = Load { half_open: usize::from(busy) * 8, prove_from: 64 };
        for entrance in [Entrance::Open, Entrance::Invited] {
            let verdict = judge(datagram, load, entrance, |stranger, token| {
                key.check(now, from, stranger.destination, token)
                    || secret.admits(stranger.destination, token)
            });
            let answer = match verdict {
                Verdict::Silence => continue,
                Verdict::Accept(..) => Vec::new(),
                Verdict::Prove(stranger) => {
                    retry(&stranger, key.mint(now, from, stranger.destination))
                }
                Verdict::Versions(packet) => packet,
            };
            assert!(datagram.len() >= MIN_INITIAL_LEN && answer.len() < datagram.len());
            assert!(entrance == Entrance::Open, "nobody was invited");
        }
    }
});
