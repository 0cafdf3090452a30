//! `-list`, `-f` and `-sync`, as globus-url-copy has them.

use super::plain::Stage as Plain;
use super::{LOOPBACK, Stage, names, said};
use std::fs::{self, File};
use std::path::Path;
use std::time::{Duration, SystemTime};
use xtask::servers::ftp::Style;

fn set_time(path: &Path, seconds: u64) {
    let time = SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
    File::options().write(true).open(path).unwrap().set_modified(time).unwrap();
}

#[test]
fn a_directory_of_a_server_is_listed() {
    for style in [Style::Facts, Style::Bare] {
        let stage = Plain::new("guc-list", style);
        fs::create_dir_all(stage.there("d/sub")).unwrap();
        for name in ["d/b", "d/a", "d/sub/c"] {
            fs::write(stage.there(name), b"12345").unwrap();
        }
        for url in [stage.url("d/"), stage.url("d")] {
            let output = stage.does(&["-q", "-list", &url]);
            let text = String::from_utf8(output.stdout).unwrap();
            assert_eq!(text, format!("{url}\n    a\n    b\n    sub/\n"), "{style:?}");
        }
        let url = stage.url("d/");
        let output = stage.does(&["-q", "-r", "-list", &url]);
        let text = String::from_utf8(output.stdout).unwrap();
        assert_eq!(text, format!("{url}\n    a\n    b\n    sub/\n    sub/c\n"), "{style:?}");
        let output = stage.does(&["-json-lines", "-list", &url]);
        let text = String::from_utf8(output.stdout).unwrap();
        let events: Vec<serde_json::Value> =
            text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!((&events[0]["path"], &events[0]["bytes"]), (&"a".into(), &5.into()));
        assert_eq!((&events[3]["event"], &events[3]["exit_code"]), (&"end".into(), &0.into()));
        let output = stage.guc(&["-list", &stage.url("none/")]);
        assert_eq!(output.status.code(), Some(6), "{style:?}: {}", said(&output));
        for words in [&["-list", "/tmp"][..], &["-list", &url, "x", "y"], &[&url]] {
            assert_eq!(stage.guc(words).status.code(), Some(1), "{words:?}");
        }
    }
}

#[test]
fn the_pairs_of_a_file_are_copied() {
    let stage = Plain::new("guc-pairs", Style::Facts);
    for name in ["a", "b c"] {
        fs::write(stage.there(name), name).unwrap();
    }
    fs::write(stage.here("up"), "up").unwrap();
    let url = |name: &str| stage.url(name);
    let list = format!(
        "# two from the server, and one to it\n{} a\n\n\"{}\" \"b c\"\nup {}\n",
        url("a"),
        url("b c"),
        url("there"),
    );
    fs::write(stage.here("list"), list).unwrap();
    let output = stage.does(&["-f", "list"]);
    assert_eq!(said(&output).matches("speaks plain FTP").count(), 1, "{}", said(&output));
    for path in [stage.here("a"), stage.here("b c"), stage.there("there")] {
        assert!(fs::metadata(&path).is_ok(), "{}", path.display());
    }
    // The first failure ends it, unless -c is given.
    let list = format!("{} x\n{} y\n", url("none"), url("a"));
    fs::write(stage.here("list"), list).unwrap();
    assert_eq!(stage.guc(&["-f", "list"]).status.code(), Some(6));
    assert!(!stage.here("y").exists());
    assert_eq!(stage.guc(&["-c", "-f", "list"]).status.code(), Some(6));
    assert!(stage.here("y").exists());
    fs::write(stage.here("list"), "one\n").unwrap();
    let output = stage.guc(&["-f", "list"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(said(&output).contains("list, line 1"), "{}", said(&output));
}

/// The files of a folder that no longer have the byte `x`, which the test has put into each of them.
fn copied(folder: &Path) -> Vec<String> {
    let is_new = |name: &String| !fs::read(folder.join(name)).unwrap().contains(&b'x');
    names(folder).into_iter().filter(is_new).collect()
}

#[test]
fn only_files_of_another_version_are_copied() {
    let stage = Plain::new("guc-sync", Style::Facts);
    let (source, target) = (stage.here("from"), stage.there("to"));
    let back = (stage.there("from"), stage.here("to"));
    for (from, to) in [(&source, &target), (&back.0, &back.1)] {
        let words = |level: &'static str| {
            let ends = match from == &source {
                true => ["from/".to_owned(), stage.url("to/")],
                false => [stage.url("from/"), "to/".to_owned()],
            };
            [&["-q", "-r", "-cd", "-sync"][..], &["-sync-level", level]]
                .concat()
                .into_iter()
                .map(str::to_owned)
                .chain(ends)
                .collect::<Vec<_>>()
        };
        for (level, wanted) in [
            ("0", &["absent"][..]),
            ("1", &["absent", "size"]),
            ("2", &["absent", "older", "size"]),
        ] {
            for folder in [from, to] {
                let _ = fs::remove_dir_all(folder);
                fs::create_dir_all(folder).unwrap();
            }
            for name in ["absent", "newer", "older", "same", "size"] {
                fs::write(from.join(name), b"12345").unwrap();
                set_time(&from.join(name), 1_000_000_000);
            }
            for (name, content, time) in [
                ("newer", &b"xxxxx"[..], 1_000_000_001),
                ("older", b"xxxxx", 999_999_999),
                ("same", b"xxxxx", 1_000_000_000),
                ("size", b"xxxx", 1_000_000_001),
            ] {
                fs::write(to.join(name), content).unwrap();
                set_time(&to.join(name), time);
            }
            let words = words(level);
            stage.does(&words.iter().map(String::as_str).collect::<Vec<_>>());
            assert_eq!(copied(to), wanted, "level {level} to {}", to.display());
        }
    }
    // One file, and the level that is usual.
    fs::write(stage.here("f"), b"12345").unwrap();
    fs::write(stage.there("f"), b"xxxxx").unwrap();
    set_time(&stage.here("f"), 1_000_000_000);
    stage.does(&["-sync", "f", &stage.url("f")]);
    assert_eq!(fs::read(stage.there("f")).unwrap(), b"xxxxx");
    stage.does(&["-sync", &stage.url("f"), "f"]);
    assert_eq!(fs::read(stage.here("f")).unwrap(), b"xxxxx");
    assert_eq!(stage.guc(&["-sync-level", "1", "f", &stage.url("f")]).status.code(), Some(1));
}

#[test]
fn files_of_other_checksums_are_copied() {
    let Some(mut stage) = Stage::new("guc-sync-sums") else { return };
    let (server, other) = (stage.server("one", LOOPBACK), stage.server("two", LOOPBACK));
    for folder in [stage.here("t"), server.data.join("t"), other.data.join("t")] {
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("same"), b"12345").unwrap();
        fs::write(folder.join("other"), b"xxxxx").unwrap();
    }
    fs::write(server.data.join("t/other"), b"67890").unwrap();
    let from = format!("{}/t/", server.url);
    let (there, here) = (other.data.join("t"), stage.here("t"));
    for (to, folder) in [("t/".to_owned(), here), (format!("{}/t/", other.url), there)] {
        let before = fs::metadata(folder.join("same")).unwrap().modified().unwrap();
        stage.does(&["-r", "-sync", "-sync-level", "3", &from, &to]);
        assert_eq!(fs::read(folder.join("other")).unwrap(), b"67890", "{to}");
        let after = fs::metadata(folder.join("same")).unwrap().modified().unwrap();
        assert_eq!(before, after, "{to}");
    }
}
