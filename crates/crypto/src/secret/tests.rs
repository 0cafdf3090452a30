//! A secret admits only its own tokens, and does not leak into debug output.

use super::*;

// spec: hs-7
#[test]
fn the_token_is_a_mac_over_the_destination() {
    let digits: String = (0..32).map(|byte| format!("{byte:02x}")).collect();
    let secret: Secret = digits.parse().unwrap();
    let token = secret.token(ConnectionId(0x0102_0304_0506_0708));
    let shown: String = token.iter().map(|byte| format!("{byte:02x}")).collect();
    // Computed by an independent implementation of HMAC-SHA-256.
    assert_eq!(shown, "41f1b87c8569a48744efcd8507af65bd01a84894ef4a167f0a26d5865dd5b6e8");
}

// spec: hs-7
#[test]
fn a_token_is_good_for_one_secret_and_one_destination() {
    let (ours, other) = (Secret::generate(), Secret::generate());
    let token = ours.token(ConnectionId(7));
    assert!(ours.admits(ConnectionId(7), &token));
    assert!(!ours.admits(ConnectionId(8), &token));
    assert!(!other.admits(ConnectionId(7), &token));
    for wrong in [&token[..31], &[][..], &[0; 32]] {
        assert!(!ours.admits(ConnectionId(7), wrong));
    }
}

#[test]
fn a_secret_parses_from_hex_and_is_not_in_debug_output() {
    let secret = Secret::generate();
    let text = secret.to_hex();
    let back: Secret = text.parse().unwrap();
    assert!(back.admits(ConnectionId(1), &secret.token(ConnectionId(1))));
    assert!(!format!("{secret:?}").contains(&text[..4]));
    for wrong in ["", &text[1..], &"g".repeat(64), &format!("+{}", &text[1..])] {
        assert_eq!(wrong.parse::<Secret>().err(), Some(NotASecret));
    }
}
