//! Tests of the order in which names are worked on.

use super::*;
use crate::side::testing::TestSide;
use hikyaku_store::{ErrorKind, Operation};

#[test]
fn names_are_sorted_by_the_number_of_their_directories() {
    let all = ["a/b/c", "", "a", "b", "a/b"].map(str::as_bytes);
    let levels: Vec<Vec<&[u8]>> = levels(&all, |path| path)
        .into_iter()
        .map(|level| level.into_iter().copied().collect())
        .collect();
    let wanted: [&[&[u8]]; 4] = [&[b""], &[b"a", b"b"], &[b"a/b"], &[b"a/b/c"]];
    assert_eq!(levels, wanted);
}

#[test]
fn what_fails_at_the_root_of_the_target_has_a_name() {
    let scope = hikyaku_console::Interrupt::default().scope();
    let target = TestSide::new(&[]).failing((Operation::Make, 1), &["", "a"], ErrorKind::Denied);
    let mut applying = Applying { target: &target, scope: &scope, failures: Vec::new() };
    let dirs = [&b""[..], b"a"];
    applying.each(&dirs, |dir| dir, |target, dir| target.make_dir(dir, 0o755)).unwrap();
    let names: Vec<_> = applying.failures.iter().map(|line| line.split(": ").next()).collect();
    assert_eq!(names, [Some("."), Some("a")]);
}
