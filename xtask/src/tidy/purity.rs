//! Pure crates: no standard library, no clock, no I/O, no randomness of their own.

use super::Finding;
use super::floors::PURE;
use crate::source::Source;

#[cfg(test)]
mod tests;

/// A word that pure code may not contain, and what to do without it.
struct Ban {
    word: &'static str,
    remedy: &'static str,
}

const BANS: &[Ban] = &[
    Ban { word: "std::", remedy: "use core:: or alloc::" },
    Ban { word: "extern crate std", remedy: "use core:: or alloc::" },
    Ban { word: "Instant::now", remedy: "take `now` as an argument" },
    Ban { word: "SystemTime", remedy: "take the time as an argument" },
    Ban { word: "rand::", remedy: "take a seeded generator" },
    Ban { word: "getrandom", remedy: "take a seeded generator" },
    Ban { word: "thread_local!", remedy: "keep state in the struct it belongs to" },
    Ban { word: "tokio", remedy: "leave waiting to the caller" },
    Ban { word: "HashMap", remedy: "use BTreeMap: its order is the same in every run" },
    Ban { word: "HashSet", remedy: "use BTreeSet: its order is the same in every run" },
];

/// The one name of `fastrand` that has no global state behind it.
const SEEDED: &str = "fastrand::Rng";

/// No banned word outside test code, and `#![no_std]` on top.
pub(super) fn check(sources: &[Source]) -> Vec<Finding> {
    sources
        .iter()
        .filter(|source| source.crate_name().is_some_and(|name| PURE.contains(&name)))
        .flat_map(check_source)
        .collect()
}

fn check_source(source: &Source) -> Vec<Finding> {
    let mut findings = Vec::new();
    if source.is_crate_root() && !source.code.contains("#![no_std]") {
        findings.push(Finding::error(&source.path, 1, "a pure crate is #![no_std]"));
    }
    for ban in BANS {
        for at in source.find_word(ban.word).filter(|&at| !source.is_test(at)) {
            let text = format!("`{}` in a pure crate: {}", ban.word, ban.remedy);
            findings.push(Finding::error(&source.path, source.line_of(at), text));
        }
    }
    for at in source.find_word("fastrand::").filter(|&at| !source.is_test(at)) {
        let rest = &source.code[at..];
        if !rest.starts_with(SEEDED) || rest.starts_with("fastrand::Rng::new") {
            let text = "global randomness in a pure crate: take a seeded fastrand::Rng";
            findings.push(Finding::error(&source.path, source.line_of(at), text));
        }
    }
    findings
}
