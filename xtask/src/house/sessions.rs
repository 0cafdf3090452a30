//! Session set-ups and back-offs: how connections to daemons and servers begin, and begin again.

use super::Place;
use super::code::{Code, last_word};
use crate::source::find_word;

/// Arguments of a call that dials: an address, whom to trust, a service, and how long to try.
const DIAL_ARGUMENTS_MIN: usize = 3;
/// The choice of the keys that a daemon may have.
const TRUSTS: &[&str] = &["trust(", "Trust::Pinned(", "Trust::FirstUse("];
/// Growth from one attempt to the next.
const GROWTHS: &[&str] = &[
    "* 2",
    "*= 2",
    "saturating_mul(2)",
    "saturating_pow(",
    ".pow(",
    "1 <<",
    "1u32 <<",
    "1_u32 <<",
    "1u64 <<",
    "1_u64 <<",
];
const TIMES: &[&str] = &["Duration", "Instant"];
/// Crates in which a growing time is no wait for a connection: a packet is sent again, or a measurement is repeated.
const NO_CONNECTIONS: &[&str] = &["wire", "cc", "proto", "link", "sim", "lab", "tuner"];

/// Files that dial a daemon and choose which key it may have.
pub(super) fn set_ups(all: &[Code<'_>]) -> Vec<Place> {
    let dials = |code: &Code<'_>| {
        let call = ".dial(";
        let mut calls = find_word(&code.text, call);
        calls.any(|at| {
            last_word(&code.text[..at]) != "self"
                && arguments(&code.text[at + call.len()..]) >= DIAL_ARGUMENTS_MIN
        })
    };
    let is_set_up = |code: &&Code<'_>| dials(code) && code.has_any(TRUSTS);
    all.iter().filter(is_set_up).map(|code| Place::file(code.path)).collect()
}

/// Files with a wait that grows from attempt to attempt, up to a maximum.
pub(super) fn back_offs(all: &[Code<'_>]) -> Vec<Place> {
    let grows = |statement: &str| {
        let is_growth = |growth: &&'static str| find_word(statement, growth).next().is_some();
        statement.contains(".min(") && GROWTHS.iter().any(is_growth)
    };
    let is_back_off = |code: &&Code<'_>| {
        !NO_CONNECTIONS.contains(&code.crate_name)
            && code.has_any(TIMES)
            && code.text.split([';', '{', '}']).any(grows)
    };
    all.iter().filter(is_back_off).map(|code| Place::file(code.path)).collect()
}

/// The number of arguments of a call, from the text behind its opening parenthesis.
fn arguments(rest: &str) -> usize {
    let mut depth = 0_usize;
    let (mut commas, mut is_empty, mut ends_with_comma) = (0, true, false);
    for letter in rest.chars() {
        match letter {
            ')' | ']' | '}' if depth == 0 => break,
            ')' | ']' | '}' => depth -= 1,
            '(' | '[' | '{' => depth += 1,
            _ => {}
        }
        if !letter.is_whitespace() {
            ends_with_comma = letter == ',' && depth == 0;
            commas += usize::from(ends_with_comma);
            is_empty = false;
        }
    }
    commas + usize::from(!is_empty && !ends_with_comma)
}
