//! The tables of what a peer can make this end hold name tests that exist.
//!
//! A name in backticks in the last column that has several words is a test, or a lie of `bench/liars` if it has hyphens.
//! Files are checked as those of every document, by `references`.

use super::{Finding, TextFile};
use crate::source::Source;
use std::collections::BTreeSet;

pub(super) const DOCUMENT: &str = "docs/internals/budgets.md";
/// Where the lies are.
const LIARS: &str = "bench/liars/";

/// Each test that the tables name exists.
pub(super) fn check(document: &TextFile, sources: &[Source]) -> Vec<Finding> {
    let tests: BTreeSet<&str> = sources.iter().flat_map(|source| functions(&source.code)).collect();
    let is_lie = |name: &str| {
        let text = format!("\"{name}\"");
        let mut liars = sources.iter().filter(|source| source.path.starts_with(LIARS));
        liars.any(|source| source.text.contains(&text))
    };
    let rows = document.text.lines().enumerate().filter(|(_, line)| line.starts_with("| "));
    let mut findings = Vec::new();
    for (number, row) in rows {
        let mut missing = |text: String| findings.push(Finding::error(DOCUMENT, number + 1, text));
        let last = row.trim_end_matches([' ', '|']).rsplit('|').next().unwrap_or_default();
        for name in quoted(last).filter(|name| is_test(name)) {
            let is_there = if name.contains('-') { is_lie(name) } else { tests.contains(name) };
            if !is_there {
                missing(format!("names the test {name}, which does not exist"));
            }
        }
    }
    findings
}

/// Whether this is the name of a test or of a lie. A fuzz target is one word.
fn is_test(name: &str) -> bool {
    name.contains(['_', '-']) && !name.contains(['.', ' ', '/'])
}

/// What stands in backticks.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

/// The names of all functions.
fn functions(code: &str) -> impl Iterator<Item = &str> {
    let name = |rest: &'_ str| rest.find(|letter: char| letter != '_' && !letter.is_alphanumeric());
    code.split("fn ").skip(1).filter_map(move |rest| rest.get(..name(rest)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_that_does_not_exist_is_seen() {
        let sources = [
            Source::new("crates/net/src/route.rs", "//! Routes.\nfn a_test_of_routes() {}\n"),
            Source::new(
                "bench/liars/src/table.rs",
                "//! Lies.\nconst LIE: &str = \"long-path\";\n",
            ),
        ];
        let told = |row: &str| {
            let text = format!("| what | bound | where | test |\n|---|---|---|---|\n{row}\n");
            check(&TextFile { path: DOCUMENT.to_owned(), text }, &sources)
        };
        for row in [
            "| routes | 3 of `N` | `net/route.rs` | `a_test_of_routes` |",
            "| paths | 3 | `route.rs` | `long-path` |",
            "| others | 3 | none | none: read it |",
        ] {
            assert!(told(row).is_empty(), "{row}: {:?}", told(row));
        }
        for row in [
            "| routes | 3 | `net/route.rs` | `a_test_of_paths` |",
            "| paths | 3 | `net/route.rs` | `short-path` |",
        ] {
            assert_eq!(told(row).len(), 1, "{row}");
        }
    }
}
