//! Each command has each option, or refuses it with a reason.

use super::*;
use crate::args;
use crate::tests::plain_leaves;
use crate::usage::Misuse;
use clap::{Arg, ArgAction, Command};
use std::ffi::OsString;

/// The commands, as the columns of the table of options.
const VERBS: [&str; 16] = [
    "cp",
    "sftp",
    "sync",
    "ls",
    "get",
    "guc",
    "mount",
    "view",
    "perf",
    "doctor",
    "proxy",
    "web",
    "serve",
    "status",
    "keys install",
    "far install",
];

impl Native {
    /// Whether a command has the option, not counting those that it takes for another program and has no use for.
    fn is_of(self, command: &Command) -> bool {
        self.arg(command).is_some_and(|arg| {
            !arg.is_hide_set() && !matches!(arg.get_action(), ArgAction::Version)
        })
    }

    /// The argument of a command that the option is parsed as.
    fn arg(self, command: &Command) -> Option<&Arg> {
        let letter = self.letter();
        command.get_arguments().find(|arg| match self.flag.strip_prefix("--") {
            Some(name) if arg.get_long() == Some(name) => true,
            _ => letter.is_some() && arg.get_short() == letter,
        })
    }
}

/// The page with the table.
const PAGE: &str = include_str!("../../../../docs/options.md");

fn command(verb: &str) -> Command {
    let leaves = plain_leaves();
    leaves.into_iter().find(|(path, _)| path == verb).unwrap_or_else(|| panic!("no {verb}")).1
}

#[test]
fn a_command_has_an_option_or_refuses_it_with_a_reason() {
    let mut wrong = Vec::new();
    for verb in VERBS {
        let command = command(verb);
        for native in NATIVE {
            let reasons = native.lacking.iter().filter(|lacking| lacking.verbs.contains(&verb));
            match (native.arg(&command), reasons.count()) {
                (None, 1) => {}
                (None, count) => wrong.push(format!("{verb} {}: {count} reasons", native.flag)),
                // Options of another program have their answers in its table.
                (Some(_), 0) => {}
                (Some(_), _) => wrong.push(format!("{verb} has {}", native.flag)),
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_reason_is_printed_with_the_option() {
    for verb in VERBS {
        for native in NATIVE.iter().filter(|native| native.arg(&command(verb)).is_none()) {
            let line = format!("hikyaku {verb} {} 1", native.flag);
            let typed: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            let error = args::parse(typed.clone()).err().unwrap_or_else(|| panic!("{line}"));
            let said = Misuse::new(&error, &args::command(), &typed[1..]).to_string();
            let begin = format!("no option {}: ", native.flag);
            assert!(said.starts_with(&begin) && said.contains("\ntry: "), "{line}: {said}");
            assert!(error.use_stderr() && said.lines().count() == 2, "{line}: {said}");
        }
    }
}

/// The table as the page has it.
fn table() -> String {
    let mut text = format!("| option | {} |\n|---|", VERBS.join(" | "));
    text += &"---|".repeat(VERBS.len());
    for native in NATIVE {
        let cells = VERBS.map(|verb| if native.is_of(&command(verb)) { "yes" } else { "-" });
        text += &format!("\n| `{}` | {} |", native.flag, cells.join(" | "));
    }
    text
}

#[test]
fn the_page_of_options_has_the_table() {
    let is_row = |line: &&str| line.starts_with('|');
    let (head, rest) = PAGE.split_once("| option | cp |").expect("the page has the table");
    let behind: String =
        rest.lines().skip(1).skip_while(is_row).map(|l| format!("{l}\n")).collect();
    let wanted = format!("{head}{}\n{behind}", table());
    if std::env::var_os("HIKYAKU_RECORD").is_some() {
        let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/options.md");
        std::fs::write(page, wanted).unwrap();
        return;
    }
    assert!(PAGE == wanted, "take the table again with HIKYAKU_RECORD=1:\n{}", table());
}
