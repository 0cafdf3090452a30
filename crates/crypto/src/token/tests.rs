//! A token is valid for one client, under one key, for ten seconds.

use super::*;

fn client() -> SocketAddr {
    "192.0.2.7:5000".parse().unwrap()
}

const AT: Instant = Instant::from_millis(60_000);
const TO: ConnectionId = ConnectionId(0x0102_0304_0506_0708);

// spec: hs-4
#[test]
fn a_token_lives_ten_seconds() {
    let key = TokenKey::generate();
    let token = key.mint(AT, client(), TO);
    for (at, good) in
        [(59_999, false), (60_000, true), (70_000, true), (70_001, false), (u64::MAX, false)]
    {
        assert_eq!(key.check(Instant::from_millis(at), client(), TO, &token), good, "{at}");
    }
}

// spec: hs-4
#[test]
fn a_token_is_good_for_one_client() {
    let key = TokenKey::generate();
    let token = key.mint(AT, client(), TO);
    assert!(key.check(AT, client(), TO, &token));
    assert!(key.check(AT, "[::ffff:192.0.2.7]:5000".parse().unwrap(), TO, &token));
    for other in ["192.0.2.8:5000", "192.0.2.7:5001", "[::1]:5000"] {
        assert!(!key.check(AT, other.parse().unwrap(), TO, &token), "{other}");
    }
    assert!(!key.check(AT, client(), ConnectionId(1), &token));
    assert!(!TokenKey::generate().check(AT, client(), TO, &token));
}

#[test]
fn a_changed_token_is_refused() {
    let key = TokenKey::generate();
    let token = key.mint(AT, client(), TO);
    for bit in 0..token.len() * 8 {
        let mut bad = token.clone();
        bad[bit / 8] ^= 1 << (bit % 8);
        assert!(!key.check(AT, client(), TO, &bad), "bit {bit}");
    }
    for len in 0..token.len() {
        assert!(!key.check(AT, client(), TO, &token[..len]), "{len} bytes");
    }
    assert!(!key.check(AT, client(), TO, &[token.as_slice(), &[0]].concat()));
}
