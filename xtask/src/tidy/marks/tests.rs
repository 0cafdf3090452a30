//! Marked lines are recognised, and their number may only fall.

use super::*;

#[test]
fn each_form_is_marked() {
    for line in [
        "What the kernel has not written.",
        "A list. What is in it counts.",
        "The server tells its name.",
        "As was said, it ends.",
        "It ends if nobody reads.",
        "Whoever has the lock.",
        "Who asked may have gone.",
        "A client, who waits, ends.",
        "The same for a server.",
        "A server does the same.",
        "At most so many.",
        "Waits so long, then ends",
        "If the file is there, it is read.",
        "The name is gone",
    ] {
        assert!(is_marked(line), "{line}");
    }
}

#[test]
fn plain_words_are_not_marked() {
    for line in [
        "Whether the file exists.",
        "The client that asks, and what it asks for.",
        "The value that x returns.",
        "The same-named file of the same crate as this one is read",
        "as many as there are, so many as fit",
        "There is a file whose name is there twice",
        "A host that is gone from the list",
        "Essays of a teller",
    ] {
        let marked = is_marked(line);
        assert!(!marked, "{line}");
    }
}

#[test]
fn comments_with_words_count() {
    let text = "//! Head.\n//!\n//! ```\n//! nobody\n//! ```\nfn f() {} // nobody\n    // spec: ack-1\n\
                /// `nobody` and nobody.\n// SAFETY: nobody.\nconst A: &str = \"// no\";\n";
    let source = Source::new("crates/a/src/lib.rs", text);
    let lines: Vec<_> = comment_lines(&source).collect();
    assert_eq!(lines, [(1, "Head.".to_owned()), (8, "x and nobody.".to_owned())]);
    assert_eq!(list_of("a", &[source]), ["crates/a/src/lib.rs:8: x and nobody."]);
}

fn source(plain: usize, marked: usize) -> [Source; 1] {
    let text = "// A line.\n".repeat(plain) + &"// Nobody.\n".repeat(marked);
    [Source::new("crates/a/src/lib.rs", &text)]
}

fn found(list: &str, sources: &[Source]) -> Vec<String> {
    let list = TextFile { path: LIST.to_owned(), text: list.to_owned() };
    check(&list, sources).into_iter().map(|finding| finding.text).collect()
}

#[test]
fn the_number_may_only_fall() {
    let list = "# head\na 10 100\n";
    assert_eq!(found(list, &source(90, 10)), [""; 0]);
    let [more] = &found(list, &source(189, 11))[..] else { panic!("not seen") };
    assert!(more.starts_with("11 marked comment lines, 10 allowed"), "{more}");
    let [share] = &found(list, &source(80, 10))[..] else { panic!("not seen") };
    assert!(share.starts_with("111 thousandths"), "{share}");
    let fewer = "fewer marked comment lines: cargo xtask tidy --lower";
    assert_eq!(found(list, &source(91, 9)), [fewer]);
    assert_eq!(
        found("a 10 100\nb 1 1\n", &source(90, 10)),
        ["no crate b: cargo xtask tidy --lower"]
    );
}

#[test]
fn a_new_crate_begins_low() {
    assert_eq!(found("", &source(97, 3)), [""; 0]);
    assert_eq!(found("", &source(90, 10)).len(), 1);
}

#[test]
fn a_list_is_lowered_and_never_raised() {
    let head = "# crate, marked comment lines, thousandths of all its comment lines\n";
    assert_eq!(lowered("a 10 100\nb 1 1\n", &source(95, 5)), format!("{head}a 5 50\n"));
    assert_eq!(lowered("a 10 100\n", &source(80, 20)), format!("{head}a 10 100\n"));
    assert_eq!(lowered("", &source(80, 20)), format!("{head}a 3 30\n"));
}
