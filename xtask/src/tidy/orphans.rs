//! Each Rust file below a `src` folder is a module. The compiler does not read one that no `mod` names, and does not report it.

use super::{Finding, TextFile};
use std::collections::BTreeMap;

/// A `#[path = "..."]` names a file by itself.
const PATH_ATTRIBUTE: &str = "#[path";

/// Files that no module declaration reaches.
pub(super) fn check(files: &[TextFile]) -> Vec<Finding> {
    let all: BTreeMap<&str, &str> = files
        .iter()
        .filter(|file| file.path.ends_with(".rs"))
        .map(|file| (file.path.as_str(), file.text.as_str()))
        .collect();
    let by_attribute: Vec<&str> = all
        .values()
        .flat_map(|text| text.lines().filter(|line| line.trim_start().starts_with(PATH_ATTRIBUTE)))
        .collect();
    let mut findings = Vec::new();
    for path in all.keys() {
        let Some((dir, file)) = path.rsplit_once('/') else { continue };
        let is_root = |folder: &str| folder == "src" || folder.ends_with("/src");
        let is_below = is_root(dir) || dir.contains("/src/") || dir.starts_with("src/");
        let is_program = dir.ends_with("/src/bin") || dir == "src/bin";
        if !is_below || is_program || is_root(dir) && ["lib.rs", "main.rs"].contains(&file) {
            continue;
        }
        let name = file.trim_end_matches(".rs");
        let parents = match is_root(dir) {
            true => vec![format!("{dir}/lib.rs"), format!("{dir}/main.rs")],
            false => vec![format!("{dir}.rs")],
        };
        let names_it = |parent: &String| {
            all.get(parent.as_str()).is_some_and(|text| text.lines().any(|line| is_mod(line, name)))
        };
        let is_attributed = by_attribute.iter().any(|line| line.contains(&format!("{file}\"")));
        if !parents.iter().any(names_it) && !is_attributed {
            findings.push(Finding::error(path, 1, "no module declaration names this file"));
        }
    }
    findings
}

/// Whether a line declares the module of this name.
fn is_mod(line: &str, name: &str) -> bool {
    let line = line.trim_start();
    let line = match line.strip_prefix("pub") {
        Some(rest) => rest.trim_start_matches(|c| c != ' ').trim_start(),
        None => line,
    };
    let declared = line.strip_prefix("mod ").and_then(|rest| rest.trim_end().strip_suffix(';'));
    declared.is_some_and(|declared| declared.trim_start_matches("r#") == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_no_module_names_is_found() {
        let file = |(path, text): &(&str, &str)| TextFile {
            path: (*path).to_owned(),
            text: (*text).to_owned(),
        };
        let files: Vec<TextFile> = [
            (
                "crates/a/src/lib.rs",
                "mod one;\npub(crate) mod two;\n    #[path = \"x/named.rs\"]\nmod other;\n",
            ),
            ("crates/a/src/one.rs", "mod inner;\nmod not_this_one;\n"),
            ("crates/a/src/one/inner.rs", ""),
            ("crates/a/src/one/this_one.rs", ""),
            ("crates/a/src/two.rs", "// mod lost;\n"),
            ("crates/a/src/two/lost.rs", ""),
            ("crates/a/src/left.rs", ""),
            ("crates/a/src/x/named.rs", ""),
            ("crates/a/src/bin/program.rs", ""),
            ("crates/a/tests/e2e.rs", ""),
            ("crates/b/src/main.rs", "mod run;\n"),
            ("crates/b/src/run.rs", ""),
        ]
        .iter()
        .map(file)
        .collect();
        let found: Vec<String> = check(&files).iter().map(|finding| finding.path.clone()).collect();
        let lost = ["left.rs", "one/this_one.rs", "two/lost.rs"]
            .map(|name| format!("crates/a/src/{name}"));
        assert_eq!(found, lost);
    }
}
