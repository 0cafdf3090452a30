//! Comments, literals and test parts are told apart.

use super::*;

fn code(text: &str) -> String {
    Source::new("crates/a/src/b.rs", text).code
}

#[test]
fn comments_leave_the_code() {
    assert_eq!(code("a // b\nc"), "a     \nc");
    assert_eq!(code("a /* b /* c */ d */ e"), "a                   e");
    let source = Source::new("b.rs", "x // spec: ack-1\n\"// no\"");
    assert_eq!(source.comments.trim(), "// spec: ack-1");
}

#[test]
fn literals_are_emptied() {
    assert_eq!(code(r#"f("a { \" b")"#), "f(\"        \")");
    assert_eq!(code("f(r#\"{\"#) }"), "f(\"    \") }");
    assert_eq!(code(r"f('{', '\'', 'é')"), "f(\" \", \"  \", \"  \")");
}

#[test]
fn lifetimes_are_code() {
    assert_eq!(code("fn f<'a>(x: &'a str) {}"), "fn f<'a>(x: &'a str) {}");
}

#[test]
fn test_items_are_known() {
    let source =
        Source::new("crates/a/src/b.rs", "fn a() {}\n#[cfg(test)]\nmod t {\n}\nfn b() {}\n");
    assert_eq!(source.lines_without_tests(), 2);
    assert!(Source::new("crates/a/src/b/tests.rs", "fn a() {}").is_test(0));
    assert!(Source::new("crates/a/tests/all.rs", "fn a() {}").is_test(0));
    assert!(!Source::new("crates/a/src/b.rs", "fn a() {}").is_test(0));
}

#[test]
fn words_are_whole() {
    let source = Source::new("b.rs", "std::io; core_std::io; stdx; Instant::now()");
    assert_eq!(source.find_word("std::").count(), 1);
    assert_eq!(source.find_word("std").count(), 1);
    assert_eq!(source.find_word("Instant::now").count(), 1);
}

#[test]
fn items_end_at_their_brace() {
    let source = Source::new("b.rs", "fn a(x: [u8; 3]) { { } } fn b();");
    assert_eq!(source.end_of_item(0), Some(Body::Block(17..24)));
    assert_eq!(source.end_of_item(25), Some(Body::None(32)));
}
