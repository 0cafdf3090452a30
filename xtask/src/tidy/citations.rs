//! The protocol documents, the code that obeys them and the tests that would see them disobeyed point at each other.
//!
//! A normative sentence of a document carries an anchor, `**[ack-3]**`. The code that obeys it
//! says so with a comment that begins with `spec:` and names the anchor, or several with commas. So does
//! at least one test that fails when the sentence is broken. What MUST be stands behind an anchor, or nobody could
//! cite it.

use super::floors::DEV_ONLY;
use super::{Finding, TextFile};
use crate::source::Source;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

#[cfg(test)]
mod tests;

/// The documents with the anchors: the transport, and the conversation of a copy.
pub(super) const DOCUMENTS: &[&str] =
    &["docs/internals/protocol.md", "docs/internals/transfer-protocol.md"];

/// An anchor that code or tests do not cite, and why.
pub(super) struct Exception {
    anchor: &'static str,
    reason: &'static str,
}

/// Sentences that no single place can cite.
pub(super) const EXCEPTIONS: &[Exception] = &[];

/// Words of RFC 2119 that oblige.
const OBLIGING: [&str; 4] = ["MUST", "SHALL", "SHOULD", "REQUIRED"];

/// Each anchor stands once and is cited by code and by a test, or excepted; each citation has its anchor, and so
/// has whatever obliges.
pub(super) fn check(
    documents: &[&TextFile],
    sources: &[Source],
    exceptions: &[Exception],
) -> Vec<Finding> {
    let missing = DOCUMENTS.iter().filter(|path| documents.iter().all(|file| file.path != **path));
    let mut findings: Vec<Finding> =
        missing.map(|path| Finding::error(path, 1, "is not there")).collect();
    let mut anchors = BTreeMap::new();
    for document in documents {
        findings.extend(unanchored(document));
        for (anchor, line) in anchors_in(&document.text) {
            let place = (document.path.as_str(), line);
            if let Some((path, first)) = anchors.insert(anchor, place) {
                let text = format!("[{anchor}] stands already in line {first} of {path}");
                findings.push(Finding::error(&document.path, line, text));
            }
        }
    }
    let mut cited = BTreeSet::new();
    for source in sources {
        for (anchor, line) in citations_in(source) {
            if !anchors.contains_key(anchor) {
                let text = format!("cites [{anchor}], which no protocol document has");
                findings.push(Finding::error(&source.path, line, text));
            }
            cited.extend(place_of(source, line).map(|place| (anchor, place)));
        }
    }
    for exception in exceptions {
        let anchor = exception.anchor;
        let is_cited = PLACES.iter().all(|place| cited.contains(&(anchor, *place)));
        let path = anchors.get(anchor).map(|(path, _)| *path);
        if is_cited || path.is_none() {
            let text = format!("[{anchor}] needs no exception any more ({})", exception.reason);
            findings.push(Finding::error(path.unwrap_or(DOCUMENTS[0]), 1, text));
        }
    }
    let is_excepted = |anchor: &str| exceptions.iter().any(|exception| exception.anchor == anchor);
    for (anchor, (path, line)) in anchors {
        for place in PLACES.iter().filter(|place| !cited.contains(&(anchor, **place))) {
            if !is_excepted(anchor) {
                let text = format!("[{anchor}] is cited by no {place}");
                findings.push(Finding::error(path, line, text));
            }
        }
    }
    findings
}

/// What cites a sentence.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Place {
    Code,
    Test,
}

const PLACES: [Place; 2] = [Place::Code, Place::Test];

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Code => "code",
            Self::Test => "test",
        })
    }
}

/// What a citation in this line counts for. What a simulation obeys is no product: it counts for neither,
/// and no more do examples and benches, which nobody runs for what they find.
fn place_of(source: &Source, line: usize) -> Option<Place> {
    let is_run = !["examples/", "benches/"].iter().any(|part| source.path.contains(part));
    let offset = source.text.split_inclusive('\n').take(line - 1).map(str::len).sum();
    // The tables in bench/liars describe peers that break the protocol. Only tests run them, so a citation there counts
    // as one in a test.
    if source.is_test(offset) || source.path.starts_with("bench/liars/src/lies/") {
        return is_run.then_some(Place::Test);
    }
    let is_product = |name: &str| !DEV_ONLY.contains(&format!("hikyaku-{name}").as_str());
    source.crate_name().filter(|name| is_product(name)).map(|_| Place::Code)
}

/// Obliging words that stand in their paragraph before any anchor.
fn unanchored(document: &TextFile) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut is_anchored = false;
    for (index, line) in document.text.lines().enumerate() {
        is_anchored &= !line.trim().is_empty();
        let before = match line.split_once("**[") {
            _ if is_anchored => "",
            Some((before, _)) => before,
            None => line,
        };
        is_anchored |= anchors_in(line).next().is_some();
        let mut words = before.split(|c: char| !c.is_ascii_alphabetic());
        if let Some(word) = words.find(|word| OBLIGING.contains(word)) {
            let text = format!("{word} stands behind no anchor");
            findings.push(Finding::error(&document.path, index + 1, text));
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
