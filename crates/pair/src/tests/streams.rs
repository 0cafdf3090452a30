//! Sources that have no length: FIFOs, and what is read of an open descriptor.

use super::hostile::{Script, against, entry};
use super::*;
use hikyaku_transfer::{Durable, EntryId, EntryKind, FileHash, FromSender, Verify, Write};
use rustix::fs::{CWD, FileType, Mode, mknodat};
use std::io::Write as _;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;

fn fifo(path: &Path) {
    mknodat(CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
}

/// Writes into a FIFO as soon as it has a reader, in steps that are not the pieces of the protocol.
fn fill(path: PathBuf, bytes: Vec<u8>) -> thread::JoinHandle<()> {
    thread::spawn(move || {
        let mut file = fs::File::options().write(true).open(path).unwrap();
        bytes.chunks(70_001).for_each(|chunk| file.write_all(chunk).unwrap());
    })
}

fn is_fine(outcome: &Outcome) -> bool {
    outcome.sender.is_none() && outcome.receiver.is_none() && outcome.failures.is_empty()
}

#[test]
fn what_comes_through_a_fifo_arrives_whole_under_every_manner() {
    let scratch = Scratch::new("streams-fifo");
    fifo(&scratch.at("s"));
    for len in [0, 1000, 5_000_001] {
        for (write, verify, durable) in [
            (Write::Beside, Verify::Arrived, Durable::Disk),
            (Write::InPlace, Verify::Arrived, Durable::Cache),
            (Write::Beside, Verify::ReadBack, Durable::Cache),
        ] {
            let target = scratch.at("t");
            fs::write(&target, random(9, 3_000_000)).unwrap();
            let writer = fill(scratch.at("s"), random(1, len));
            let options = Options {
                rules: Rules { write, verify, durable, ..Rules::default() },
                ..Options::default()
            };
            let outcome = copy(&[scratch.at("s")], &target, &options);
            writer.join().unwrap();
            assert!(is_fine(&outcome), "{outcome:?}");
            assert_eq!((outcome.tally.files, outcome.tally.bytes), (1, len as u64));
            assert!(fs::read(&target).unwrap() == random(1, len), "{len} {options:?}");
        }
    }
    // Into a directory, and beside other files.
    fs::create_dir(scratch.at("d")).unwrap();
    fs::write(scratch.at("large"), random(2, 1_000_000)).unwrap();
    let writer = fill(scratch.at("s"), random(1, 300_000));
    let sources = [scratch.at("s"), scratch.at("large")];
    let outcome = copy(&sources, &scratch.at("d"), &Options::default());
    writer.join().unwrap();
    assert!(is_fine(&outcome), "{outcome:?}");
    assert!(fs::read(scratch.at("d/s")).unwrap() == random(1, 300_000));
    assert!(fs::read(scratch.at("d/large")).unwrap() == random(2, 1_000_000));
}

#[test]
fn a_fifo_goes_into_a_fifo() {
    let scratch = Scratch::new("streams-through");
    fifo(&scratch.at("s"));
    fifo(&scratch.at("t"));
    let writer = fill(scratch.at("s"), random(1, 2_000_000));
    let reader = thread::spawn({
        let path = scratch.at("t");
        move || fs::read(path).unwrap()
    });
    let outcome = copy(&[scratch.at("s")], &scratch.at("t"), &Options::default());
    writer.join().unwrap();
    assert!(is_fine(&outcome), "{outcome:?}");
    assert!(reader.join().unwrap() == random(1, 2_000_000));
}

#[test]
fn an_open_descriptor_is_read_as_it_comes() {
    let scratch = Scratch::new("streams-descriptor");
    let (mut ours, theirs) = UnixStream::pair().unwrap();
    let source = PathBuf::from(format!("/dev/fd/{}", theirs.as_raw_fd()));
    let writer = thread::spawn(move || ours.write_all(&random(3, 1_000_000)).unwrap());
    let outcome = copy(&[source], &scratch.at("t"), &Options::default());
    writer.join().unwrap();
    assert!(is_fine(&outcome), "{outcome:?}");
    assert!(fs::read(scratch.at("t")).unwrap() == random(3, 1_000_000));
    let outcome = copy(&[PathBuf::from("/dev/fd/999999")], &scratch.at("u"), &Options::default());
    assert_eq!(outcome.failures.len(), 1, "{outcome:?}");
    assert!(!scratch.at("u").exists());
}

/// In a tree they are met, and not named.
#[test]
fn a_fifo_in_a_tree_is_not_waited_for() {
    let scratch = Scratch::new("streams-tree");
    fs::create_dir(scratch.at("tree")).unwrap();
    fifo(&scratch.at("tree/door"));
    let outcome = copy(&[scratch.at("tree")], &scratch.at("t"), &recursive());
    assert_eq!(outcome.failures.len(), 1, "{outcome:?}");
    assert!(!scratch.at("t/door").exists());
}

// spec: copy-stream-1
#[test]
fn a_sender_that_lies_of_a_stream_leaves_nothing() {
    let id = EntryId(0);
    let made = |id| entry(id, b"run7", EntryKind::File { size: 0 });
    let stream = |id| (FromSender::Stream(made(id)), Vec::new());
    let hash = |bytes: &[u8]| FileHash(*blake3::hash(bytes).as_bytes());
    let piece = |of: &[u8], length: u32, tail: &[u8]| {
        (FromSender::Piece { id, length, hash: hash(of) }, tail.to_vec())
    };
    let last = |size, of: &[u8]| (FromSender::Last { id, size, hash: hash(of) }, Vec::new());
    let good = || piece(b"evil", 4, b"evil");
    let long = vec![0; SMALL as usize + 1];
    let scripts: Vec<(Script, &str)> = vec![
        (vec![stream(0), piece(b"good", 4, b"evil"), last(4, b"evil")], "not the bytes"),
        (vec![stream(0), good(), last(4, b"good")], "not all of the bytes"),
        (vec![stream(0), good(), last(5, b"evil")], "not all of the bytes"),
        (vec![stream(0), good()], "ends before its stream"),
        (vec![stream(0), stream(1)], "out of place"),
        (vec![stream(0), piece(b"", 0, b"")], "that is none"),
        (vec![stream(0), piece(&long, long.len() as u32, &long)], "that is none"),
        (vec![stream(0), piece(b"evil", 9, b"evil")], "did not speak of"),
    ];
    for (script, words) in scripts {
        let scratch = Scratch::new("streams-liar");
        fs::create_dir(scratch.at("target")).unwrap();
        let (error, _) = against(&script, &scratch.at("target"), &Options::default());
        let error = error.unwrap_or_default();
        assert!(error.contains(words), "{words}: {error}");
        assert_eq!(listing(&scratch.at("target")), [], "{words}");
    }
}
