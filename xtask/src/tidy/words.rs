//! Nothing of the machine that a file was written on may stay in it.

use super::{Finding, TextFile};

/// Top-level folders that are somebody's own: an absolute path into one works on one machine only.
/// Kept in two halves, so that this table does not find itself.
const PRIVATE: &[(&str, &str)] = &[("/ro", "ot"), ("/ho", "me"), ("/wo", "rk"), ("/Use", "rs")];

/// Files made by tools, full of names that nobody here chose.
const GENERATED: &[&str] = &["Cargo.lock"];

/// No absolute path into a private folder, nor to the tree itself.
pub(super) fn check(files: &[TextFile], root: &str) -> Vec<Finding> {
    files
        .iter()
        .filter(|file| !GENERATED.contains(&file.path.as_str()))
        .flat_map(|file| check_file(file, root))
        .collect()
}

fn check_file(file: &TextFile, root: &str) -> Vec<Finding> {
    let private: Vec<String> = PRIVATE.iter().map(|(a, b)| format!("{a}{b}")).collect();
    let mut findings = Vec::new();
    for (index, line) in file.text.lines().enumerate() {
        let folder = private.iter().find(|folder| has_folder(line, folder));
        let own = Some(root).filter(|root| root.len() > 4 && line.contains(root));
        if let Some(path) = folder.map(String::as_str).or(own) {
            let text = format!("names a machine's own path ({path})");
            findings.push(Finding::error(&file.path, index + 1, text));
        }
    }
    findings
}

/// Whether an absolute path into `folder` stands in `line`; a folder inside a longer path is not it.
fn has_folder(line: &str, folder: &str) -> bool {
    line.match_indices(folder).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        let behind = line[at + folder.len()..].chars().next();
        let starts = before.is_none_or(|c| !c.is_alphanumeric() && !"/._-~*)}".contains(c));
        let ends = behind.is_none_or(|c| !c.is_alphanumeric() && !"_-.".contains(c));
        starts && ends
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(text: &str) -> usize {
        let file = TextFile { path: "a.md".to_owned(), text: text.to_owned() };
        check(&[file], "/srv/tree").len()
    }

    #[test]
    fn machine_paths_are_seen() {
        for (a, b) in PRIVATE {
            assert_eq!(said(&format!("see {a}{b}/x")), 1);
            assert_eq!(said(&format!("see `{a}{b}`")), 1);
        }
        assert_eq!(said("cd /srv/tree/crates"), 1);
    }

    #[test]
    fn other_paths_are_fine() {
        for (a, b) in PRIVATE {
            let inside =
                ["src", ".", "~", "https://a.org"].map(|before| format!("{before}{a}{b}/x"));
            for text in inside.into_iter().chain([format!("{a}{b}shop")]) {
                assert_eq!(said(&text), 0, "{text}");
            }
        }
        assert_eq!(said("/etc/x"), 0);
    }
}
