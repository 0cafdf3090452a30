//! Tests of the command line.

mod documents;
mod rates;
mod ssh;
mod trouble;

use crate::alias::Alias;
use crate::args;
use crate::completions::script;
use clap::Command;
use clap_complete::Shell;
use std::ffi::OsString;

/// All commands, also those of a command and of the names `hscp` and `hsftp`, as `lab run` without `hikyaku`.
pub(crate) fn leaves() -> Vec<(String, Command)> {
    leaves_of(args::command(), Alias::command)
}

/// All commands in the order of `leaves`, as they define themselves.
pub(crate) fn plain_leaves() -> Vec<(String, Command)> {
    leaves_of(args::plain(), Alias::plain)
}

fn leaves_of(program: Command, alias_of: fn(Alias) -> Command) -> Vec<(String, Command)> {
    fn add(all: &mut Vec<(String, Command)>, path: &str, command: &Command) {
        all.push((path.to_owned(), command.clone()));
        let verbs = command.get_subcommands().filter(|verb| verb.get_name() != "help");
        verbs.for_each(|verb| add(all, format!("{path} {}", verb.get_name()).trim_start(), verb));
    }
    let mut program = program;
    program.build();
    let mut all = Vec::new();
    add(&mut all, "", &program);
    for alias in Alias::ALL {
        let mut command = alias_of(alias);
        command.build();
        add(&mut all, command.get_name(), &command);
    }
    all
}

#[test]
fn the_command_definitions_are_valid() {
    args::command().debug_assert();
    Alias::ALL.into_iter().for_each(|alias| alias.command().debug_assert());
}

#[test]
fn every_completion_script_contains_every_subcommand() {
    for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
        let script = String::from_utf8(script(shell, "hikyaku")).unwrap();
        for verb in args::command().get_subcommands() {
            assert!(script.contains(verb.get_name()), "{shell}: {}", verb.get_name());
        }
    }
}

#[test]
fn help_and_version_are_not_errors() {
    let stop = |word: &str| args::parse(["hikyaku", word].map(OsString::from)).err().unwrap();
    for flag in ["--version", "-V", "--help", "-h", "help"] {
        assert!(!stop(flag).use_stderr(), "{flag}");
    }
    let rsyncs = args::parse(["hikyaku", "sync", "-h"].map(OsString::from)).err().unwrap();
    assert!(rsyncs.to_string().contains("Usage: hikyaku sync"), "{rsyncs}");
    assert!(stop("fly").use_stderr());
}

#[test]
fn the_unit_for_systemd_starts_the_daemon() {
    let unit = include_str!("../../../packaging/hikyaku-serve.service");
    let settings = include_str!("../../../packaging/hikyaku-serve.default");
    let line = unit.lines().find_map(|line| line.strip_prefix("ExecStart=")).unwrap();
    let mut line = line.to_owned();
    let values = settings.lines().filter_map(|line| line.split_once('='));
    for (name, value) in values.filter(|(name, _)| !name.starts_with('#')) {
        let value = value.trim_matches('"');
        line = line.replace(&format!("${{{name}}}"), value).replace(&format!("${name}"), value);
    }
    assert!(!line.contains('$'), "{line}");
    assert!(args::parse(line.split_whitespace().map(OsString::from)).is_ok(), "{line}");
}

#[test]
fn the_page_of_settings_has_each_key_with_its_default() {
    let page = include_str!("../../../docs/settings.md");
    let (_, page) = page.split_once("\n## Keys of `[default]`").unwrap();
    let (table, _) = page.split_once("\n## ").unwrap();
    let rows: Vec<Vec<&str>> = table
        .lines()
        .filter(|line| line.starts_with("| `"))
        .map(|line| line.trim_matches('|').split('|').map(str::trim).collect())
        .collect();
    let words = ["hikyaku", "config", "list"].map(OsString::from);
    let args::Verb::Config(config) = args::parse(words).unwrap().verb else { panic!("not config") };
    let list = hikyaku_console::config(&config, &hikyaku_reach::settings::keys()).unwrap();
    for (row, line) in rows.iter().zip(list.lines()) {
        let (name, default) = (line.split(' ').next().unwrap(), row[2]);
        assert_eq!(row[0], format!("`{name}`"));
        assert!(line.ends_with(&format!("[default: {default}]")), "{line}");
    }
    assert_eq!(rows.len(), list.lines().count(), "{list}");
}
