//! The command line as users meet it.

use crate::args::Cli;
use crate::completions::script;
use crate::failure::Failure;
use anyhow::{Context, Error, anyhow};
use clap::{CommandFactory, Parser};
use clap_complete::Shell;
use std::io::{self, ErrorKind};

fn shown(error: &Error) -> String {
    Failure::from(error).to_string()
}

#[test]
fn definitions_are_consistent() {
    Cli::command().debug_assert();
}

#[test]
fn causes_follow_on_one_line() {
    let error = anyhow!("no route").context("cannot reach example.org");
    assert_eq!(shown(&error), "hikyaku: cannot reach example.org: no route\n");
}

#[test]
fn a_cause_is_not_said_twice() {
    let error = anyhow!("no route").context("cannot connect: no route");
    assert_eq!(shown(&error), "hikyaku: cannot connect: no route\n");
}

#[test]
fn a_remedy_has_its_own_line() {
    let error = anyhow!("no /dev/net/tun").context("try: modprobe tun").context("no link");
    assert_eq!(shown(&error), "hikyaku: no link: no /dev/net/tun\ntry: modprobe tun\n");
}

#[test]
fn the_usual_remedy_steps_back_for_a_better_one() {
    let denied = || io::Error::from(ErrorKind::PermissionDenied);
    let plain = Error::from(denied()).context("cannot make a namespace");
    assert!(shown(&plain).ends_with("\ntry: the same command as root (sudo)\n"));
    let better = Error::from(denied()).context("try: chmod").context("cannot read");
    assert!(shown(&better).ends_with("\ntry: chmod\n"));
}

#[test]
fn scripts_can_tell_failures_apart() {
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
fn every_shell_has_a_script_with_every_verb() {
    for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
        let script = String::from_utf8(script(shell)).unwrap();
        for verb in Cli::command().get_subcommands() {
            assert!(script.contains(verb.get_name()), "{shell}: {}", verb.get_name());
        }
    }
}

#[test]
fn help_and_version_are_no_errors() {
    for flag in ["--version", "--help", "help"] {
        let stop = Cli::try_parse_from(["hikyaku", flag]).err().unwrap();
        assert!(!stop.use_stderr(), "{flag}");
    }
    assert!(Cli::try_parse_from(["hikyaku", "fly"]).err().unwrap().use_stderr());
}
