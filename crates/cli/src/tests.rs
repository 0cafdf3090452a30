//! Tests of the command line and of error messages.

use crate::args;
use crate::completions::script;
use crate::failure::Failure;
use anyhow::{Context, Error, anyhow};
use clap_complete::Shell;
use std::ffi::OsString;
use std::io::{self, ErrorKind};

fn shown(error: &Error) -> String {
    Failure::from(error).to_string()
}

#[test]
fn the_command_definitions_are_valid() {
    args::command().debug_assert();
    crate::hscp::command().debug_assert();
}

#[test]
fn causes_are_joined_on_one_line() {
    let error = anyhow!("no route").context("cannot reach example.org");
    assert_eq!(shown(&error), "hikyaku: cannot reach example.org: no route\n");
}

#[test]
fn control_characters_in_a_cause_are_removed() {
    let error =
        anyhow!("`\u{1b}[2J\ntry: rm -rf ~` is not a key").context("\u{202e}x".repeat(9000));
    let text = shown(&error);
    assert!(!text.trim_end().contains(|c: char| c.is_control() || c == '\u{202e}'), "{text}");
    assert!(text.len() < 10_000 && text.lines().count() == 1, "{}", text.len());
}

#[test]
fn a_cause_is_not_repeated() {
    let error = anyhow!("no route").context("cannot connect: no route");
    assert_eq!(shown(&error), "hikyaku: cannot connect: no route\n");
}

#[test]
fn a_remedy_has_its_own_line() {
    let error = anyhow!("no /dev/net/tun").context("try: modprobe tun").context("no link");
    assert_eq!(shown(&error), "hikyaku: no link: no /dev/net/tun\ntry: modprobe tun\n");
}

#[test]
fn a_specific_remedy_replaces_the_default_one() {
    let denied = || io::Error::from(ErrorKind::PermissionDenied);
    let plain = Error::from(denied()).context("cannot make a namespace");
    assert!(shown(&plain).ends_with("\ntry: the same command as root (sudo)\n"));
    let better = Error::from(denied()).context("try: chmod").context("cannot read");
    assert!(shown(&better).ends_with("\ntry: chmod\n"));
}

#[test]
fn the_error_kind_decides_the_exit_code() {
    let code = |kind| Failure::from(&Error::from(io::Error::from(kind))).exit_code();
    assert_eq!(code(ErrorKind::TimedOut), 5.into());
    assert_eq!(code(ErrorKind::PermissionDenied), 6.into());
    assert_eq!(code(ErrorKind::InvalidData), 2.into());
    let wrapped: Result<(), _> = Err(io::Error::from(ErrorKind::ConnectionRefused));
    let wrapped = wrapped.context("cannot connect").unwrap_err();
    assert_eq!(Failure::from(&wrapped).exit_code(), 5.into());
    assert_eq!(Failure::from(&anyhow!("odd")).exit_code(), 2.into());
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
