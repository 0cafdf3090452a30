//! Tests of the texts of help.

use super::*;
use crate::args;
use crate::tests::{leaves, plain_leaves};

#[test]
fn each_visible_command_stands_in_one_group() {
    let program = args::command();
    for verb in program.get_subcommands().filter(|verb| !verb.is_hide_set()) {
        let name = verb.get_name();
        let entries = GROUPS.iter().flat_map(|(_, lines)| lines.iter().copied().flatten());
        assert_eq!(entries.filter(|entry| **entry == name).count(), 1, "{name}");
    }
    let text = overview(&program);
    assert!(text.lines().count() <= 40, "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
}

#[test]
fn options_used_most_and_operands_are_those_of_commands() {
    let leaves = leaves();
    let find =
        |verb: &str| leaves.iter().find(|(path, _)| path == verb).map(|(_, command)| command);
    for (verb, flags) in USED_MOST {
        let command = find(verb).unwrap_or_else(|| panic!("no {verb}"));
        for flag in *flags {
            let name = flag.trim_start_matches('-');
            let is_known = command.get_arguments().any(|arg| {
                arg.get_long() == Some(name)
                    || arg.get_short().is_some_and(|short| short.to_string() == name)
            });
            assert!(is_known, "{verb} {flag}");
        }
    }
    assert!(OPERANDS.iter().all(|(verb, _)| find(verb).is_some()));
}

/// The texts of `-h` and of `--help`.
fn rendered(command: &Command, columns: usize) -> (String, String) {
    let mut command = command.clone().term_width(columns);
    (command.render_help().to_string(), command.render_long_help().to_string())
}

#[test]
fn a_short_help_has_at_most_30_lines_and_names_the_long_one() {
    let mut wrong = Vec::new();
    for (path, command) in leaves().iter().filter(|(path, _)| !path.is_empty()) {
        let (short, _) = rendered(command, 80);
        let name = path.split(' ').next().unwrap();
        let long = match name.starts_with("hs") {
            true => format!("All options: {name} --help"),
            false => format!("All options: hikyaku help {path}"),
        };
        let lines = short.lines().count();
        let is_wide = short.lines().any(|line| line.chars().count() > 80);
        let has_examples = command.get_before_help().is_some();
        if lines > 30
            || is_wide
            || short.contains(&long) != has_examples
            || !short.contains("Usage: ")
        {
            wrong.push(format!("{path}: {lines} lines\n{short}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

#[test]
fn examples_come_first_and_no_line_of_a_text_breaks() {
    let mut wrong = Vec::new();
    for ((path, plain), (_, command)) in plain_leaves().iter().zip(&leaves()) {
        let text = plain.get_after_help().map(ToString::to_string).unwrap_or_default();
        for line in text.lines().filter(|line| *line != "Examples:") {
            let trimmed = line.trim();
            if line.chars().count() > COLUMNS || !trimmed.is_empty() && !trimmed.contains(' ') {
                wrong.push(format!("{path}: {line}"));
            }
        }
        for columns in [80, 120].into_iter().filter(|_| !path.is_empty()) {
            let (_, long) = rendered(command, columns);
            let breaks = |line: &&str| !long.lines().any(|shown| shown == line.trim_end());
            wrong.extend(text.lines().filter(breaks).map(|line| format!("{path} breaks: {line}")));
            let place = |text: &str| long.find(text).unwrap_or(usize::MAX);
            if text.contains("Examples:") && place("Examples:") > place("Options:") {
                wrong.push(format!("{path}: {long}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
