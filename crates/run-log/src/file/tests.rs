//! Bounds of logs.

use super::*;
use crate::line::{Begin, End, FileLine, FileStage};

fn scratch(name: &str) -> PathBuf {
    let dir = std::env::temp_dir().join(format!("hikyaku-log-{name}-{}", std::process::id()));
    let _ = fs::remove_dir_all(&dir);
    dir
}

fn line(number: u64) -> Line {
    let path = format!("{number:0>60}");
    Line::File(FileLine { t: 0.0, stage: FileStage::Begin, path, bytes: None, m: None })
}

fn text(path: &Path) -> String {
    fs::read_to_string(path).unwrap()
}

#[test]
fn a_log_is_for_its_owner_only() {
    use std::os::unix::fs::PermissionsExt;
    let dir = scratch("modes");
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o7777;
    for room in [Room::Thinned, Room::Turned] {
        let log = LogFile::create(&dir.join("below"), "a", room).unwrap();
        assert_eq!(mode(log.path()), 0o600);
    }
    assert_eq!(mode(&dir.join("below")), 0o700);
    assert_eq!(mode(&dir), 0o700);
    fs::remove_dir_all(dir).unwrap();
}

#[test]
fn samples_of_a_long_run_become_rarer_and_its_last_line_has_room() {
    let dir = scratch("thin");
    let mut log = LogFile::create(&dir, "a", Room::Thinned).unwrap();
    log.limits = Limits { run: 4000, last: 200, ..LIMITS };
    let mut seen = Vec::new();
    for number in 0..100 {
        log.write(&[line(number)]);
        if seen.last() != Some(&log.thinning()) {
            seen.push(log.thinning());
        }
    }
    log.write_last(Line::End(End::default()));
    assert_eq!(seen[..4], [1, 4, 16, 64]);
    let text = text(log.path());
    assert!(text.len() <= 4000, "{}", text.len());
    assert!(text.ends_with("\"untold_files\":0}\n"), "{text}");
    fs::remove_dir_all(dir).unwrap();
}

#[test]
fn the_log_of_a_daemon_has_two_files_that_both_begin_with_its_head() {
    let dir = scratch("turn");
    fs::create_dir(&dir).unwrap();
    fs::write(dir.join("a.jsonl"), "old").unwrap();
    let mut log = LogFile::create(&dir, "a", Room::Turned).unwrap();
    assert_eq!(text(&dir.join("a.1.jsonl")), "old");
    log.limits = Limits { daemon: 1000, ..LIMITS };
    log.write_head(&[Line::Run(Begin::default())]);
    (0..50).for_each(|number| log.write(&[line(number)]));
    for name in ["a.jsonl", "a.1.jsonl"] {
        let text = text(&dir.join(name));
        assert!(text.len() <= 1000 && text.starts_with("{\"type\":\"run\""), "{name}: {text}");
    }
    assert_eq!(fs::read_dir(&dir).unwrap().count(), 2);
    assert!(log.take_lost().is_none());
    fs::remove_dir_all(dir).unwrap();
}

#[test]
fn two_runs_of_one_second_have_two_files() {
    let dir = scratch("two");
    let one = LogFile::create(&dir.join("new"), "a", Room::Thinned).unwrap();
    let two = LogFile::create(&dir.join("new"), "a", Room::Thinned).unwrap();
    assert_ne!(one.path(), two.path());
    fs::remove_dir_all(dir).unwrap();
}
