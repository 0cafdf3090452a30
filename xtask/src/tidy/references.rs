//! Every path that a document or a comment names exists, and so does the heading that a link names.
//!
//! Counted are, in documents, the targets of links to files; in documents and comments, inline code that looks like a
//! file of this tree, and words that begin with `docs/`. A path is looked for from the root, from the file that
//! names it, from its crate, as a file below `src` of a crate (`net/route.rs`), and as the end of exactly one path.

use super::markdown::{self, Piece};
use super::{Finding, TextFile};
use crate::source::Source;
use std::collections::BTreeSet;

#[cfg(test)]
mod tests;

/// Folders of the root: a path that begins with one belongs to this tree.
const FOLDERS: &[&str] = &["crates/", "docs/", "bench/", "xtask/", "packaging/", "fuzz/"];
/// Ends of file names that are counted if there is a folder before them.
const ENDS: &[&str] = &[".rs", ".md", ".toml", ".sh", ".py", ".h", ".c", ".svg"];
/// Letters of patterns, placeholders and commands, which name no single file.
const NOT_IN_PATHS: &[char] = &['*', '<', '>', '{', '}', '$', ' ', '\n', '~', '|', '(', '"', '…'];

/// All names of documents and comments are those of files.
pub(super) fn check(files: &[TextFile], sources: &[Source]) -> Vec<Finding> {
    let tree = Paths::new(files);
    let mut findings = Vec::new();
    for file in files.iter().filter(|file| file.path.ends_with(".md")) {
        for target in markdown::link_targets(&file.text) {
            findings.extend(tree.check_link(file, &target));
        }
        findings.extend(tree.check_names(&file.path, &file.text));
    }
    for source in sources {
        findings.extend(tree.check_names(&source.path, &comment_text(&source.comments)));
    }
    // The target of a link is a word as well.
    let mut seen = BTreeSet::new();
    findings.retain(|finding| seen.insert(finding.to_string()));
    findings
}

/// The words of comments, each in its line; lines of code are empty.
fn comment_text(comments: &str) -> String {
    let words = |line: &str| {
        let line = line.trim_start();
        let line = line.strip_prefix("//").unwrap_or(line);
        line.trim_start_matches(['/', '!']).to_owned()
    };
    comments.lines().map(words).collect::<Vec<_>>().join("\n")
}

/// The tree's files and folders.
struct Paths<'a> {
    files: &'a [TextFile],
    all: BTreeSet<&'a str>,
}

/// How many paths a name stands for.
enum Found {
    One,
    None,
    Several(Vec<String>),
}

impl<'a> Paths<'a> {
    fn new(files: &'a [TextFile]) -> Self {
        let all = files.iter().flat_map(|file| {
            let folders = file.path.match_indices('/').map(|(at, _)| &file.path[..at]);
            folders.chain([file.path.as_str()])
        });
        Self { files, all: all.collect() }
    }

    fn check_link(&self, file: &TextFile, target: &Piece) -> Option<Finding> {
        if target.text.contains("://") || target.text.starts_with("mailto:") {
            return None;
        }
        let (path, anchor) = target.text.split_once('#').unwrap_or((&target.text, ""));
        let path = match path {
            "" => file.path.clone(),
            path => beside(&file.path, path),
        };
        if !self.all.contains(path.as_str()) {
            return Some(missing(&file.path, target, &path));
        }
        self.check_anchor(&path, anchor).map(|text| Finding::error(&file.path, target.line, text))
    }

    fn check_names(&self, path: &str, text: &str) -> Vec<Finding> {
        let code = markdown::inline_code(text).into_iter().filter(|piece| is_path(&piece.text));
        let mut findings = Vec::new();
        for name in code.chain(words_of_docs(text)) {
            let (file, anchor) = name.text.split_once('#').unwrap_or((&name.text, ""));
            match self.find(file.trim_end_matches('/'), path) {
                Found::One => findings.extend(
                    self.check_anchor(file, anchor)
                        .map(|text| Finding::error(path, name.line, text)),
                ),
                Found::None => findings.push(missing(path, &name, file)),
                Found::Several(several) => {
                    let text = format!("names {file}, which may be {}", several.join(" or "));
                    findings.push(Finding::error(path, name.line, text));
                }
            }
        }
        findings
    }

