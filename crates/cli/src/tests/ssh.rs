//! All commands that use ssh take the same options for it.

use super::plain_leaves;
use clap::Command;

/// The commands that log in to another host, and the letter of ssh's port in each.
const USERS: [(&str, Option<char>); 13] = [
    ("cp", Some('P')),
    ("hscp", Some('P')),
    ("sftp", Some('P')),
    ("hsftp", Some('P')),
    ("sync", None),
    ("perf", None),
    ("doctor", None),
    ("proxy", Some('p')),
    ("web", Some('p')),
    ("keys install", Some('P')),
    ("keys fetch", Some('P')),
    ("far install", Some('P')),
    ("far list", Some('P')),
];

/// Other commands that connect to hosts.
const CONNECTING: [&str; 4] = ["ls", "mount", "view", "status"];

#[test]
fn each_command_that_connects_has_the_options_of_the_address_family() {
    let leaves = plain_leaves();
    let all = USERS.iter().map(|(name, _)| *name).chain(CONNECTING);
    for name in all.filter(|name| *name != "sync") {
        let (_, command) = leaves.iter().find(|(path, _)| path == name).expect(name);
        let has = |letter| command.get_arguments().any(|arg| arg.get_short() == Some(letter));
        assert!(has('4') && has('6'), "{name}");
    }
}

/// The options of ssh with their helps.
fn options(command: &Command) -> Vec<(String, String)> {
    let names = ["ssh-port", "identity", "jump", "ssh-config", "ssh-option", "ssh"];
    let of = |name: &&str| command.get_arguments().find(|arg| arg.get_long() == Some(*name));
    let help = |arg: &clap::Arg| arg.get_help().map(ToString::to_string).unwrap_or_default();
    let found = names.iter().filter_map(|name| Some(((*name).to_owned(), help(of(name)?))));
    found.collect()
}

#[test]
fn each_command_with_ssh_has_all_options_of_ssh_with_the_same_help() {
    let leaves = plain_leaves();
    let wanted = options(&leaves.iter().find(|(name, _)| name == "cp").unwrap().1);
    assert_eq!(wanted.len(), 6);
    for (name, letter) in USERS {
        let (_, command) = leaves.iter().find(|(path, _)| path == name).expect(name);
        assert_eq!(options(command), wanted, "{name}");
        let port = command.get_arguments().find(|arg| arg.get_long() == Some("ssh-port")).unwrap();
        assert_eq!(port.get_short(), letter, "{name}");
    }
    for (name, command) in leaves {
        let found = options(&command);
        assert!(found.is_empty() || found == wanted, "{name} has some of them only: {found:?}");
    }
}
