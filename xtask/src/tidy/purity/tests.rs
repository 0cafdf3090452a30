//! Impure words are seen where they matter, and only there.

use super::*;

fn said(path: &str, text: &str) -> Vec<String> {
    check(&[Source::new(path, text)]).iter().map(Finding::to_string).collect()
}

#[test]
fn every_ban_can_strike() {
    for ban in BANS {
        let found = said("crates/cc/src/a.rs", &format!("fn f() {{ {} }}", ban.word));
        assert!(!found.is_empty(), "{}", ban.word);
    }
}

#[test]
fn the_clock_is_seen() {
    let found = said("crates/proto/src/a.rs", "fn f() {\n    let now = Instant::now();\n}");
    assert_eq!(
        found,
        ["crates/proto/src/a.rs:2: `Instant::now` in a pure crate: take `now` as an argument"]
    );
}

#[test]
fn comments_tests_and_other_crates_are_free() {
    assert!(
        said("crates/cc/src/a.rs", "//! Like std::vec.\n#[cfg(test)]\nmod t { use std::io; }\n")
            .is_empty()
    );
    assert!(said("crates/cc/src/a/tests.rs", "use std::io;").is_empty());
    assert!(said("crates/net/src/a.rs", "use std::io;").is_empty());
}

#[test]
fn no_std_is_asked_of_the_root() {
    assert_eq!(said("crates/cc/src/lib.rs", "mod a;").len(), 1);
    assert!(said("crates/cc/src/lib.rs", "#![no_std]\nmod a;").is_empty());
}

#[test]
fn a_seeded_generator_is_fine() {
    assert!(said("crates/link/src/a.rs", "let rng = fastrand::Rng::with_seed(7);").is_empty());
    assert_eq!(said("crates/link/src/a.rs", "let rng = fastrand::Rng::new();").len(), 1);
    assert_eq!(said("crates/link/src/a.rs", "let x = fastrand::u64(..);").len(), 1);
}
