//! Lists that users name: their lines, and the limits of these.

use super::*;
use std::fs::OpenOptions;
use std::io::Write;
use std::process::Command;

fn path(name: &str) -> std::path::PathBuf {
    std::env::temp_dir().join(format!("hikyaku-list-{}-{name}", std::process::id()))
}

#[test]
fn lines_end_with_or_without_a_carriage_return() {
    let path = path("lines");
    std::fs::write(&path, "a\n\nb\r\nc").unwrap();
    let mut lines = Lines::open(&path, 10).unwrap();
    for want in [&b"a"[..], b"", b"b", b"c"] {
        assert_eq!(lines.next(&|| true).unwrap(), Step::Line(want.to_vec()));
    }
    assert_eq!(lines.next(&|| true).unwrap(), Step::End);
    assert_eq!(read_list(&path).unwrap(), b"a\n\nb\r\nc");
    std::fs::remove_file(path).unwrap();
}

#[test]
fn a_line_has_a_limit() {
    let path = path("long");
    std::fs::write(&path, vec![b'x'; 200_000]).unwrap();
    let mut lines = Lines::open(&path, 100_000).unwrap();
    let error = lines.next(&|| true).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::InvalidData);
    std::fs::remove_file(path).unwrap();
}

#[test]
fn a_line_that_has_not_come_is_awaited() {
    let path = path("fifo");
    assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
    let mut lines = Lines::open(&path, 100).unwrap();
    // Opened for both directions, so that the opening does not wait.
    let mut writer = OpenOptions::new().read(true).write(true).open(&path).unwrap();
    assert_eq!(lines.next(&|| false).unwrap(), Step::Awaited);
    writer.write_all(b"one\ntw").unwrap();
    assert_eq!(lines.next(&|| true).unwrap(), Step::Line(b"one".to_vec()));
    assert_eq!(lines.next(&|| false).unwrap(), Step::Awaited);
    writer.write_all(b"o\n").unwrap();
    assert_eq!(lines.next(&|| true).unwrap(), Step::Line(b"two".to_vec()));
    drop(writer);
    assert_eq!(lines.next(&|| true).unwrap(), Step::End);
    std::fs::remove_file(path).unwrap();
}
