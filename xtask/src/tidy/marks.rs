//! The number of comment lines in roundabout words may only fall, crate by crate.
//!
//! A line is marked if it has one of the forms that STYLE.md advises against: a clause with "what" or "who" in place of
//! a noun, a program that "tells" or "hears", "nobody", "the same" for a state that is not named. `marks.txt` has, for each
//! crate, its marked lines and their share of all comment lines in thousandths. The share is there for crates that are
//! not in the list, and so that deleting other comments does not pass for an improvement.

use super::markdown::without_inline_code;
use super::{Finding, TextFile};
use crate::source::Source;
use std::collections::BTreeMap;
use std::fmt::Write as _;

#[cfg(test)]
mod tests;

/// The list of what is allowed, as `cargo xtask tidy --lower` writes it.
pub(super) const LIST: &str = "xtask/src/tidy/marks.txt";
/// Thousandths of a crate that is not in the list.
const NEW_CRATE_SHARE_MAX: usize = 30;
/// Thousandths by which a share may differ from the list: other comments come and go.
const SHARE_TOLERANCE: usize = 5;
/// Comments that other rules read.
const NOT_WORDS: &[&str] = &["spec:", "fuzz:", "SAFETY:", "SPDX"];

/// Comment lines of a crate.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
struct Count {
    lines: usize,
    marked: usize,
}

/// What the list allows a crate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Allowed {
    marked: usize,
    share: usize,
}

impl Count {
    /// In thousandths, rounded down.
    fn share(self) -> usize {
        self.marked * 1000 / self.lines.max(1)
    }
}

/// No crate has more marked lines than the list allows, nor a higher share; and the list is lowered with them.
pub(super) fn check(list: &TextFile, sources: &[Source]) -> Vec<Finding> {
    let allowed = read(&list.text);
    let mut findings = Vec::new();
    let counts = counts(sources);
    for (name, count) in &counts {
        let mut error =
            |text: String| findings.push(Finding::error(&format!("crates/{name}"), 1, text));
        let Count { marked, .. } = *count;
        let share = count.share();
        let try_list = format!("(cargo xtask tidy --marks {name} lists them)");
        match allowed.get(*name) {
            Some(allowed) if marked > allowed.marked => error(format!(
                "{marked} marked comment lines, {} allowed {try_list}",
                allowed.marked
            )),
            Some(allowed) if share > allowed.share + SHARE_TOLERANCE => error(format!(
                "{share} thousandths of the comment lines are marked, {} allowed {try_list}",
                allowed.share
            )),
            Some(allowed) if share + SHARE_TOLERANCE < allowed.share => {
                error("fewer marked comment lines: cargo xtask tidy --lower".to_owned());
            }
            None if share > NEW_CRATE_SHARE_MAX => error(format!(
                "{share} thousandths of the comment lines are marked, {NEW_CRATE_SHARE_MAX} \
                 allowed {try_list}"
            )),
            _ => {}
        }
    }
    let gone = allowed.keys().filter(|name| !counts.contains_key(name.as_str()));
    findings.extend(
        gone.map(|name| {
            Finding::error(LIST, 1, format!("no crate {name}: cargo xtask tidy --lower"))
        }),
    );
    findings
}

/// The list as it should be: lower where a crate has fewer marked lines, never higher.
pub(super) fn lowered(list: &str, sources: &[Source]) -> String {
    let allowed = read(list);
    let mut text =
        String::from("# crate, marked comment lines, thousandths of all its comment lines\n");
    for (name, count) in counts(sources) {
        let most = allowed.get(name).copied().unwrap_or(Allowed {
            marked: count.lines * NEW_CRATE_SHARE_MAX / 1000,
            share: NEW_CRATE_SHARE_MAX,
        });
        let (marked, share) = (count.marked.min(most.marked), count.share().min(most.share));
        let _ = writeln!(text, "{name} {marked} {share}");
    }
    text
}

