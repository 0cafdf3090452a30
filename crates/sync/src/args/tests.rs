//! Tests of the command line.

use super::*;
use crate::table::TABLE;
use clap::{Command, FromArgMatches};
use hikyaku_console::{ExitCode, Other, Others, Role, Way};

fn parsed(words: &[&str]) -> Result<SyncArgs, clap::Error> {
    let command = SyncArgs::augment_args(Command::new("sync"));
    let words = ["sync"].iter().chain(words).chain(&["a", "b"]).copied();
    command.try_get_matches_from(words).and_then(|matches| SyncArgs::from_arg_matches(&matches))
}

#[test]
fn the_definition_is_valid() {
    SyncArgs::augment_args(Command::new("sync")).debug_assert();
}

/// What `hikyaku sync` says of options where both trees are here.
fn checked(words: &[&str]) -> anyhow::Result<Vec<String>> {
    TABLE.check(&parsed(words).unwrap().given, &[Way::Here])
}

#[test]
fn options_of_rsync_are_so_anyway_noted_or_refused_with_what_comes_nearest() {
    let notes = checked(&["-avzhP", "--no-owner", "--info=progress2", "-W", "-s"]).unwrap();
    let named = ["-z (--compress)", "-P", "--info", "-h (--human-readable)"];
    assert!(named.iter().all(|name| notes.iter().any(|note| note.starts_with(name))), "{notes:?}");
    assert_eq!(notes.len(), named.len(), "{notes:?}");
    for (words, nearest) in [
        (&["-aH"][..], "hard links"),
        (&["--link-dest=/x"], "hikyaku sync"),
        (&["--rsync-path", "x"], "--remote-path"),
        (&["-rlptgoD"], "owners"),
        (&["--ignore-errors"], "--exclude"),
    ] {
        let error = checked(words).unwrap_err();
        assert_eq!(ExitCode::of(&error, &[]), ExitCode::Usage);
        assert!(format!("{error:#}").contains(nearest), "{error:#}");
    }
    for Other { flag, role, .. } in Rsync::OPTIONS {
        if let Role::Refused(why, instead) = role {
            assert!(!instead.is_empty() && !why.contains("try"), "{flag}");
        }
    }
}

#[test]
fn what_is_about_another_option_is_refused_or_noted_without_it() {
    let error = checked(&["-a", "--delete-all"]).unwrap_err();
    assert!(error.to_string().contains("--delete-all"), "{error}");
    for beside in ["--delete", "--delete-excluded"] {
        assert!(checked(&["-a", "--delete-all", beside]).unwrap().is_empty(), "{beside}");
    }
    assert_eq!(checked(&["--suffix=.bak"]).unwrap().len(), 1);
    assert!(checked(&["-b", "--suffix=.bak"]).unwrap().is_empty());
}

#[test]
fn options_of_ssh_count_more_than_those_in_the_command_of_ssh() {
    let ssh = |words: &[&str], hosts| parsed(words).unwrap().way(hosts).map(|way| way.ssh);
    let words = ["-e", "ssh -p 2 -i a -J hop", "--ssh-port", "3", "--identity", "b"];
    let both = ssh(&words, Hosts::Some).unwrap();
    assert_eq!((both.port, both.jump), (Some(3), Some("hop".into())));
    assert_eq!(both.identities, ["b", "a"]);
    assert_eq!(both.program, Some("ssh".into()));
    // Where no other host takes part, the command is not looked at.
    for (words, text) in [(["-e", "ssh --x"], "-e"), (["--timeout", "3"], "--timeout")] {
        let error = format!("{:#}", ssh(&words, Hosts::Some).unwrap_err());
        assert!(error.contains(text), "{error}");
    }
    assert!(ssh(&["-e", "ssh --x"], Hosts::None).is_ok());
}

#[test]
fn archive_means_four_letters_and_each_can_be_taken_back() {
    let options = parsed(&["-a"]).unwrap().options();
    assert_eq!(parsed(&["-rlpt"]).unwrap().options(), options);
    let options = parsed(&["-a", "--no-perms", "--no-t"]).unwrap().options();
    assert_eq!(parsed(&["-rl"]).unwrap().options(), options);
    // The last one decides, as in rsync.
    for words in [&["--no-p", "-a"][..], &["-a", "--no-p", "-p"], &["-a", "--no-l", "-a"]] {
        assert_eq!(parsed(words).unwrap().options(), parsed(&["-a"]).unwrap().options());
    }
    assert_eq!(
        parsed(&["-rt", "-p", "--no-p"]).unwrap().options(),
        parsed(&["-rt"]).unwrap().options()
    );
}

#[test]
fn any_word_for_deletion_deletes_at_the_end() {
    for word in ["--delete", "--del", "--delete-after", "--delete-before", "--delete-excluded"] {
        assert!(parsed(&[word]).unwrap().options().deletion.is_some(), "{word}");
    }
    for words in [&["--max-delete=3"][..], &["--delete-all"], &["-a"]] {
        assert!(parsed(words).unwrap().options().deletion.is_none(), "{words:?}");
    }
}

#[test]
fn sizes_alone_are_compared_also_where_times_are_to_be_ignored() {
    for words in [["-I", "--size-only"], ["--size-only", "-I"]] {
        assert_eq!(parsed(&words).unwrap().options().quick, Quick::Size, "{words:?}");
    }
}
