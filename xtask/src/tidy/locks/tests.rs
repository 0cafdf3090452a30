//! A lock file that is behind is noticed.

use super::*;

const LOCKED: &str = r#"
[[package]]
name = "hikyaku-a"
version = "0.1.0"
dependencies = [
 "hikyaku-b",
 "serde 1.0.0",
]

[[package]]
name = "hikyaku-b"
version = "0.1.0"
"#;

fn said(dependencies: &[(&str, Option<&str>)]) -> Vec<String> {
    let files = [TextFile { path: LOCK.to_owned(), text: LOCKED.to_owned() }];
    let packages = [
        Package::for_test("hikyaku-a", dependencies),
        Package::for_test("hikyaku-other", &[("libc", None)]),
    ];
    check(&packages, &files).into_iter().map(|finding| finding.text).collect()
}

#[test]
fn all_are_known() {
    assert!(said(&[("hikyaku-b", None), ("serde", None), ("proptest", Some("dev"))]).is_empty());
}

#[test]
fn a_new_dependency_is_missing() {
    let findings = said(&[("hikyaku-b", None), ("libc", None)]);
    assert_eq!(findings.len(), 1);
    assert!(findings[0].contains("hikyaku-a uses libc"), "{findings:?}");
}
