//! Tests of the errors of the command line.

use super::*;

fn said(line: &str) -> String {
    let typed: Vec<OsString> = line.split(' ').map(OsString::from).collect();
    let error = args::parse(typed.clone()).err().unwrap_or_else(|| panic!("{line} is accepted"));
    Misuse::new(&error, &args::command(), &typed[1..]).to_string()
}

#[test]
fn errors_of_the_command_line_have_one_shape() {
    let cases = [
        ("hikyaku fly", "no subcommand 'fly'", "hikyaku help"),
        ("hikyaku perff", "no subcommand 'perff'", "hikyaku perf"),
        ("hikyaku keys fech x", "no subcommand 'fech'", "hikyaku keys fetch"),
        ("hikyaku cp --recurzive a b", "no option --recurzive", "--recursive"),
        ("hikyaku cp --excludd x a b", "no option --excludd", "--exclude"),
        ("hikyaku cp a", "too few values for SOURCE TARGET...", "hikyaku help cp"),
        ("hikyaku cp --streams 9 a b", "--streams: must be from 1 to 4", "hikyaku help cp"),
        ("hikyaku cp -P 0 a b:", "--ssh-port: must be from 1 to 65535", "hikyaku help cp"),
        ("hikyaku cp -P x a b:", "--ssh-port: not a whole number", "hikyaku help cp"),
        ("hikyaku view --ahead 0 a", "--ahead: must be 1 or more", "hikyaku help view"),
        ("hikyaku serve --root d --images x", "--images: not a whole number", "hikyaku help serve"),
        (
            "hikyaku cp --server-rate 10mb a b",
            "--server-rate: 10mb may be bits or bytes",
            "10mbit or 10MB",
        ),
        ("hikyaku sync --rate 100 a b", "--rate: 100 needs a unit", "100mbit or 100MB"),
        (
            "hikyaku cp --via utp a b",
            "--via: 'utp' is none of auto, udp, tcp, ssh, native, sftp",
            "--via udp",
        ),
        ("hikyaku get", "missing: URL", "hikyaku help get"),
        ("hikyaku lab fly", "no subcommand 'fly'", "hikyaku help lab"),
        ("hikyaku status x y --nosuch", "no option --nosuch", "hikyaku help status"),
    ];
    let mut wrong = Vec::new();
    for (line, text, remedy) in cases {
        let said = said(line);
        let is_raw = ["<", "tip:", "Usage:"].iter().any(|raw| said.contains(raw));
        let is_right = said.starts_with(text)
            && said.ends_with(&format!("\ntry: {remedy}"))
            && said.lines().count() == 2;
        if is_raw || !is_right {
            wrong.push(format!("{line}: {said}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_group_of_options_is_named_by_their_flags() {
    let said = said("hikyaku proxy host");
    assert!(said.contains("-L or -R or -D or --http"), "{said}");
    assert!(said.lines().all(|line| line.len() <= 80), "{said}");
}

#[test]
fn words_are_similar_at_a_distance_of_two() {
    assert_eq!(distance("rate", "update"), 3);
    assert_eq!(distance("exclude", "exclud"), 1);
    assert_eq!(similar(["update", "exclude"].into_iter(), "rate"), None);
    assert_eq!(similar(["rtt", "rate"].into_iter(), "rats"), Some("rate"));
    assert_eq!(similar(["on"].into_iter(), "up"), None);
}
