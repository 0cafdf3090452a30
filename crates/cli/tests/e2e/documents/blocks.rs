//! Blocks of a page that are run.

use super::hosts::Host;

/// A block with a mark.
pub(super) struct Block {
    /// The line of the page on which it begins.
    pub(super) line: usize,
    pub(super) kind: Kind,
    pub(super) lines: Vec<String>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    Commands(Host),
    /// The output of the block before it.
    Output,
}

/// The marked blocks of a page.
pub(super) fn blocks(page: &str) -> Vec<Block> {
    let mut all: Vec<Block> = Vec::new();
    // Whether the lines of the present block, if there is one, are of interest.
    let mut open: Option<bool> = None;
    for (number, line) in page.lines().enumerate() {
        if let Some(mark) = line.strip_prefix("```") {
            let kind = kind_of(mark).filter(|_| open.is_none());
            open = if open.is_some() { None } else { Some(kind.is_some()) };
            all.extend(kind.map(|kind| Block { line: number + 1, kind, lines: Vec::new() }));
        } else if open == Some(true) {
            all.last_mut().unwrap().lines.push(line.to_owned());
        }
    }
    all
}

fn kind_of(mark: &str) -> Option<Kind> {
    match mark {
        "sh,test" => Some(Kind::Commands(Host::Laptop)),
        "sh,test,node1" => Some(Kind::Commands(Host::Node1)),
        "text,test" => Some(Kind::Output),
        _ => {
            assert!(!mark.contains("test"), "an unknown mark: {mark}");
            None
        }
    }
}

/// A printed line without what differs from run to run: numbers, units of rates, keys, and the width of columns.
pub(super) fn constant(line: &str) -> String {
    let words = line.split_whitespace().map(|word| {
        let rate = ["kbit/s", "Mbit/s", "Gbit/s"].iter().any(|unit| word.starts_with(unit));
        match word.split_once(':') {
            _ if rate => "bit/s".to_owned(),
            Some((kind @ ("SHA256" | "ed25519"), _)) => format!("{kind}:KEY"),
            _ => numbers(word),
        }
    });
    words.collect::<Vec<_>>().join(" ")
}

/// The word with `N` in place of each number.
fn numbers(word: &str) -> String {
    let mut text = String::new();
    let mut letters = word.chars().peekable();
    let mut before = ' ';
    while let Some(letter) = letters.next() {
        // A digit behind a letter belongs to a name: node1, f3.dat.
        if letter.is_ascii_digit() && !before.is_alphabetic() {
            while letters.next_if(|next| next.is_ascii_digit() || *next == '.').is_some() {}
            text.push('N');
        } else {
            text.push(letter);
        }
        before = letter;
    }
    text
}

#[test]
fn marked_blocks_are_found_and_constant_parts_compared() {
    let page =
        "```sh,test\na\nb\n```\n```text,test\nc\n```\n```sh\nd\n```\n```sh,test,node1\ne\n```\n";
    let found = blocks(page);
    let kinds: Vec<_> = found.iter().map(|block| (block.line, block.kind)).collect();
    let expected =
        [(1, Kind::Commands(Host::Laptop)), (5, Kind::Output), (11, Kind::Commands(Host::Node1))];
    assert_eq!(kinds, expected);
    assert_eq!(found[0].lines, ["a", "b"]);
    let same = |one: &str, other: &str| constant(one) == constant(other);
    assert!(same(
        "3 files, 15.0 MB in 0.7 s, 162 Mbit/s",
        "3 files, 15.0 MB in 1.2 s, 1.10 Gbit/s"
    ));
    assert!(same("key SHA256:abc at [::]:5209", "key  SHA256:de+/ at [::]:5209"));
    assert!(!same("node1: added", "node2: added") && !same("1 file", "1 link"));
}
