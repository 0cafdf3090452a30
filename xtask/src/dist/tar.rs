//! Writes archives in the format ustar (POSIX.1-1988, as of tar(5)): all owned by root, all of one time.

use super::tree::{Entry, Tree};
use anyhow::{Result, ensure};

/// Everything is in blocks of this many bytes.
const BLOCK_BYTES: usize = 512;
/// The longest name that a header holds without a second field.
const NAME_BYTES_MAX: usize = 100;

/// An archive of `tree`, each path behind `prefix`, which ends with a slash. `time` is in seconds since 1970.
pub(super) fn write(tree: &Tree, prefix: &str, time: u64) -> Result<Vec<u8>> {
    let mut archive = Vec::new();
    add(&mut archive, &Header { path: prefix, mode: 0o755, size: 0, time, kind: b'5', link: "" })?;
    for directory in tree.directories() {
        let path = format!("{prefix}{directory}/");
        add(
            &mut archive,
            &Header { path: &path, mode: 0o755, size: 0, time, kind: b'5', link: "" },
        )?;
    }
    for (path, entry) in tree.entries() {
        let path = format!("{prefix}{path}");
        let (mode, bytes, kind, link) = match entry {
            Entry::File { bytes, mode } => (*mode, bytes.as_slice(), b'0', ""),
            Entry::Link(to) => (0o777, [].as_slice(), b'2', to.as_str()),
        };
        add(&mut archive, &Header { path: &path, mode, size: bytes.len(), time, kind, link })?;
        archive.extend(bytes);
        archive.resize(archive.len().next_multiple_of(BLOCK_BYTES), 0);
    }
    // The end is two empty blocks.
    archive.resize(archive.len() + 2 * BLOCK_BYTES, 0);
    Ok(archive)
}

/// What is said of one entry.
struct Header<'a> {
    path: &'a str,
    mode: u32,
    size: usize,
    time: u64,
    /// `0` a file, `2` a symbolic link, `5` a directory.
    kind: u8,
    link: &'a str,
}

fn add(archive: &mut Vec<u8>, header: &Header<'_>) -> Result<()> {
    for name in [header.path, header.link] {
        ensure!(name.len() <= NAME_BYTES_MAX, "a path is too long for the archive: {name}");
    }
    let mut block = [0; BLOCK_BYTES];
    let mut put =
        |at: usize, text: &str| block[at..at + text.len()].copy_from_slice(text.as_bytes());
    put(0, header.path);
    put(100, &format!("{:07o}", header.mode));
    put(108, "0000000");
    put(116, "0000000");
    put(124, &format!("{:011o}", header.size));
    put(136, &format!("{:011o}", header.time));
    // The checksum counts its own field as blanks.
    put(148, "        ");
    put(157, header.link);
    put(257, "ustar\0");
    put(263, "00");
    put(265, "root");
    put(297, "root");
    block[156] = header.kind;
    let sum: u32 = block.iter().map(|&byte| u32::from(byte)).sum();
    block[148..155].copy_from_slice(format!("{sum:06o}\0").as_bytes());
    archive.extend(block);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::process::{Command, Stdio};

    #[test]
    fn tar_reads_what_is_written() {
        let mut tree = Tree::default();
        tree.file("share/doc/b", &[7; 700]);
        tree.program("bin/a", b"run");
        tree.link("bin/c", "a");
        let archive = write(&tree, "top/", 86_400).unwrap();
        let mut tar = Command::new("tar")
            .args(["--list", "--verbose", "--utc", "--file", "-"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        tar.stdin.take().unwrap().write_all(&archive).unwrap();
        let listed = tar.wait_with_output().unwrap();
        assert!(listed.status.success());
        let listed = String::from_utf8(listed.stdout).unwrap();
        let lines: Vec<String> = listed
            .lines()
            .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
            .collect();
        assert_eq!(
            lines,
            [
                "drwxr-xr-x root/root 0 1970-01-02 00:00 top/",
                "drwxr-xr-x root/root 0 1970-01-02 00:00 top/bin/",
                "drwxr-xr-x root/root 0 1970-01-02 00:00 top/share/",
                "drwxr-xr-x root/root 0 1970-01-02 00:00 top/share/doc/",
                "-rwxr-xr-x root/root 3 1970-01-02 00:00 top/bin/a",
                "lrwxrwxrwx root/root 0 1970-01-02 00:00 top/bin/c -> a",
                "-rw-r--r-- root/root 700 1970-01-02 00:00 top/share/doc/b",
            ]
        );
    }

    #[test]
    fn a_long_path_is_refused() {
        let mut tree = Tree::default();
        tree.file("x".repeat(NAME_BYTES_MAX), b"");
        assert!(write(&tree, "top/", 0).is_err());
    }
}
