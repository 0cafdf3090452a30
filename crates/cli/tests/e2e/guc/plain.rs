//! Servers of plain FTP: a file goes through one data connection, and an interrupted one goes on.

use super::{names, said};
use crate::common::scratch;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use xtask::servers::ftp::{PlainFtp, Style};

const STYLES: [Style; 2] = [Style::Facts, Style::Bare];
const NOTE: &str = "speaks plain FTP: a file goes through one data connection";

/// A folder for a client, and a server.
pub(super) struct Stage {
    folder: PathBuf,
    server: PlainFtp,
}

impl Stage {
    pub(super) fn new(name: &str, style: Style) -> Self {
        let folder = scratch(&format!("{name}-{style:?}"));
        fs::create_dir_all(folder.join("here")).unwrap();
        let server = PlainFtp::start(&folder.join("there"), style).unwrap();
        Self { folder, server }
    }

    pub(super) fn guc(&self, words: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_hikyaku"));
        command.arg("guc").args(["-rst-interval", "0.01"]).args(words);
        command.current_dir(self.here("")).env("XDG_STATE_HOME", self.folder.join("state"));
        command.output().unwrap()
    }

    pub(super) fn does(&self, words: &[&str]) -> Output {
        let output = self.guc(words);
        assert!(output.status.success(), "{words:?}: {}", said(&output));
        output
    }

    pub(super) fn here(&self, path: &str) -> PathBuf {
        self.folder.join("here").join(path)
    }

    pub(super) fn there(&self, path: &str) -> PathBuf {
        self.server.data.join(path)
    }

    pub(super) fn url(&self, path: &str) -> String {
        format!("{}/{path}", self.server.url())
    }

