//! Tests of the command line.

use super::*;
use clap::{Command, FromArgMatches};

fn parsed(words: &[&str]) -> Result<SyncArgs, clap::Error> {
    let command = SyncArgs::augment_args(Command::new("sync"));
    let words = ["sync"].iter().chain(words).chain(&["a", "b"]).copied();
    command.try_get_matches_from(words).and_then(|matches| SyncArgs::from_arg_matches(&matches))
}

#[test]
fn the_definition_is_valid() {
    SyncArgs::augment_args(Command::new("sync")).debug_assert();
}

#[test]
fn options_of_rsync_have_no_effect_or_are_refused_with_what_comes_nearest() {
    let args = parsed(&["-avzhP", "--no-owner", "--info=progress2", "-W"]).unwrap();
    assert_eq!(args.remarks().len(), 6, "{:?}", args.remarks());
    assert!(parsed(&["-az"]).unwrap().remarks().is_empty(), "without -v");
    for (words, nearest) in [
        (&["-aH"][..], "hard links"),
        (&["--link-dest=/x"], "hikyaku sync"),
        (&["--rsync-path", "x"], "--remote-path"),
        (&["-rlptgoD"], "owners"),
        (&["--ignore-errors"], "--exclude"),
    ] {
        let error = parsed(words).unwrap_err();
        assert_eq!(error.kind(), clap::error::ErrorKind::UnknownArgument);
        assert!(error.to_string().contains(nearest), "{error}");
    }
}

#[test]
fn archive_means_four_letters_and_each_can_be_taken_back() {
    let options = parsed(&["-a"]).unwrap().options();
    assert_eq!(parsed(&["-rlpt"]).unwrap().options(), options);
    let options = parsed(&["-a", "--no-perms", "--no-t"]).unwrap().options();
    assert_eq!(parsed(&["-rl"]).unwrap().options(), options);
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
fn sizes_and_limits_are_rsyncs() {
    for (text, bytes) in
        [("7", 7), ("7b", 7), ("2k", 2048), ("2KB", 2000), ("2KiB", 2048), ("1m", 1 << 20)]
    {
        assert_eq!(size(text), Ok(bytes), "{text}");
    }
    for text in ["", "k", "2x", "2kbb", "-1", "99999999999p"] {
        assert!(size(text).is_err(), "{text}");
    }
    assert_eq!(limit("100"), Ok(Rate::from_bits_per_sec(819_200)));
    assert_eq!(limit("1m"), Ok(Rate::from_bits_per_sec(8 << 20)));
    assert!(limit("0").is_err());
}
