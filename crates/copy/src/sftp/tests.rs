//! Tests with a server that lies.

use super::*;
use hikyaku_job::Tally;
use hikyaku_transfer::{Depth, Rules};
use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixStream;
use std::thread;

/// What the server has.
#[derive(Clone, Copy)]
struct Lie {
    /// Entries of each directory, and whether they are directories.
    entries: &'static [(&'static str, bool)],
    /// The size that it tells of each file.
    size: u64,
    contents: Contents,
}

/// What a file of the server has.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Contents {
    /// [`CONTENTS`].
    Lie,
    /// As many bytes as are asked for, wherever that is.
    Endless,
}

const CONTENTS: &[u8] = b"lie";

fn string(bytes: &[u8]) -> Vec<u8> {
    [&(bytes.len() as u32).to_be_bytes(), bytes].concat()
}

fn attributes(is_dir: bool, size: u64) -> Vec<u8> {
    let mode: u32 = if is_dir { 0o040_755 } else { 0o100_644 };
    [&5_u32.to_be_bytes()[..], &size.to_be_bytes(), &mode.to_be_bytes()].concat()
}

/// Serves until the pipe ends. The handle of a file is its path; that of a directory has been read if `listed` says so.
fn serve(mut pipe: UnixStream, lie: Lie) {
    let mut greeting = [0; 9];
    pipe.read_exact(&mut greeting).unwrap();
    pipe.write_all(&[0, 0, 0, 5, 2, 0, 0, 0, 3]).unwrap();
    let mut listed = Vec::new();
    loop {
        let mut length = [0; 4];
        if pipe.read_exact(&mut length).is_err() {
            return;
        }
        let mut request = vec![0; u32::from_be_bytes(length) as usize];
        pipe.read_exact(&mut request).unwrap();
        let (kind, id, rest) = (request[0], &request[1..5], &request[5..]);
        let size = u32::from_be_bytes(rest[..4].try_into().unwrap()) as usize;
        let name = rest[4..4 + size].to_vec();
        let status = |code: u8| (101, [&[0, 0, 0, code][..], &string(b""), &string(b"")].concat());
        let (answer, body) = match kind {
            3 => (102, string(&name)),
            5 => {
                let offset = u64::from_be_bytes(rest[4 + size..12 + size].try_into().unwrap());
                let length = u32::from_be_bytes(rest[12 + size..16 + size].try_into().unwrap());
                let left = CONTENTS.get(offset as usize..).unwrap_or_default();
                let endless = vec![b'x'; length as usize];
                let data = match lie.contents {
                    Contents::Lie => &left[..left.len().min(length as usize)],
                    Contents::Endless => &endless,
                };
                if data.is_empty() { status(1) } else { (103, string(data)) }
            }
            7 | 8 | 17 => (105, attributes(name.ends_with(b"top"), lie.size)),
            11 => {
                listed.retain(|known| *known != name);
                (102, string(&name))
            }
            12 if listed.contains(&name) => status(1),
            12 => {
                listed.push(name);
                let mut all = (lie.entries.len() as u32).to_be_bytes().to_vec();
                for (name, is_dir) in lie.entries {
                    all.extend(string(name.as_bytes()));
                    all.extend(string(b"long"));
                    all.extend(attributes(*is_dir, lie.size));
                }
                (104, all)
            }
            16 => {
                let name = [b"/", &name[..]].concat();
                let one = [&1_u32.to_be_bytes()[..], &string(&name), &string(b"")].concat();
                (104, [&one[..], &0_u32.to_be_bytes()].concat())
            }
            _ => status(0),
        };
        let message = [&[answer], id, &body].concat();
        // What was asked for last may not be waited for.
        if pipe.write_all(&string(&message)).is_err() {
            return;
        }
    }
}

/// Copies `top` from the server into a directory that `prepare` has seen. Gives that directory and what was counted.
fn copied(name: &str, lie: Lie, prepare: impl FnOnce(&Path)) -> (PathBuf, Tally, usize) {
    let dir = std::env::temp_dir().join(format!("hikyaku-sftp-lies-{name}-{}", std::process::id()));
    let _ = fs::remove_dir_all(&dir);
    fs::create_dir_all(dir.join("target")).unwrap();
    prepare(&dir);
    let (near, far) = UnixStream::pair().unwrap();
    let server = thread::spawn(move || serve(far, lie));
    let client = Client::start(near.try_clone().unwrap(), near.try_clone().unwrap()).unwrap();
    let session = Server::of(OpenSftp { client: &client, commands: Commands::Refused });
    let options =
        Options { rules: Rules { depth: Depth::Tree, ..Rules::default() }, ..Options::default() };
    let (meter, scope) = (Arc::<Meter>::default(), Scope::default());
    let run = Run {
        server: &session,
        options: &options,
        meter: &meter,
        host: "liar",
        ssh: None,
        scope: &scope,
    };
    run.get(&[b"top".to_vec()], &dir.join("target")).unwrap();
    near.shutdown(std::net::Shutdown::Both).unwrap();
    server.join().unwrap();
    (dir, meter.tally(), meter.take_failures().len())
}

