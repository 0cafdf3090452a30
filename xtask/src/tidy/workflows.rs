//! Workflows of the forge hold no logic: each command is one that a contributor can run here.

use super::{Finding, TextFile};

const FOLDER: &str = ".github/workflows/";
/// What a step may run. The last one is the check of the minimum Rust version, in an image of that version.
const COMMANDS: &[&str] = &[".ci/run", "cargo xtask", "cargo check --workspace --locked"];
const MINIMUM_IMAGE: &str = "rust:";

/// Each step runs one of [`COMMANDS`], each action has a version, and no job may write.
pub(super) fn check(files: &[TextFile], minimum_rust: &str) -> Vec<Finding> {
    let workflows = files.iter().filter(|file| file.path.starts_with(FOLDER));
    workflows.flat_map(|file| check_workflow(file, minimum_rust)).collect()
}

fn check_workflow(file: &TextFile, minimum_rust: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut error = |line, text: String| findings.push(Finding::error(&file.path, line, text));
    let lines: Vec<&str> = file.text.lines().collect();
    let has = |wanted: &str| lines.iter().any(|line| line.trim() == wanted);
    for (index, line) in lines.iter().enumerate() {
        let Some((key, value)) = line.trim().trim_start_matches("- ").split_once(':') else {
            continue;
        };
        let value = value.trim();
        match key {
            "run" if !is_command(value) => error(
                index + 1,
                format!(
                    "runs '{value}': only {} (the logic belongs into xtask)",
                    COMMANDS.join(", ")
                ),
            ),
            "uses" if !value.contains('@') => {
                error(index + 1, format!("uses {value} without a version"));
            }
            "contents" if value != "read" => {
                error(index + 1, "a job may not write to the repository".to_owned());
            }
            _ => {}
        }
    }
    if !has("contents: read") {
        error(1, "lacks `permissions:` with `contents: read`".to_owned());
    }
    let image = format!("container: {MINIMUM_IMAGE}{minimum_rust}");
    if file.text.contains(COMMANDS[2]) && !has(&image) {
        error(1, format!("checks the minimum Rust version without `{image}`"));
    }
    findings
}

/// Whether this is one command of the list with plain arguments.
fn is_command(run: &str) -> bool {
    let is_plain = !run.contains(['|', '>', '&', ';', '$', '`']);
    let is_known = |command: &str| {
        run.strip_prefix(command).is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
    };
    is_plain && COMMANDS.iter().any(|command| is_known(command))
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "permissions:\n  contents: read\njobs:\n  test:\n    steps:\n\
                        \x20     - uses: actions/checkout@v4\n      - run: .ci/run --quick\n  msrv:\n\
                        \x20   container: rust:1.88\n    steps:\n      - run: cargo check --workspace --locked\n";

    #[test]
    fn steps_with_logic_are_seen() {
        for (from, to, seen) in [
            ("", "", None),
            ("--quick", "| tee log", Some("7: runs '.ci/run | tee log'")),
            (".ci/run", "make", Some("7: runs 'make --quick'")),
            (".ci/run --quick", "|", Some("7: runs '|'")),
            ("@v4", "", Some("6: uses actions/checkout without a version")),
            ("contents: read", "contents: write", Some("2: a job may not write")),
            ("permissions:\n  contents: read\n", "", Some("1: lacks `permissions:`")),
            ("rust:1.88", "rust:1.87", Some("1: checks the minimum Rust version without")),
        ] {
            let path = format!("{FOLDER}ci.yml");
            let text = GOOD.replace(from, to);
            let findings = check(&[TextFile { path: path.clone(), text }], "1.88");
            let first = findings.first().map(Finding::to_string);
            let begins = seen.map(|seen| format!("{path}:{seen}"));
            match (&first, begins) {
                (Some(first), Some(begins)) => assert!(first.starts_with(&begins), "{first}"),
                (first, begins) => assert_eq!(*first, begins),
            }
        }
    }
}