    /// What is wrong with a heading or a rule that is named behind `#`.
    fn check_anchor(&self, path: &str, anchor: &str) -> Option<String> {
        let file = self.files.iter().find(|file| file.path == path && path.ends_with(".md"))?;
        let is_there = anchor.is_empty()
            || markdown::heading_anchors(&file.text).iter().any(|name| name == anchor)
            || file.text.contains(&format!("**[{anchor}]**"));
        (!is_there).then(|| format!("names {path}#{anchor}, a heading which does not exist"))
    }

    fn find(&self, name: &str, from: &str) -> Found {
        let package = package_of(from);
        let mut places = vec![name.to_owned(), beside(from, name)];
        if let Some((first, rest)) = name.split_once('/') {
            places.push(format!("crates/{first}/src/{rest}"));
            places.push(format!("crates/{first}/{rest}"));
        }
        places.extend([format!("{package}/src/{name}"), format!("{package}/{name}")]);
        if places.iter().any(|place| self.all.contains(place.as_str())) {
            return Found::One;
        }
        let end = format!("/{name}");
        let ends: Vec<&str> = self
            .all
            .iter()
            .copied()
            .filter(|path| path.ends_with(&end) || path.replace("/src/", "/").ends_with(&end))
            .collect();
        let own = format!("{package}/");
        let own_ends = ends.iter().filter(|path| path.starts_with(&own)).count();
        match ends[..] {
            [] => Found::None,
            [_] => Found::One,
            // Without a folder it is the name of a kind of file, such as `lib.rs`.
            _ if !name.contains('/') || own_ends == 1 => Found::One,
            _ => Found::Several(ends.iter().map(|path| (*path).to_owned()).collect()),
        }
    }
}

fn missing(from: &str, name: &Piece, path: &str) -> Finding {
    Finding::error(from, name.line, format!("names {path}, which does not exist"))
}

/// The folder of the package that a file belongs to: `crates/net`, `xtask`.
fn package_of(path: &str) -> &str {
    let depth = if path.starts_with("crates/") || path.starts_with("bench/") { 2 } else { 1 };
    path.match_indices('/').nth(depth - 1).map_or("", |(at, _)| &path[..at])
}

/// The path of `name` as a link in the file `from`.
fn beside(from: &str, name: &str) -> String {
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    for part in name.split('/') {
        match part {
            ".." => drop(parts.pop()),
            "." | "" => {}
            part => parts.push(part),
        }
    }
    parts.join("/")
}

/// Whether inline code looks like a path of this tree.
fn is_path(code: &str) -> bool {
    let file = code.split('#').next().unwrap_or_default();
    let is_end = ENDS.iter().any(|end| file.ends_with(end));
    let is_single = file.ends_with(".rs") && file.len() > 3;
    let is_example = file.starts_with("foo/")
        || ["foo.rs", "mod.rs"].contains(&file)
        || file.starts_with(['/', '-', '.']);
    let is_in_tree = FOLDERS.iter().any(|folder| file.starts_with(folder));
    !code.contains(NOT_IN_PATHS)
        && !code.contains("://")
        && !is_example
        && (is_in_tree || is_single || (file.contains('/') && is_end))
}

/// Documents that are named outside of inline code and links.
fn words_of_docs(text: &str) -> impl Iterator<Item = Piece> {
    text.lines().enumerate().flat_map(|(index, line)| {
        let words = line.split(|letter: char| letter.is_whitespace() || "(),;:\"".contains(letter));
        let names = words.filter(|word| word.starts_with("docs/") && !word.contains(NOT_IN_PATHS));
        names
            .map(move |name| Piece { line: index + 1, text: name.trim_end_matches('.').to_owned() })
    })
}
