//! What is too long is seen.

use super::*;
use crate::tidy::Weight;

fn found(source: &Source, exceptions: &[Exception]) -> Vec<(Weight, String)> {
    let findings = check(std::slice::from_ref(source), exceptions);
    findings.into_iter().map(|finding| (finding.weight, finding.text)).collect()
}

fn file(lines: usize) -> Source {
    Source::new("crates/a/src/b.rs", &"const A: u8 = 0;\n".repeat(lines))
}

fn function(lines: usize) -> Source {
    let body = "    a();\n".repeat(lines - 2);
    Source::new("crates/a/src/b.rs", &format!("fn long() {{\n{body}}}\n"))
}

fn inline_tests(lines: usize) -> Source {
    let body = "    const A: u8 = 0;\n".repeat(lines - 2);
    Source::new("crates/a/src/b.rs", &format!("#[cfg(test)]\nmod tests {{\n{body}}}\n"))
}

#[test]
fn files_warn_then_fail() {
    assert!(found(&file(FILE_WARN), &[]).is_empty());
    assert_eq!(found(&file(FILE_WARN + 1), &[])[0].0, Weight::Warning);
    assert_eq!(found(&file(FILE_MAX), &[])[0].0, Weight::Warning);
    assert_eq!(found(&file(FILE_MAX + 1), &[])[0].0, Weight::Error);
}

#[test]
fn exceptions_are_bounded_and_do_not_outlive_their_need() {
    let exception = [Exception { path: "crates/a/src/b.rs", lines: 600, reason: "a table" }];
    assert!(found(&file(600), &exception).is_empty());
    assert_eq!(found(&file(601), &exception)[0].0, Weight::Error);
    assert_eq!(found(&file(100), &exception)[0].0, Weight::Error);
}

#[test]
fn functions_have_a_limit() {
    assert!(found(&function(FUNCTION_MAX), &[]).is_empty());
    let long = found(&function(FUNCTION_MAX + 1), &[]);
    assert_eq!(long, [(Weight::Error, "fn long has 101 lines (at most 100)".to_owned())]);
}

#[test]
fn long_tests_move_out() {
    assert!(found(&inline_tests(INLINE_TESTS_MAX), &[]).is_empty());
    let long = found(&inline_tests(INLINE_TESTS_MAX + 1), &[]);
    assert_eq!(long[0].1, "61 lines of tests: move them to crates/a/src/b/tests.rs");
}

#[test]
fn test_files_may_be_long() {
    let source = Source::new("crates/a/src/tests.rs", &"const A: u8 = 0;\n".repeat(900));
    assert!(found(&source, &[]).is_empty());
}
