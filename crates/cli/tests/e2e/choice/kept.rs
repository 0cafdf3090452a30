//! Tests of stopped copies: the bytes that a stopped copy keeps, and how the next copy uses them.

use super::Rig;
use crate::common::daemon::said;
use crate::common::{listing, wait_until};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

/// Runs a slow copy, interrupts it when `is_begun` holds, and returns its standard error.
fn stopped(rig: &Rig, words: &[&str], is_begun: impl Fn() -> bool) -> String {
    let mut command = rig.client.command(&["cp", "-r", "-l", "8m"]);
    let command = command.args(words).current_dir(rig.at("")).stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    wait_until("the copy", is_begun);
    let process = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(process, rustix::process::Signal::INT).unwrap();
    said(&child.wait_with_output().unwrap())
}

/// A tree of a file that takes a while and one that does not.
fn small_and_large(at: &Path) {
    fs::create_dir_all(at).unwrap();
    fs::write(at.join("f"), vec![7; 30_000_000]).unwrap();
    fs::write(at.join("a"), "a").unwrap();
}

#[test]
fn a_stopped_copy_says_what_is_kept() {
    let rig = Rig::new("stopped");
    fs::create_dir_all(rig.at("root/large")).unwrap();
    fs::write(rig.at("root/large/f"), vec![7; 30_000_000]).unwrap();
    small_and_large(&rig.at("root/both"));
    for (source, target, made) in [("large/f", "f", "f"), ("both", "out", "out/both")] {
        if source == "both" {
            fs::create_dir(rig.at("out")).unwrap();
        }
        // Eight segments or more have reached the disk.
        let is_begun = || unfinished_bytes(&rig.at(made)) > 8 << 20;
        let (served, option) = (rig.served(source), "-l64m");
        let told = stopped(&rig, &[option, &served, target], is_begun);
        assert!(told.contains("stopped; the same command continues from here"), "{told}");
        assert!(listed(&rig).contains(&rig.at(made).file_name().unwrap().to_string_lossy()[..]));
        let again = rig.cp(&["-r", "--json", &served, target]);
        assert!(again.status.success(), "{}", said(&again));
        let end = String::from_utf8(again.stdout).unwrap();
        let end: serde_json::Value = serde_json::from_str(end.lines().last().unwrap()).unwrap();
        let kept = end["kept_bytes"].as_u64().unwrap();
        // The last 4 MiB are compared.
        assert!(kept >= 4 << 20, "{source}: {kept} bytes were kept");
        let (copied, wanted) = (rig.at(made), rig.at("root").join(source));
        match copied.is_dir() {
            true => assert_eq!(listing(&copied), listing(&wanted)),
            false => assert!(fs::read(&copied).unwrap() == fs::read(&wanted).unwrap()),
        }
        assert!(listed(&rig).contains("no copy onto this host is unfinished"), "{}", listed(&rig));
    }
    assert_eq!(fs::read_dir(rig.at("out")).unwrap().count(), 1);
}

/// Bytes of the unfinished files at or below `made`.
fn unfinished_bytes(made: &Path) -> u64 {
    let dir = if made.is_dir() { made } else { made.parent().unwrap() };
    let partials = crate::common::partials(dir).into_iter().map(|path| dir.join(path));
    partials.filter_map(|path| fs::metadata(path).ok()).map(|meta| meta.len()).sum()
}

/// The output of `hikyaku cp --unfinished`: the unfinished copies on this host.
fn listed(rig: &Rig) -> String {
    let listed = rig.client.command(&["cp", "--unfinished"]).output().unwrap();
    String::from_utf8(listed.stdout).unwrap()
}

#[test]
fn an_unfinished_copy_from_a_daemon_can_be_abandoned_and_begun_anew() {
    let rig = Rig::new("abandoned");
    fs::write(rig.at("root/f"), vec![7; 30_000_000]).unwrap();
    let served = rig.served("f");
    let begin = || {
        let told =
            stopped(&rig, &["-l64m", &served, "f"], || unfinished_bytes(&rig.at("f")) > 8 << 20);
        assert!(told.contains("continues from here"), "{told}");
        assert_eq!(crate::common::partials(&rig.at("")).len(), 1, "{told}");
    };
    begin();
    let target = rig.at("f").display().to_string();
    let abandoned = rig.client.command(&["cp", "--abandon", &target]).output().unwrap();
    assert!(abandoned.status.success(), "{}", said(&abandoned));
    assert!(crate::common::partials(&rig.at("")).is_empty(), "{}", said(&abandoned));
    begin();
    let fresh = rig.cp(&["--fresh", "--json", &served, "f"]);
    let end = String::from_utf8(fresh.stdout).unwrap();
    let end: serde_json::Value = serde_json::from_str(end.lines().last().unwrap()).unwrap();
    assert_eq!((&end["exit_code"], &end["kept_bytes"]), (&0.into(), &0.into()), "{end}");
    assert!(crate::common::partials(&rig.at("")).is_empty());
    assert_eq!(fs::read(rig.at("f")).unwrap(), fs::read(rig.at("root/f")).unwrap());
}

#[test]
fn a_tree_that_was_to_get_another_name_is_continued_here_and_told_to_be_in_the_way_at_a_daemon() {
    let rig = Rig::new("stopped-name");
    small_and_large(&rig.at("root/tree"));
    small_and_large(&rig.at("tree"));
    let (served, to) = (rig.served("tree"), rig.served("new"));
    let cases: [(&[&str], PathBuf, &str); 2] = [
        (&[&served, "new"], rig.at("new"), "the same command continues"),
        (&["tree", &to], rig.at("root/new"), "remove the target before the same command"),
    ];
    for (words, made, sentence) in cases {
        let is_begun = || made.join("a").exists();
        let told = stopped(&rig, words, is_begun);
        assert!(told.contains(sentence), "{words:?}: {told}");
        if sentence.starts_with("remove") {
            // The daemon takes away what was not complete.
            wait_until("the end", || fs::read_dir(&made).unwrap().count() == 1);
            fs::remove_dir_all(&made).unwrap();
        }
        let again = rig.cp(&[&["-r"][..], words].concat());
        assert!(again.status.success(), "{words:?}: {}", said(&again));
        assert_eq!(listing(&made), listing(&rig.at("tree")), "{words:?}");
    }
}
