//! The protocol document and the code that obeys it point at each other.
//!
//! A normative sentence of the document carries an anchor, `**[ack-3]**`. The code that obeys it
//! says so with a comment that begins with `spec:` and names the anchor, or several with commas.

use super::source::Source;
use super::{Finding, TextFile};
use std::collections::BTreeMap;

#[cfg(test)]
mod tests;

/// The document with the anchors.
pub(super) const DOCUMENT: &str = "docs/protocol.md";

/// An anchor that no code cites, and why.
pub(super) struct Exception {
    anchor: &'static str,
    reason: &'static str,
}

/// Sentences that no single place in the code can cite.
pub(super) const EXCEPTIONS: &[Exception] = &[];

/// Each anchor stands once and is cited or excepted; each citation has its anchor.
pub(super) fn check(
    document: Option<&TextFile>,
    sources: &[Source],
    exceptions: &[Exception],
) -> Vec<Finding> {
    let Some(document) = document else {
        return vec![Finding::warning(DOCUMENT, 1, "is not there: citations are not checked")];
    };
    let mut findings = Vec::new();
    let mut anchors = BTreeMap::new();
    for (anchor, line) in anchors_in(&document.text) {
        if let Some(first) = anchors.insert(anchor, line) {
            let text = format!("[{anchor}] stands already in line {first}");
            findings.push(Finding::error(DOCUMENT, line, text));
        }
    }
    let mut cited = BTreeMap::new();
    for source in sources {
        for (anchor, line) in citations_in(source) {
            if !anchors.contains_key(anchor) {
                let text = format!("cites [{anchor}], which {DOCUMENT} does not have");
                findings.push(Finding::error(&source.path, line, text));
            }
            cited.insert(anchor, line);
        }
    }
    for exception in exceptions {
        let anchor = exception.anchor;
        if cited.contains_key(anchor) || !anchors.contains_key(anchor) {
            let text = format!("[{anchor}] needs no exception any more ({})", exception.reason);
            findings.push(Finding::error(DOCUMENT, 1, text));
        }
    }
    let is_excepted = |anchor: &str| exceptions.iter().any(|exception| exception.anchor == anchor);
    for (anchor, line) in anchors {
        if !cited.contains_key(anchor) && !is_excepted(anchor) {
            findings.push(Finding::error(DOCUMENT, line, format!("[{anchor}] is cited nowhere")));
        }
    }
    findings
}

fn anchors_in(text: &str) -> impl Iterator<Item = (&str, usize)> {
    text.lines().enumerate().flat_map(|(index, line)| {
        let candidates = line.split("**[").skip(1).filter_map(|rest| rest.split_once("]**"));
        candidates
            .map(|(name, _)| name)
            .filter(|name| is_anchor(name))
            .map(move |name| (name, index + 1))
    })
}

/// A name of letters, digits and dashes that ends in a number: `ack-3`.
fn is_anchor(name: &str) -> bool {
    name.rsplit_once('-').is_some_and(|(stem, number)| {
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '-';
        !stem.is_empty()
            && stem.chars().all(is_name)
            && !number.is_empty()
            && number.chars().all(|c| c.is_ascii_digit())
    })
}

fn citations_in(source: &Source) -> impl Iterator<Item = (&str, usize)> {
    source.comments.lines().enumerate().flat_map(|(index, line)| {
        let names = line.split_once("// spec:").map_or("", |(_, names)| names);
        names
            .split(',')
            .map(str::trim)
            .filter(|name| !name.is_empty())
            .map(move |name| (name, index + 1))
    })
}
