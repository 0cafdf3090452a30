//! What is asked for before the last answer has come, as the dialogue with the server shows it (`-dbg`).

use crate::{Down, LOOPBACK, Stage};
use hikyaku_bench_servers::{is_same, said, write_file};
use std::path::Path;
use std::process::{Command, Output};
use xtask::servers::gridftp;

/// Downloads at most until a chunk is asked for ahead.
const TRIES: usize = 20;

/// How many commands with this verb were sent.
fn sent(output: &Output, verb: &str) -> usize {
    said(output).lines().filter(|line| line.starts_with(&format!("> {verb}"))).count()
}

/// How many transfers were asked for while another was under way.
fn sent_ahead(output: &Output, verb: &str) -> usize {
    let (mut under_way, mut ahead) = (0_usize, 0);
    for line in said(output).lines() {
        if line.starts_with(&format!("> {verb}")) {
            ahead += usize::from(under_way > 0);
            under_way += 1;
        } else if line.starts_with("< 226") {
            under_way = under_way.saturating_sub(1);
        }
    }
    ahead
}

fn is_same_tree(one: &Path, other: &Path) -> bool {
    Command::new("diff").arg("-r").args([one, other]).status().unwrap().success()
}

#[test]
fn the_next_chunk_is_asked_for_before_the_end_of_the_last() {
    let Some(stage) = Stage::new("guc-ahead") else { return };
    write_file(&stage.there("big"), 200_000_000);
    let words = ["-dbg", "-apt-delta", "0.02"];
    // On loopback the last bytes of a chunk are often there before the next one can be asked for.
    let is_ahead = (0..TRIES).any(|_| {
        let down = stage.does(&[&words[..], &[&stage.url("big"), "got"]].concat());
        assert!(is_same(&stage.here("got"), &stage.there("big")));
        assert!(sent(&down, "ERET") > 1, "{}", said(&down));
        sent_ahead(&down, "ERET") > 0
    });
    assert!(is_ahead, "no chunk was asked for ahead");
    let up = stage.does(&[&words[..], &["got", &stage.url("up")]].concat());
    assert!(is_same(&stage.here("got"), &stage.there("up")), "{}", said(&up));
}

#[test]
fn small_files_are_asked_for_at_once_over_one_connection() {
    let Some(stage) = Stage::new("guc-small") else { return };
    for at in 0..60 {
        write_file(&stage.there("tree").join(format!("{at}")), 777 * at);
    }
    let down = stage.does(&["-dbg", "-r", "-cd", &stage.url("tree/"), "got/"]);
    assert!(is_same_tree(&stage.there("tree"), &stage.here("got")));
    assert_eq!(sent(&down, "PORT"), 1, "of the listing: {}", said(&down));
    assert!(sent_ahead(&down, "ERET") > 30, "{}", said(&down));
    let up = stage.does(&["-dbg", "-r", "-cd", "got/", &stage.url("up/")]);
    assert!(is_same_tree(&stage.there("tree"), &stage.there("up")));
    assert_eq!(sent(&up, "PASV"), 1, "{}", said(&up));
    assert!(sent_ahead(&up, "ESTO") > 30, "{}", said(&up));
    let other = gridftp::up(&stage.scene.at("other"), LOOPBACK).unwrap();
    let _other = Down(stage.scene.at("other"));
    let to = format!("{}/copy/", other.url);
    let between = stage.does(&["-dbg", "-r", "-cd", &stage.url("tree/"), &to]);
    assert!(is_same_tree(&stage.there("tree"), &other.data.join("copy")));
    assert_eq!(sent(&between, "PASV"), 2, "one for the empty file: {}", said(&between));
    assert!(sent_ahead(&between, "ERET") > 30, "{}", said(&between));
    // One after the other, if that is wanted.
    let down = stage.does(&["-dbg", "-r", "-cd", "-pp=1", &stage.url("tree/"), "slow/"]);
    assert!(is_same_tree(&stage.there("tree"), &stage.here("slow")));
    assert_eq!(sent_ahead(&down, "ERET"), 0);
}
