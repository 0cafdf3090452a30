//! A reader that nobody fuzzes is noticed.

use super::*;

fn said(code: &str) -> Vec<String> {
    let sources = [
        Source::new("crates/wire/src/a.rs", code),
        Source::new("fuzz/fuzz_targets/packets.rs", "fn f() {}"),
    ];
    check(&sources).into_iter().map(|finding| finding.text).collect()
}

const GOOD: &str = "/// Reads.\n// fuzz: packets\npub fn decode(bytes: &[u8]) {}\n";

#[test]
fn a_reader_names_its_target() {
    assert!(said(GOOD).is_empty());
    let more = |code: &str| said(&format!("{GOOD}\n{code}"));
    assert_eq!(more("fn parse_it(text: &str) {}").len(), 1);
    assert_eq!(more("fn read<'a>(\n    from: &mut impl BufRead,\n) {}").len(), 1);
    assert_eq!(more("// fuzz: nothing\nfn decode(from: &mut Reader<'_>) {}").len(), 1);
    assert!(more("// fuzz: none, the user's own words\nfn parse(text: &str) {}").is_empty());
    assert!(more("fn decode() -> &str {}\nfn encode(bytes: &[u8]) {}").is_empty());
    assert!(more("#[cfg(test)]\nmod tests { fn parse(text: &str) {} }").is_empty());
}

#[test]
fn a_target_that_nobody_names_is_noticed() {
    assert_eq!(said(""), ["no reader names this target"]);
}
