//! `unsafe` lives in the crates that talk to the kernel or to C; everywhere else the compiler refuses it.

use super::Finding;
use crate::source::Source;

/// Crates that may contain `unsafe`: each use must say why it is sound.
const MAY_BE_UNSAFE: &[&str] = &["udp", "tun", "tcp", "capi"];

/// How far above an `unsafe` its reason may begin, in lines.
const REACH: usize = 8;

/// `forbid(unsafe_code)` in all other crates, and a reason at each use.
pub(super) fn check(sources: &[Source]) -> Vec<Finding> {
    let roots = sources.iter().filter(|source| source.is_crate_root()).filter_map(|source| {
        let exempt = source.crate_name().is_some_and(|name| MAY_BE_UNSAFE.contains(&name));
        let forbids = source.code.contains("#![forbid(unsafe_code)]");
        (!exempt && !forbids)
            .then(|| Finding::error(&source.path, 1, "lacks #![forbid(unsafe_code)]"))
    });
    roots.chain(sources.iter().flat_map(unexplained)).collect()
}

fn unexplained(source: &Source) -> Vec<Finding> {
    let uses = source.find_word("unsafe").filter(|&at| {
        let next = source.code[at + "unsafe".len()..].trim_start();
        next.starts_with('{') || next.starts_with("impl")
    });
    let comments: Vec<&str> = source.comments.lines().collect();
    uses.map(|at| source.line_of(at))
        .filter(|&line| {
            let above = &comments[line.saturating_sub(REACH + 1)..line];
            !above.iter().any(|comment| comment.contains("SAFETY:"))
        })
        .map(|line| Finding::error(&source.path, line, "unsafe without a `// SAFETY:` reason"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(path: &str, text: &str) -> Vec<String> {
        check(&[Source::new(path, text)]).into_iter().map(|finding| finding.text).collect()
    }

    #[test]
    fn safe_crates_say_so() {
        assert_eq!(said("crates/net/src/lib.rs", "mod a;"), ["lacks #![forbid(unsafe_code)]"]);
        assert!(said("crates/net/src/lib.rs", "#![forbid(unsafe_code)]").is_empty());
        assert!(said("crates/udp/src/lib.rs", "mod a;").is_empty());
    }

    #[test]
    fn a_use_has_a_reason() {
        let bare = "fn f() {\n    unsafe { g() }\n}";
        assert_eq!(said("crates/udp/src/a.rs", bare), ["unsafe without a `// SAFETY:` reason"]);
        let explained = "fn f() {\n    // SAFETY: g has no rules.\n    unsafe { g() }\n}";
        assert!(said("crates/udp/src/a.rs", explained).is_empty());
    }
}
