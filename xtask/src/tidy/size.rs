//! Files and functions stay small enough to be read at one sitting.

use super::Finding;
use crate::source::{Body, Source};

#[cfg(test)]
mod tests;

/// Lines of a file, tests left out, from which it is worth a thought.
const FILE_WARN: usize = 300;
/// Lines of a file, tests left out, that it may not exceed.
const FILE_MAX: usize = 500;
/// Lines that a function may not exceed.
const FUNCTION_MAX: usize = 100;
/// Lines of tests that may stand at the end of the file they test.
const INLINE_TESTS_MAX: usize = 60;

/// A file that may be longer than the others, and why.
pub(super) struct Exception {
    path: &'static str,
    lines: usize,
    reason: &'static str,
}

/// Long files. Only uniform ones have a good reason: a table, or many blocks of one shape.
pub(super) const EXCEPTIONS: &[Exception] = &[];

/// Lengths of files, functions and inline tests.
pub(super) fn check(sources: &[Source], exceptions: &[Exception]) -> Vec<Finding> {
    let mut findings: Vec<Finding> = exceptions
        .iter()
        .filter(|exception| is_stale(exception, sources))
        .map(|exception| {
            let text = format!("needs no exception for size any more ({})", exception.reason);
            Finding::error(exception.path, 1, text)
        })
        .collect();
    for source in sources {
        findings.extend(check_file(source, exceptions));
        findings.extend(check_functions(source));
        findings.extend(check_inline_tests(source));
    }
    findings
}

fn is_stale(exception: &Exception, sources: &[Source]) -> bool {
    let source = sources.iter().find(|source| source.path == exception.path);
    source.is_none_or(|source| source.lines_without_tests() <= FILE_MAX)
}

fn check_file(source: &Source, exceptions: &[Exception]) -> Option<Finding> {
    let lines = source.lines_without_tests();
    let exception = exceptions.iter().find(|exception| exception.path == source.path);
    let max = exception.map_or(FILE_MAX, |exception| exception.lines);
    if lines > max {
        let text = format!("{lines} lines without tests (at most {max}): one idea, one file");
        return Some(Finding::error(&source.path, max + 1, text));
    }
    let is_long = lines > FILE_WARN && exception.is_none();
    is_long.then(|| Finding::warning(&source.path, 1, format!("{lines} lines without tests")))
}

fn check_functions(source: &Source) -> Vec<Finding> {
    let mut findings = Vec::new();
    for at in source.find_word("fn") {
        // A function has a name; `fn(` is a pointer type.
        let name: String = source.code[at + 2..]
            .trim_start()
            .chars()
            .take_while(|c| c.is_alphanumeric() || *c == '_')
            .collect();
        let Some(Body::Block(block)) = source.end_of_item(at) else { continue };
        let line = source.line_of(at);
        let lines = source.line_of(block.end - 1) + 1 - line;
        if !name.is_empty() && lines > FUNCTION_MAX {
            let text = format!("fn {name} has {lines} lines (at most {FUNCTION_MAX})");
            findings.push(Finding::error(&source.path, line, text));
        }
    }
    findings
}

fn check_inline_tests(source: &Source) -> Option<Finding> {
    let at = source.find_word("mod tests").next()?;
    let Some(Body::Block(block)) = source.end_of_item(at) else { return None };
    let line = source.line_of(at);
    let lines = source.line_of(block.end - 1) + 1 - line;
    (lines > INLINE_TESTS_MAX).then(|| {
        let home = source.path.trim_end_matches(".rs").trim_end_matches("/lib");
        let text = format!("{lines} lines of tests: move them to {home}/tests.rs");
        Finding::error(&source.path, line, text)
    })
}
