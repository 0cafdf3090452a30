//! Loose ends on any side are seen.

use super::*;

fn said_of(document: &str, files: &[(&str, &str)], exceptions: &[Exception]) -> Vec<String> {
    let document = TextFile { path: DOCUMENTS[0].to_owned(), text: document.to_owned() };
    let other = TextFile { path: DOCUMENTS[1].to_owned(), text: String::new() };
    let sources: Vec<_> = files.iter().map(|(path, code)| Source::new(path, code)).collect();
    let findings = check(&[&document, &other], &sources, exceptions);
    findings.into_iter().map(|finding| finding.text).collect()
}

/// What is said where the tests cite as much as the code.
fn said(document: &str, code: &str, exceptions: &[Exception]) -> Vec<String> {
    let files = [("crates/proto/src/a.rs", code), ("crates/proto/src/a/tests.rs", code)];
    said_of(document, &files, exceptions)
}

const NOWHERE: [&str; 2] = ["[ack-1] is cited by no code", "[ack-1] is cited by no test"];

#[test]
fn all_sides_meet() {
    let document = "**[ack-1]** A receiver answers. **[ack-2]** Soon.\n";
    assert!(said(document, "fn f() {} // spec: ack-1, ack-2", &[]).is_empty());
}

#[test]
fn an_anchor_without_code_is_seen() {
    assert_eq!(said("**[ack-1]** Answer.", "fn f() {}", &[]), NOWHERE);
}

#[test]
fn an_anchor_without_a_test_is_seen() {
    let cites = "// spec: ack-1\nfn f() {}";
    let own = "fn f() {} // spec: ack-1\n#[cfg(test)]\nmod tests { // spec: ack-1\n}\n";
    for (files, missing) in [
        (&[("crates/proto/src/a.rs", cites)][..], &NOWHERE[1..]),
        (&[("crates/proto/src/a/tests.rs", cites)], &NOWHERE[..1]),
        (&[("crates/sim/tests/a.rs", cites)], &NOWHERE[..1]),
        (&[("crates/sim/src/a.rs", cites)], &NOWHERE[..]),
        (&[("crates/proto/benches/a.rs", cites)], &NOWHERE[..]),
        (&[("bench/liars/src/lies/a.rs", cites)], &NOWHERE[..1]),
        (&[("bench/harness/src/a.rs", cites)], &NOWHERE[..]),
        (&[("crates/proto/src/a.rs", own)], &[]),
        (&[("crates/proto/src/a.rs", cites), ("crates/sim/tests/a.rs", cites)], &[]),
    ] {
        assert_eq!(said_of("**[ack-1]** Answer.", files, &[]), missing, "{files:?}");
    }
}

#[test]
fn code_without_an_anchor_is_seen() {
    let said = said_of("Nothing yet.", &[("crates/proto/src/a.rs", "// spec: ack-9\n")], &[]);
    assert_eq!(said, ["cites [ack-9], which no protocol document has"]);
}

#[test]
fn an_anchor_stands_once() {
    let said = said("**[ack-1]** A.\n**[ack-1]** B.", "// spec: ack-1", &[]);
    assert_eq!(said, ["[ack-1] stands already in line 1 of docs/internals/protocol.md"]);
}

#[test]
fn exceptions_have_to_be_needed() {
    let exception = || [Exception { anchor: "id-1", reason: "a promise about the future" }];
    assert!(said("**[id-1]** Later.", "", &exception()).is_empty());
    assert_eq!(said("**[id-1]** Later.", "// spec: id-1", &exception()).len(), 1);
    assert_eq!(said("No anchor.", "", &exception()).len(), 1);
}

#[test]
fn a_string_is_no_citation() {
    assert_eq!(said("**[ack-1]** A.", "let a = \"// spec: ack-1\";", &[]), NOWHERE);
}

#[test]
fn a_link_is_no_anchor() {
    assert!(said("**[see there](x)** and **[a-b]**", "", &[]).is_empty());
}

#[test]
fn what_obliges_stands_behind_an_anchor() {
    let code = "// spec: ack-1";
    let loose = ["MUST stands behind no anchor"];
    for (document, wanted) in [
        ("**[ack-1]** An end MUST answer,\nand MUST do so soon.", &[][..]),
        ("An end may wait. **[ack-1]** It MUST answer.", &[]),
        ("An end MUST answer. **[ack-1]** Soon.", &loose),
        ("**[ack-1]** An end answers.\n\nIt MUST do so soon.", &loose),
        ("**[ack-1]** Soon. MUSTARD is no obligation.", &[]),
    ] {
        assert_eq!(said(document, code, &[]), wanted, "{document}");
    }
}

#[test]
fn a_document_that_is_gone_is_seen() {
    let findings = check(&[], &[], &[]);
    assert_eq!(findings.len(), DOCUMENTS.len());
}
