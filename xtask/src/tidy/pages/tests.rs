//! Long and wide pages are seen, unless the list allows them; the list may only fall.

use super::*;

fn page(path: &str, lines: usize, wide: usize) -> TextFile {
    let text = "a\n".repeat(lines - wide) + &format!("{}\n", "ä".repeat(121)).repeat(wide);
    TextFile { path: path.to_owned(), text }
}

/// What is found with `list`: errors and warnings of pages, and whether the list is to be lowered.
fn found(list: &str, page: TextFile) -> (Vec<String>, Vec<String>, bool) {
    let list = TextFile { path: LIST.to_owned(), text: format!("{HEAD}{list}") };
    let findings = check(&list, &[page]);
    let of = |weight| {
        let wanted = findings.iter().filter(|one| one.weight == weight && one.path != LIST);
        wanted.map(|one| one.text.clone()).collect()
    };
    let is_stale = findings.iter().any(|one| one.path == LIST);
    (of(super::super::Weight::Error), of(super::super::Weight::Warning), is_stale)
}

const HEAD: &str = "# page, lines, lines of more than 120 columns\n";

#[test]
fn long_pages_are_seen() {
    let none = || (vec![], vec![], false);
    let error = |text: &str| (vec![text.to_owned()], vec![], false);
    assert_eq!(found("", page("README.md", 130, 0)), none());
    assert_eq!(found("", page("README.md", 131, 0)), error("131 lines (at most 130)"));
    assert_eq!(found("", page("docs/a.md", 200, 0)), none());
    assert_eq!(found("", page("docs/a.md", 201, 0)), error("201 lines (at most 200)"));
    let wide = "1 lines of more than 120 columns (at most 0)";
    assert_eq!(found("", page("docs/a.md", 9, 1)), error(wide));
    for path in ["docs/internals/a.md", "ARCHITECTURE.md", "docs/a.txt"] {
        assert_eq!(found("", page(path, 999, 9)), none(), "{path}");
    }
}

#[test]
fn rows_of_tables_may_be_wide() {
    let row = format!("| {} |\n", "a".repeat(200));
    let table = TextFile { path: "docs/a.md".to_owned(), text: row.clone() };
    assert_eq!(size_of(&table), Size { lines: 1, wide: 0 });
    let code = TextFile { path: "docs/a.md".to_owned(), text: format!("```\n{row}```\n") };
    assert_eq!(size_of(&code), Size { lines: 3, wide: 1 });
}

#[test]
fn a_length_in_the_list_may_only_fall() {
    let (errors, warnings, is_stale) = found("docs/a.md 300 2\n", page("docs/a.md", 300, 2));
    assert_eq!((errors.len(), warnings.len(), is_stale), (0, 2, false));
    let (errors, ..) = found("docs/a.md 300 2\n", page("docs/a.md", 301, 3));
    assert_eq!(errors.len(), 2);
    let (errors, _, is_stale) = found("docs/a.md 300 2\n", page("docs/a.md", 299, 2));
    assert_eq!((errors.len(), is_stale), (0, true));
    let list = format!("{HEAD}docs/a.md 300 2\ndocs/b.md 300 2\ndocs/c.md 300 2\n");
    let files = [page("docs/a.md", 250, 3), page("docs/b.md", 200, 0), page("docs/d.md", 300, 0)];
    assert_eq!(lowered(&list, &files), format!("{HEAD}docs/a.md 250 2\n"));
}