/// Each marked line of a crate, for people who rewrite them.
pub(super) fn list_of(name: &str, sources: &[Source]) -> Vec<String> {
    let mut marked = Vec::new();
    for source in sources.iter().filter(|source| crate_of(source) == Some(name)) {
        for (number, words) in comment_lines(source).filter(|(_, words)| is_marked(words)) {
            marked.push(format!("{}:{number}: {words}", source.path));
        }
    }
    marked
}

fn read(list: &str) -> BTreeMap<String, Allowed> {
    let rows = list.lines().filter(|line| !line.starts_with('#'));
    let row = |line: &str| {
        let mut words = line.split_whitespace();
        let name = words.next()?.to_owned();
        let mut number = || words.next()?.parse().ok();
        Some((name, Allowed { marked: number()?, share: number()? }))
    };
    rows.filter_map(row).collect()
}

fn counts(sources: &[Source]) -> BTreeMap<&str, Count> {
    let mut counts: BTreeMap<&str, Count> = BTreeMap::new();
    for source in sources {
        let Some(name) = crate_of(source) else { continue };
        let count = counts.entry(name).or_default();
        for (_, words) in comment_lines(source) {
            count.lines += 1;
            count.marked += usize::from(is_marked(&words));
        }
    }
    counts
}

/// The crate below `crates/`, tests included.
fn crate_of(source: &Source) -> Option<&str> {
    source.path.strip_prefix("crates/")?.split('/').next()
}

/// Comment lines that have words, with inline code as `x`. Code blocks in comments do not count.
fn comment_lines(source: &Source) -> impl Iterator<Item = (usize, String)> {
    let mut is_code = false;
    source.text.lines().enumerate().filter_map(move |(index, line)| {
        let words = line.trim_start().strip_prefix("//")?;
        let words = words.trim_start_matches(['/', '!']).trim();
        let is_fence = words.starts_with("```");
        is_code ^= is_fence;
        let is_other = NOT_WORDS.iter().any(|word| words.starts_with(word));
        let counts = !words.is_empty() && !is_code && !is_fence && !is_other;
        counts.then(|| (index + 1, without_inline_code(words)))
    })
}

/// Words of programs that speak.
const SPEECH: &[&str] = &[
    "tell", "tells", "told", "telling", "say", "says", "said", "saying", "hear", "hears", "heard",
    "heed", "heeds", "heeded",
];
const EVERYBODY: &[&str] = &["nobody", "somebody", "anybody", "everybody", "whoever"];
const AMOUNTS: &[&str] = &["many", "much", "long", "often", "far"];

/// Whether a line of a comment has one of the forms.
fn is_marked(line: &str) -> bool {
    let words: Vec<&str> = line.split_whitespace().collect();
    words.iter().enumerate().any(|(at, word)| {
        let before = at.checked_sub(1).and_then(|at| words.get(at).copied());
        let after = words.get(at + 1).copied().unwrap_or_default();
        let bare = bare(word);
        let begins = before.is_none_or(|before| before.ends_with(['.', ';', ':']));
        let ends = |word: &str| word.ends_with(['.', ';', ':']);
        let next = self::bare(after);
        let is_what = begins && *word == "What" && after.starts_with(|c: char| c.is_lowercase());
        let is_who = matches!(*word, "Who" | "who")
            && !after.is_empty()
            && (begins || before.is_some_and(|before| before.ends_with(',')));
        let is_same = (*word == "The" && begins && next == "same")
            || (*word == "the" && next == "same" && (ends(after) || at + 2 == words.len()));
        let is_amount = bare == "so"
            && AMOUNTS.contains(&next.as_str())
            && words.get(at + 2).is_none_or(|third| self::bare(third) != "as");
        let is_state = matches!(*word, "is" | "are" | "was" | "were")
            && matches!(next.as_str(), "there" | "gone")
            && (at + 2 == words.len() || after.ends_with(['.', ',', ';', ':']));
        is_what
            || is_who
            || is_same
            || is_amount
            || is_state
            || SPEECH.contains(&bare.as_str())
            || EVERYBODY.contains(&bare.as_str())
    })
}

/// A word in small letters, without what stands around it.
fn bare(word: &str) -> String {
    word.trim_matches(|letter: char| !letter.is_alphanumeric()).to_lowercase()
}
