//! The tree itself is tidy.

use super::*;

#[test]
fn the_tree_is_tidy() {
    let findings = check(&Tree::read(&workspace()).unwrap());
    let errors: Vec<String> = findings
        .iter()
        .filter(|finding| finding.weight == Weight::Error)
        .map(Finding::to_string)
        .collect();
    assert!(errors.is_empty(), "\n{}", errors.join("\n"));
}

#[test]
fn findings_name_their_place() {
    let finding = Finding::error("a/b.rs", 7, "is odd");
    assert_eq!(finding.to_string(), "a/b.rs:7: is odd");
}
