//! README and the pages for users stay short enough to be read: lines of a page, columns of a line.
//!
//! Pages that are longer today stand in `pages.txt` with their length, which may only fall.

use super::markdown::{LineKind, lines};
use super::{Finding, TextFile};
use std::collections::BTreeMap;
use std::fmt::Write as _;

#[cfg(test)]
mod tests;

/// The list of longer pages, as `cargo xtask tidy --lower` writes it.
pub(super) const LIST: &str = "xtask/src/tidy/pages.txt";
const README: &str = "README.md";
/// Pages below this folder are for contributors.
const INTERNALS: &str = "docs/internals/";
const README_LINES_MAX: usize = 130;
const PAGE_LINES_MAX: usize = 200;
const COLUMNS_MAX: usize = 120;

/// Lines of a page, and how many of them are too wide.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
struct Size {
    lines: usize,
    wide: usize,
}

/// No page is longer or wider than it may be, or than it was.
pub(super) fn check(list: &TextFile, files: &[TextFile]) -> Vec<Finding> {
    let allowed = read(&list.text);
    let mut findings = Vec::new();
    for page in pages(files) {
        let size = size_of(page);
        let max = Size { lines: lines_max(page), wide: 0 };
        let before = allowed.get(&page.path).copied().unwrap_or_default();
        for (number, max, before, what) in [
            (size.lines, max.lines, before.lines, "lines"),
            (size.wide, max.wide, before.wide, "lines of more than 120 columns"),
        ] {
            let allowed = max.max(before);
            if number > allowed {
                let text = format!("{number} {what} (at most {allowed})");
                findings.push(Finding::error(&page.path, 1, text));
            } else if number > max {
                let text = format!("{number} {what} (at most {max} in the end)");
                findings.push(Finding::warning(&page.path, 1, text));
            }
        }
    }
    let now = lowered(&list.text, files);
    if now != list.text {
        let text = "a page is shorter now, or gone: cargo xtask tidy --lower";
        findings.push(Finding::warning(LIST, 1, text));
    }
    findings
}

/// The list as it should be: lower where a page is shorter, without those that are short enough, never higher.
pub(super) fn lowered(list: &str, files: &[TextFile]) -> String {
    let allowed = read(list);
    let mut text = String::from("# page, lines, lines of more than 120 columns\n");
    for page in pages(files) {
        let (Some(before), size) = (allowed.get(&page.path), size_of(page)) else { continue };
        let (lines, wide) = (size.lines.min(before.lines), size.wide.min(before.wide));
        if lines > lines_max(page) || wide > 0 {
            let _ = writeln!(text, "{} {lines} {wide}", page.path);
        }
    }
    text
}

fn read(list: &str) -> BTreeMap<String, Size> {
    let row = |line: &str| {
        let mut words = line.split_whitespace();
        let path = words.next()?.to_owned();
        let mut number = || words.next()?.parse().ok();
        Some((path, Size { lines: number()?, wide: number()? }))
    };
    list.lines().filter(|line| !line.starts_with('#')).filter_map(row).collect()
}

fn pages(files: &[TextFile]) -> impl Iterator<Item = &TextFile> {
    let is_page = |path: &str| {
        path.starts_with("docs/") && !path.starts_with(INTERNALS) && path.ends_with(".md")
    };
    files.iter().filter(move |file| file.path == README || is_page(&file.path))
}

fn lines_max(page: &TextFile) -> usize {
    if page.path == README { README_LINES_MAX } else { PAGE_LINES_MAX }
}

fn size_of(page: &TextFile) -> Size {
    let lines = lines(&page.text);
    // A row of a table is one line, whatever its length.
    let is_row = |text: &str| text.trim_start().starts_with('|');
    let is_wide = |text: &str| text.chars().count() > COLUMNS_MAX;
    let wide = lines
        .iter()
        .filter(|line| is_wide(line.text) && !(line.kind == LineKind::Text && is_row(line.text)));
    Size { wide: wide.count(), lines: lines.len() }
}
