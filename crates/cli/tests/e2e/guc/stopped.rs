//! `hikyaku guc` after Ctrl-C: the sentence is compared with the next run.

use super::{LOOPBACK, Stage, has_chunks, has_recorded};
use crate::stopped::stopped;
use crate::terminal::stopped as terminal;
use std::fs;
use std::process::Command;

/// So large that no copy ends before it is stopped.
const BYTES: u64 = 2 << 30;
const EVERYTHING: &str = "stopped; the same command continues from here";
const NOTHING: &str = "stopped; nothing was kept";

/// The bytes of an earlier run that the command has used.
fn kept(stage: &Stage, words: &[&str]) -> u64 {
    let output = stage.does(&[&["-json"], words].concat());
    let text = String::from_utf8_lossy(&output.stdout);
    let end: serde_json::Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
    end["kept_bytes"].as_u64().unwrap()
}

#[test]
fn a_stopped_file_is_continued_in_each_direction() {
    let Some(mut stage) = Stage::new("guc-stopped") else { return };
    let (one, two) = (stage.server("one", LOOPBACK), stage.server("two", LOOPBACK));
    for path in [one.data.join("big"), stage.here("big")] {
        fs::File::create(path).unwrap().set_len(BYTES).unwrap();
    }
    let (from, up, between) =
        (format!("{}/big", one.url), format!("{}/up", two.url), format!("{}/between", two.url));
    // A copy between two servers records a chunk at a time.
    for (source, target, copy, recorded) in [
        (&*from, "got", stage.here("got"), 4_000),
        ("big", &*up, two.data.join("up"), 4_000),
        (&*from, &*between, two.data.join("between"), 1_000),
    ] {
        let words = ["-p", "2", source, target];
        let said = stopped(&mut stage.command(&words), || has_recorded(&stage, recorded));
        assert!(said.contains(EVERYTHING), "{target}: {said}");
        assert!(!copy.exists(), "{target}");
        assert!(kept(&stage, &words) > 0, "{target}: nothing was kept");
        assert_eq!(fs::metadata(&copy).unwrap().len(), BYTES, "{target}");
        fs::remove_file(copy).unwrap();
    }
}

#[test]
fn a_copy_by_cp_to_a_server_is_continued() {
    let Some(mut stage) = Stage::new("cp-stopped-gridftp") else { return };
    let server = stage.server("one", LOOPBACK);
    let bytes: Vec<u8> = (0..400_000_003_u32).map(|at| (at ^ (at >> 11)) as u8).collect();
    fs::write(stage.here("big"), &bytes).unwrap();
    let url = format!("{}/up", server.url);
    let cp = |options: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_hikyaku"));
        command.arg("cp").args(options).args(["big", &url]).current_dir(stage.here(""));
        command.env("XDG_STATE_HOME", stage.folder.join("state"));
        command
    };
    // The rate leaves time to stop it.
    let said = stopped(&mut cp(&["-l", "800m"]), || has_chunks(&stage));
    assert!(said.contains(EVERYTHING), "{said}");
    assert!(!server.data.join("up").exists());
    let output = cp(&["--json"]).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}");
    let end: serde_json::Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
    assert!(end["kept_bytes"].as_u64().unwrap() > 0, "{end}");
    assert!(fs::read(server.data.join("up")).unwrap() == bytes);
    assert_eq!(super::names(&server.data), ["up"]);
}

#[test]
fn a_file_that_was_written_in_place_is_begun_anew() {
    let Some(mut stage) = Stage::new("guc-stopped-inplace") else { return };
    let server = stage.server("one", LOOPBACK);
    fs::File::create(stage.here("big")).unwrap().set_len(BYTES).unwrap();
    let url = format!("{}/up", server.url);
    let words = ["-inplace", "-p", "2", "big", &url];
    let there = server.data.join("up");
    let has_begun = || fs::metadata(&there).is_ok_and(|meta| meta.len() > 4 << 20);
    let said = stopped(&mut stage.command(&words), has_begun);
    assert!(said.contains(NOTHING), "{said}");
    fs::File::create(stage.here("big")).unwrap().set_len(1_000).unwrap();
    assert_eq!(kept(&stage, &words), 0);
    assert_eq!(fs::metadata(server.data.join("up")).unwrap().len(), 1_000);
}

#[test]
fn a_stopped_tree_is_continued_in_the_middle_of_a_file() {
    let Some(mut stage) = Stage::new("guc-stopped-tree") else { return };
    let server = stage.server("one", LOOPBACK);
    let (far, near) = (server.data.join("t"), stage.here("t"));
    for tree in [&far, &near] {
        fs::create_dir_all(tree).unwrap();
        fs::write(tree.join("a"), vec![7; 3_000]).unwrap();
        fs::File::create(tree.join("big")).unwrap().set_len(BYTES).unwrap();
    }
    let (from, up) = (format!("{}/t/", server.url), format!("{}/up/", server.url));
    for (source, target, copy) in
        [(&*from, "got/", stage.here("got")), ("t/", &*up, server.data.join("up"))]
    {
        let words = ["-r", "-cd", "-p", "2", source, target];
        let said = stopped(&mut stage.command(&words), || has_chunks(&stage));
        assert!(said.contains(EVERYTHING), "{target}: {said}");
        assert!(kept(&stage, &words) > 3_000, "{target}");
        assert_eq!(fs::metadata(copy.join("big")).unwrap().len(), BYTES, "{target}");
        fs::remove_dir_all(copy).unwrap();
    }
}

#[test]
fn on_a_terminal_the_sentence_stands_on_a_line_of_its_own() {
    let Some(mut stage) = Stage::new("guc-stopped-terminal") else { return };
    let server = stage.server("one", LOOPBACK);
    fs::File::create(server.data.join("big")).unwrap().set_len(100 << 30).unwrap();
    let (here, state) = (stage.here(""), stage.folder.join("state"));
    // The disk cannot hold so large a file. No byte is kept of a copy into a device.
    let words = format!("guc -p 1 {}/big /dev/null", server.url);
    let ready = "bit/s";
    let Some(lines) = terminal::stopped(&words, (&here, &state), ready) else { return };
    assert!(terminal::is_told(&lines, &format!("hikyaku: {NOTHING}")), "{lines:#?}");
}