/// All paths below a directory, links as they are.
fn paths(dir: &Path) -> Vec<String> {
    let mut all = Vec::new();
    let mut open = vec![dir.to_path_buf()];
    while let Some(at) = open.pop() {
        for entry in fs::read_dir(at).unwrap() {
            let path = entry.unwrap().path();
            all.push(path.strip_prefix(dir).unwrap().display().to_string());
            if path.is_dir() && !path.is_symlink() {
                open.push(path);
            }
        }
    }
    all.sort();
    all
}

#[test]
fn names_that_lead_elsewhere_are_not_used() {
    let entries = &[
        ("..", true),
        (".", true),
        ("../up", false),
        ("/tmp/hikyaku-absolute", false),
        ("a/b", false),
        ("", false),
        (".good.aaaaaaaabbbbb.hikyaku", false),
        ("good", false),
    ];
    let (dir, tally, _) =
        copied("names", Lie { entries, size: 3, contents: Contents::Lie }, |_| {});
    assert_eq!(paths(&dir), ["target", "target/top", "target/top/good"]);
    assert_eq!(fs::read(dir.join("target/top/good")).unwrap(), CONTENTS);
    assert_eq!((tally.files, tally.bytes), (1, 3));
    fs::remove_dir_all(&dir).unwrap();
}

#[test]
fn nothing_is_written_through_a_link() {
    let lie = Lie { entries: &[("good", false)], size: 3, contents: Contents::Lie };
    let (dir, tally, failures) = copied("link", lie, |dir| {
        fs::create_dir(dir.join("outside")).unwrap();
        symlink(dir.join("outside"), dir.join("target/top")).unwrap();
    });
    assert_eq!(paths(&dir), ["outside", "target", "target/top"]);
    assert_eq!(tally.files, 0);
    assert!(failures > 0);
    fs::remove_dir_all(&dir).unwrap();
}

#[test]
fn a_file_of_another_size_than_was_told_gets_no_name() {
    for size in [2, 4, 1 << 20] {
        let lie = Lie { entries: &[("good", false)], size, contents: Contents::Lie };
        let (dir, tally, failures) = copied("size", lie, |_| {});
        assert_eq!(paths(&dir), ["target", "target/top"], "{size}");
        assert_eq!((tally.files, failures), (0, 1), "{size}");
        fs::remove_dir_all(&dir).unwrap();
    }
}

#[test]
fn a_small_file_that_is_told_to_be_empty_is_copied_as_those_of_proc_are() {
    let lie = Lie { entries: &[("good", false)], size: 0, contents: Contents::Lie };
    let (dir, tally, failures) = copied("proc", lie, |_| {});
    assert_eq!(fs::read(dir.join("target/top/good")).unwrap(), CONTENTS);
    assert_eq!((tally.files, failures), (1, 0));
    fs::remove_dir_all(&dir).unwrap();
}

#[test]
fn a_file_without_end_gets_no_name() {
    // A file that goes together with others, and one that the server reports to be empty.
    for (size, bytes_max) in [(5, 5), (0, 1 << 20)] {
        let lie = Lie { entries: &[("good", false)], size, contents: Contents::Endless };
        let (dir, tally, failures) = copied("endless", lie, |_| {});
        assert_eq!(paths(&dir), ["target", "target/top"], "{size}");
        assert_eq!((tally.files, failures), (0, 1), "{size}");
        assert!(tally.bytes <= bytes_max, "{size}: {}", tally.bytes);
        fs::remove_dir_all(&dir).unwrap();
    }
}

/// The server reports this size before and after. No client can know that it has more bytes.
#[test]
fn a_large_file_without_end_has_the_size_that_the_server_reports() {
    let lie = Lie { entries: &[("good", false)], size: 1 << 20, contents: Contents::Endless };
    let (dir, tally, failures) = copied("large", lie, |_| {});
    assert_eq!(fs::metadata(dir.join("target/top/good")).unwrap().len(), 1 << 20);
    assert_eq!((tally.files, tally.bytes, failures), (1, 1 << 20, 0));
    fs::remove_dir_all(&dir).unwrap();
}
