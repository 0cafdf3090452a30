//! Tests of the order in which names are worked on.

use super::*;

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
