//! Tests of the command line.

use crate::args;
use crate::completions::script;
use clap_complete::Shell;
use std::ffi::OsString;

#[test]
fn the_command_definitions_are_valid() {
    args::command().debug_assert();
    crate::hscp::command().debug_assert();
}

#[test]
fn every_completion_script_contains_every_subcommand() {
    for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
        let script = String::from_utf8(script(shell)).unwrap();
        for verb in args::command().get_subcommands() {
            assert!(script.contains(verb.get_name()), "{shell}: {}", verb.get_name());
        }
    }
}

#[test]
fn help_and_version_are_not_errors() {
    let stop = |word: &str| args::parse(["hikyaku", word].map(OsString::from)).err().unwrap();
    for flag in ["--version", "-V", "--help", "help"] {
        assert!(!stop(flag).use_stderr(), "{flag}");
    }
    assert!(stop("fly").use_stderr());
}
