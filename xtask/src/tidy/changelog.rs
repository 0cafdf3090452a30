//! CHANGELOG.md begins with what is not released, and its newest version is the workspace's.

use super::{Finding, TextFile};

pub(super) const DOCUMENT: &str = "CHANGELOG.md";
const UNRELEASED: &str = "[Unreleased]";
/// The parts of a version, as Keep a Changelog names them.
const PARTS: &[&str] = &["Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"];

/// The order and the names of sections, and the newest version.
pub(super) fn check(document: &TextFile, workspace_version: &str) -> Vec<Finding> {
    let lines = || document.text.lines().enumerate().map(|(index, line)| (index + 1, line));
    let error = |line, text: String| Finding::error(DOCUMENT, line, text);
    let mut findings = Vec::new();
    let mut sections = lines().filter_map(|(line, text)| Some((line, text.strip_prefix("## ")?)));
    match sections.next() {
        Some((_, UNRELEASED)) => {}
        first => {
            let line = first.map_or(1, |(line, _)| line);
            findings.push(error(line, format!("the first section is not {UNRELEASED}")));
        }
    }
    let newest = sections.next();
    let version = newest.and_then(|(_, title)| title.strip_prefix('[')?.split(']').next());
    if version != Some(workspace_version) {
        let line = newest.map_or(1, |(line, _)| line);
        let text = format!("the newest version is not {workspace_version}, that of Cargo.toml");
        findings.push(error(line, text));
    }
    let parts = lines().filter_map(|(line, text)| Some((line, text.strip_prefix("### ")?)));
    findings.extend(
        parts
            .filter(|(_, part)| !PARTS.contains(part))
            .map(|(line, part)| error(line, format!("{part} is none of {}", PARTS.join(", ")))),
    );
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_version_and_parts_are_checked() {
        let good = "# Changes\n\n## [Unreleased]\n\n### Added\n\n## [0.1.0] - 2026-11\n### Fixed\n";
        for (text, seen) in [
            (good.to_owned(), None),
            (good.replace("[Unreleased]", "[0.2.0]"), Some("3: the first section is not")),
            (good.replace("0.1.0", "0.0.9"), Some("7: the newest version is not 0.1.0")),
            (good.replace("Fixed", "Mended"), Some("8: Mended is none of Added")),
            (String::new(), Some("1: the first section")),
        ] {
            let file = TextFile { path: DOCUMENT.to_owned(), text };
            let findings = check(&file, "0.1.0");
            let first = findings.first().map(Finding::to_string).unwrap_or_default();
            let seen = seen.map(|seen| format!("{DOCUMENT}:{seen}")).unwrap_or_default();
            assert_eq!(findings.is_empty(), seen.is_empty(), "{first}");
            assert!(first.starts_with(&seen), "{first}");
        }
    }
}
