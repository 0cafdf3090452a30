//! Product code as the counts read it: functions with their bodies, calls, and words.
//!
//! Not a parser, like `source`: names are compared as words. A call through a trait object or of a function of another
//! crate is therefore known by its name only.

use crate::source::{Body, Source, body_after, find_word, is_word_byte};
use std::collections::BTreeSet;
use std::ops::Range;

/// A file of a crate, without comments, literals and tests.
pub(super) struct Code<'a> {
    /// The folder name of the crate.
    pub(super) crate_name: &'a str,
    pub(super) path: &'a str,
    /// As it stands on disk, for the literals.
    pub(super) whole: &'a str,
    pub(super) text: String,
}

/// A function with a body.
pub(super) struct Function<'a> {
    pub(super) name: &'a str,
    pub(super) body: &'a str,
}

impl<'a> Code<'a> {
    /// The code of a file below `crates/*/src`; `None` for other files, for tests, and for suites that other crates run as
    /// tests.
    pub(super) fn of(source: &'a Source) -> Option<Self> {
        let crate_name = source.crate_name()?;
        let is_suite = source.path.contains("/testing/") || source.path.ends_with("/testing.rs");
        let (path, whole) = (source.path.as_str(), source.text.as_str());
        (!is_suite).then(|| Self { crate_name, path, whole, text: source.product_code() })
    }

    /// The module directly below the root of the crate that this file is part of.
    pub(super) fn module(&self) -> &str {
        let below = self.path.split("/src/").nth(1).unwrap_or_default();
        below.split('/').next().unwrap_or_default().trim_end_matches(".rs")
    }

    /// Whether one of these stands in the code, each as words of their own.
    pub(super) fn has_any(&self, words: &[&str]) -> bool {
        words.iter().any(|word| find_word(&self.text, word).next().is_some())
    }

    /// Whether a call has a first argument that begins with one of `starts`.
    pub(super) fn has_call_with(&self, call: &str, starts: &[&str]) -> bool {
        find_word(&self.text, call).any(|at| {
            let arguments = self.text[at + call.len()..].trim_start();
            starts.iter().any(|start| arguments.starts_with(start))
        })
    }

    /// The functions with a body, in order. A function inside another one is part of both.
    pub(super) fn functions(&self) -> Vec<Function<'_>> {
        let named = |at: usize| {
            let name = word_at(&self.text, at + "fn ".len());
            let Some(Body::Block(block)) = body_after(&self.text, at) else { return None };
            (!name.is_empty()).then(|| Function { name, body: &self.text[block] })
        };
        find_word(&self.text, "fn ").filter_map(named).collect()
    }

    /// Blocks in braces that follow `word`, with what stands between: `struct Name { .. }`.
    pub(super) fn blocks(&self, word: &str) -> Vec<Range<usize>> {
        let block = |at| match body_after(&self.text, at) {
            Some(Body::Block(block)) => Some(at..block.end),
            _ => None,
        };
        find_word(&self.text, word).filter_map(block).collect()
    }

    /// Each word of the file's imports.
    pub(super) fn imported(&self) -> BTreeSet<&str> {
        let of_use = |at: usize| {
            let end = self.text[at..].find(';').map_or(self.text.len(), |end| at + end);
            self.text[at..end].split(|letter: char| !letter.is_alphanumeric() && letter != '_')
        };
        find_word(&self.text, "use ").flat_map(of_use).collect()
    }
}

impl Function<'_> {
    /// The functions of this file that the body calls: by name, as `self.name`, as `Self::name`, or on the argument of a
    /// closure.
    pub(super) fn own_calls<'b>(&self, names: &BTreeSet<&'b str>) -> BTreeSet<&'b str> {
        let is_own = |name: &str, at: usize| match self.body[..at].trim_end().strip_suffix('.') {
            Some(before) => {
                let receiver = last_word(before);
                let outer = before.trim_end_matches(receiver).trim_end();
                // The argument of a closure may be another object, which has the method that calls.
                let is_closure = name != self.name
                    && ["|", ":"]
                        .iter()
                        .any(|end| self.body.contains(&format!("|{receiver}{end}")));
                !outer.ends_with('.') && (receiver == "self" || !receiver.is_empty() && is_closure)
            }
            None => !self.body[..at].ends_with("::") || self.body[..at].ends_with("Self::"),
        };
        let is_called =
            |name: &&&str| find_word(self.body, &format!("{name}(")).any(|at| is_own(name, at));
        names.iter().filter(is_called).copied().collect()
    }

    /// Which of `names` the body calls as functions, without a receiver or a path.
    pub(super) fn calls_any_of(&self, names: &BTreeSet<&str>) -> bool {
        names.iter().any(|name| {
            find_word(self.body, &format!("{name}("))
                .any(|at| !self.body[..at].ends_with(['.', ':']))
        })
    }
}

/// The word that begins at `at`; empty if none does.
pub(super) fn word_at(text: &str, at: usize) -> &str {
    let rest = text.get(at..).unwrap_or_default();
    let end = rest.bytes().position(|byte| !is_word_byte(byte)).unwrap_or(rest.len());
    &rest[..end]
}

/// The word at the end of `text`; empty if it does not end with one.
pub(super) fn last_word(text: &str) -> &str {
    let start = text.bytes().rposition(|byte| !is_word_byte(byte)).map_or(0, |at| at + 1);
    text.get(start..).unwrap_or_default()
}