    /// Commands with these first words that the server was sent.
    fn count(&self, words: &str) -> usize {
        self.server.commands().iter().filter(|line| line.starts_with(words)).count()
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

fn content(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|at| (at % 251) as u8).collect()
}

fn end(output: &Output) -> Value {
    let text = String::from_utf8_lossy(&output.stdout);
    serde_json::from_str(text.lines().last().unwrap()).unwrap()
}

fn files(folder: &Path) -> Vec<(String, Vec<u8>)> {
    names(folder)
        .into_iter()
        .map(|name| (name.clone(), fs::read(folder.join(name)).unwrap()))
        .collect()
}

#[test]
fn files_and_trees_come_and_go_by_plain_ftp() {
    for style in STYLES {
        let stage = Stage::new("guc-plain", style);
        fs::create_dir_all(stage.there("t/sub")).unwrap();
        fs::create_dir_all(stage.there("t/empty")).unwrap();
        for (name, bytes) in [("a", 0), ("b c", 5), (".dot", 7), ("large", 40_000_003)] {
            fs::write(stage.there("t").join(name), content(bytes)).unwrap();
        }
        fs::write(stage.there("t/sub/d"), b"d").unwrap();
        // A file that is larger than a chunk needs one command as well.
        let output = stage.does(&["-p", "4", &stage.url("t/large"), "large"]);
        assert_eq!(said(&output).matches(NOTE).count(), 1, "{style:?}: {}", said(&output));
        assert_eq!(stage.count("RETR"), 1, "{style:?}");
        assert!(fs::read(stage.here("large")).unwrap() == content(40_000_003));
        let output = stage.does(&["-p", "4", "-q", "large", &stage.url("up")]);
        assert_eq!(said(&output), "", "{style:?}");
        assert!(fs::read(stage.there("up")).unwrap() == content(40_000_003));
        for options in [&[][..], &["-cc", "2"]] {
            stage.does(&[options, &["-r", "-cd", &stage.url("t/"), "got/"]].concat());
            stage.does(&[options, &["-r", "-cd", "got/", &stage.url("back/deep/")]].concat());
            for tree in [stage.here("got"), stage.there("back/deep")] {
                assert_eq!(
                    names(&tree),
                    [".dot", "a", "b c", "empty", "large", "sub"],
                    "{style:?}"
                );
                fs::remove_dir(tree.join("empty")).unwrap();
                assert_eq!(files(&tree.join("sub")), [("d".to_owned(), b"d".to_vec())]);
                fs::remove_dir_all(tree.join("sub")).unwrap();
                let whole = files(&tree).iter().all(|(_, bytes)| *bytes == content(bytes.len()));
                assert!(whole && files(&tree).len() == 4, "{style:?}");
            }
            fs::remove_dir_all(stage.here("got")).unwrap();
            fs::remove_dir_all(stage.there("back")).unwrap();
        }
    }
}

#[test]
fn a_transfer_that_plain_ftp_cuts_goes_on_where_it_ended() {
    const BYTES: usize = 30_000_001;
    for style in STYLES {
        let stage = Stage::new("guc-plain-cut", style);
        fs::write(stage.there("f"), content(BYTES)).unwrap();
        fs::write(stage.here("f"), content(BYTES)).unwrap();
        let url = stage.url("f");
        let many = 20_000_000;
        stage.server.cut_next(many);
        stage.does(&[&url, "got"]);
        assert!(fs::read(stage.here("got")).unwrap() == content(BYTES));
        // The other attempt begins with the first segment that is not complete.
        assert_eq!(stage.count(&format!("REST {}", 19 << 20)), 1, "{:?}", stage.server.commands());
        // The next command goes on after one that has given up.
        fs::remove_file(stage.here("got")).unwrap();
        stage.server.cut_next(many);
        let output = stage.guc(&["-rst-retries", "0", &url, "got"]);
        assert_eq!(output.status.code(), Some(5), "{style:?}: {}", said(&output));
        let output = stage.does(&["-json", &url, "got"]);
        let kept = end(&output)["kept_bytes"].as_u64().unwrap();
        assert!(kept >= 8 << 20, "{style:?}: {kept}");
        assert!(fs::read(stage.here("got")).unwrap() == content(BYTES));
        let continued = || stage.count(&format!("REST {many}"));
        assert_eq!(continued(), 1, "to the byte: {:?}", stage.server.commands());

        let url = stage.url("up");
        stage.server.cut_next(many);
        stage.does(&["f", &url]);
        assert!(fs::read(stage.there("up")).unwrap() == content(BYTES));
        assert_eq!(continued(), 2, "{:?}", stage.server.commands());
        fs::remove_file(stage.there("up")).unwrap();
        stage.server.cut_next(many);
        let output = stage.guc(&["-rst-retries", "0", "f", &url]);
        assert_eq!(output.status.code(), Some(5), "{style:?}: {}", said(&output));
        let output = stage.does(&["-json", "f", &url]);
        let kept = end(&output)["kept_bytes"].as_u64().unwrap();
        // All whole segments that the server has, but for the last four if they are compared with the source.
        assert!(kept >= 15 << 20, "{style:?}: {kept}");
        assert!(fs::read(stage.there("up")).unwrap() == content(BYTES));
        assert_eq!(names(&stage.server.data), ["f", "up"], "{style:?}");
        assert_eq!(names(&stage.folder.join("state/hikyaku/copies")), [""; 0], "{style:?}");
    }
}

#[test]
fn what_plain_ftp_cannot_do_is_refused_by_name() {
    let stage = Stage::new("guc-plain-refused", Style::Facts);
    fs::write(stage.there("f"), content(1000)).unwrap();
    fs::write(stage.here("f"), content(1000)).unwrap();
    let output = stage.guc(&[&stage.url("f"), &stage.url("g")]);
    assert_eq!(output.status.code(), Some(6), "{}", said(&output));
    assert!(said(&output).contains("MODE E") && said(&output).contains("try: two copies"));
    let output = stage.guc(&["-off", "5", "f", &stage.url("g")]);
    assert_eq!(output.status.code(), Some(6), "{}", said(&output));
    assert!(said(&output).contains("whole files"), "{}", said(&output));
    assert_eq!(names(&stage.server.data), ["f"]);
    // A part of a file comes.
    stage.does(&["-off", "5", "-len", "10", &stage.url("f"), "part"]);
    assert_eq!(fs::read(stage.here("part")).unwrap()[5..], content(1000)[5..15]);
}
