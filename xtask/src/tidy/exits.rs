//! Exit codes are made in one file, so that a script that depends on one finds its meaning in one table.

use super::Finding;
use crate::source::Source;

/// The file that makes them.
const PLACE: &str = "crates/console/src/exit_code.rs";

/// Functions and types that turn a number into an exit code.
const MAKERS: &[&str] = &["process::exit", "low_level::exit", "ExitCode::from", "exit_group"];

/// Names of the module `std::process` that do so where they are imported from it.
const IMPORTED: &[&str] = &["exit", "ExitCode"];

/// No other source of a crate has one of them.
pub(super) fn check(sources: &[Source]) -> Vec<Finding> {
    sources
        .iter()
        .filter(|source| source.crate_name().is_some() && source.path != PLACE)
        .flat_map(check_source)
        .collect()
}

fn check_source(source: &Source) -> Vec<Finding> {
    let made = MAKERS.iter().flat_map(|word| source.find_word(word));
    let imported = source.find_word("process::").filter(|&at| {
        let rest = &source.code[at..];
        let names = rest.split(';').next().unwrap_or_default().split(['{', '}', ',', ':']);
        rest.starts_with("process::{") && names.map(str::trim).any(|name| IMPORTED.contains(&name))
    });
    let named = source.find_word("process::ExitCode");
    made.chain(imported)
        .chain(named)
        .filter(|&at| !source.is_test(at))
        .map(|at| {
            let text = "makes an exit code: return a hikyaku_console::ExitCode";
            Finding::error(&source.path, source.line_of(at), text)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(path: &str, text: &str) -> Vec<usize> {
        check(&[Source::new(path, text)]).into_iter().map(|finding| finding.line).collect()
    }

    #[test]
    fn a_number_that_becomes_an_exit_code_is_found() {
        for text in [
            "std::process::exit(3);",
            "use std::process::{Command, exit};",
            "use std::process::{\n    Command, ExitCode,\n};",
            "fn main() -> std::process::ExitCode {}",
            "let code = ExitCode::from(3);",
            "signal_hook::low_level::exit(3)",
        ] {
            assert_eq!(lines("crates/lab/src/a.rs", text), [1], "{text}");
            assert!(lines(PLACE, text).is_empty());
            assert!(lines("crates/lab/tests/a.rs", text).is_empty());
        }
    }

    #[test]
    fn other_names_of_processes_are_fine() {
        for text in [
            "use std::process::{Command, ExitStatus, Stdio};",
            "use hikyaku_console::{Exit, ExitCode};",
            "let code = Exit::from(ExitCode::Failed);",
            "// process::exit\nfn exit() {}",
        ] {
            assert!(lines("crates/lab/src/a.rs", text).is_empty(), "{text}");
        }
    }
}
