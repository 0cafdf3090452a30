//! Messages name places. "There" and "here" mean another host, another file or another directory to each reader.

use super::Finding;
use crate::source::Source;

/// Words for a place that depends on the reader.
const PLACES: [&str; 2] = ["there", "here"];

/// "There is no such file" names no place.
const VERBS: [&str; 4] = [" is", " are", " was", " were"];

/// Literals with such a word in which it is right: the file, and a part of the literal.
const EXCEPTIONS: &[(&str, &str)] = &[
    ("crates/console/src/kept.rs", "the same command continues from here"),
    ("crates/store/src/testing/", "there"),
    ("crates/store/src/testing/", "here"),
];

/// No literal of one line in a crate has one of the words. Those of several lines are help, in which a place stands beside
/// the word.
pub(super) fn check(sources: &[Source]) -> Vec<Finding> {
    sources.iter().filter(|source| source.crate_name().is_some()).flat_map(check_source).collect()
}

fn check_source(source: &Source) -> Vec<Finding> {
    let literals = source.literals.iter().filter(|range| !source.is_test(range.start));
    let marked = literals.filter_map(|range| {
        let literal = joined(&source.text[range.clone()]);
        let word = PLACES.into_iter().find(|word| names(&literal, word))?;
        let is_right =
            |(path, part): &(&str, &str)| source.path.starts_with(path) && literal.contains(part);
        (!literal.contains('\n') && !EXCEPTIONS.iter().any(is_right)).then(|| {
            let text = format!("a message with '{word}': name the place");
            Finding::error(&source.path, source.line_of(range.start), text)
        })
    });
    marked.collect()
}

/// The literal with its continued lines joined.
fn joined(literal: &str) -> String {
    let mut parts = literal.split("\\\n");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |whole, part| whole + part.trim_start())
}

/// Whether `text` has `word` as a place.
fn names(text: &str, word: &str) -> bool {
    let is_letter = |c: char| c.is_alphanumeric() || "_-'{}".contains(c);
    text.match_indices(word).any(|(at, _)| {
        let (before, after) = (&text[..at], &text[at + word.len()..]);
        let is_whole = !before.ends_with(is_letter) && !after.starts_with(is_letter);
        let verb = VERBS.iter().find_map(|verb| after.strip_prefix(verb));
        is_whole && verb.is_none_or(|rest| rest.starts_with(is_letter))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<usize> {
        let source = Source::new("crates/lab/src/a.rs", text);
        check(&[source]).into_iter().map(|finding| finding.line).collect()
    }

    #[test]
    fn a_place_without_a_name_is_found() {
        for text in [
            "#[error(\"{path} is not there\")]",
            "let a = \"no locks here\";",
            "let a = \"here, and not \\\n         in the next line\";",
            "let a = \"what is there differs\";",
        ] {
            assert_eq!(lines(&format!("\n{text}")), [2], "{text}");
        }
    }

    #[test]
    fn other_words_are_fine() {
        for text in [
            "let a = \"there is no lab\";",
            "let a = \"there are: {}\";",
            "let a = \"where they adhere\";",
            "// not there\nlet there = here;",
            "const HELP: &str = \"Examples:\n  a port here\";",
            "#[cfg(test)]\nmod tests {\n    const A: &str = \"not there\";\n}",
            "format!(\"{there}\")",
        ] {
            assert!(lines(text).is_empty(), "{text}");
        }
    }
}
