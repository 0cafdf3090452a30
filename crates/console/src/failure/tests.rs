//! What is printed of an error.

use super::*;
use crate::Folder;
use anyhow::anyhow;
use std::io;

fn shown(error: &Error) -> String {
    Failure::new(error, &[]).to_string()
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
fn the_number_of_a_system_error_is_not_shown() {
    let denied = || io::Error::from_raw_os_error(13);
    let words = "cannot write: permission denied";
    for error in
        [Error::from(denied()).context("cannot write"), anyhow!("cannot write: {}", denied())]
    {
        assert_eq!(shown(&error).lines().next(), Some(format!("hikyaku: {words}").as_str()));
        assert_eq!(causes(&error), words);
    }
    assert_eq!(
        headline(&anyhow!("{} and {}", denied(), denied())),
        "permission denied and permission denied"
    );
    assert_eq!(headline(&anyhow!("x (os error y) z (os error ")), "x (os error y) z (os error ");
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
    assert_eq!(causes(&error), "no link: no /dev/net/tun");
    assert_eq!(headline(&error), "no link");
}

#[test]
fn an_added_remedy_keeps_what_happened_in_front() {
    for remedy in ["modprobe tun", "try: modprobe tun"] {
        let error = with_remedy(anyhow!("no /dev/net/tun").context("no link"), Some(remedy));
        assert_eq!(shown(&error), "hikyaku: no link: no /dev/net/tun\ntry: modprobe tun\n");
        assert_eq!(error.to_string(), "no link");
    }
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
fn a_missing_folder_has_a_remedy_and_recurs() {
    let error = Error::from(NoFolder::for_test(Folder::State)).context("no keys");
    let failure = Failure::new(&error, &[]);
    assert_eq!(failure.code(), ExitCode::WillFail);
    assert!(failure.to_string().ends_with("\ntry: set HOME or XDG_STATE_HOME\n"), "{failure}");
}
