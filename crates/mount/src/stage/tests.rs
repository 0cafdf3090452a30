//! The journal on the disk, and when its segments go.

use super::log::read;
use super::*;
use hikyaku_store::Identity;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A directory that is removed at the end.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let dir = std::env::temp_dir().join(format!("hikyaku-stage-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&dir);
        Self(dir)
    }

    fn stage(&self) -> Arc<Stage> {
        Stage::open(&self.0, "hikyaku://host:1/a b").unwrap()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn path(path: &str) -> StorePath {
    StorePath::new(path.as_bytes()).unwrap()
}

fn target(file: u64, path: &str) -> Target {
    let identity = Identity { device: 1, number: file };
    Target { file, path: path.as_bytes().to_vec(), identity, base: None, size: 7 }
}

#[test]
fn what_is_written_is_read_back_and_a_torn_record_ends_the_segment() {
    let scratch = Scratch::new("log");
    let stage = scratch.stage();
    let wanted: Vec<Vec<u8>> = (0..5u8).map(|n| vec![n; 1000 * usize::from(n)]).collect();
    let places: Vec<Place> = (0..)
        .zip(&wanted)
        .map(|(n, bytes)| stage.append(&target(n % 2, "a"), n, bytes).unwrap())
        .collect();
    for (place, bytes) in places.iter().zip(&wanted) {
        assert!(stage.read(*place).unwrap() == *bytes);
    }
    let file = stage.dir.join("1");
    let whole = fs::read(&file).unwrap();
    let records = |content: &[u8]| {
        fs::write(&file, content).unwrap();
        read(&File::open(&file).unwrap()).unwrap()
    };
    let all = records(&whole);
    let heads: Vec<Record> = all.iter().map(|logged| logged.record.clone()).collect();
    let write = |at: u64| Record::Write { file: at % 2, at };
    let first = [Record::File(target(0, "a")), write(0), Record::File(target(1, "a")), write(1)];
    assert_eq!(heads, [&first[..], &[write(2), write(3), write(4)]].concat());
    assert_eq!(records(&whole[..whole.len() - 1]), all[..6]);
    let mut damaged = whole.clone();
    damaged[all[3].from as usize + 5] ^= 1;
    assert_eq!(records(&damaged), all[..3]);
    assert_eq!(records(b"something"), []);
}

#[test]
fn a_segment_goes_when_all_of_it_is_confirmed_and_synced() {
    let scratch = Scratch::new("release");
    let stage = scratch.stage();
    let released = Arc::new(AtomicUsize::new(0));
    let wait = |of: &str| {
        let released = released.clone();
        stage.after(vec![path(of)], move |done| {
            assert!(done.is_ok());
            released.fetch_add(1, Ordering::Relaxed);
        });
    };
    let first = stage.append(&target(1, "dir/a"), 0, b"one").unwrap();
    let second = stage.append(&target(2, "b"), 0, b"two").unwrap();
    wait("other");
    assert_eq!(released.load(Ordering::Relaxed), 1, "nothing of it is in the journal");
    // A wait for a directory is a wait for all paths below it. The segment takes no more writes then.
    wait("dir");
    let third = stage.append(&target(1, "dir/a"), 3, b"three").unwrap();
    assert_eq!((first.segment, third.segment), (1, 2));
    let confirmed = |id: u64, place| Confirmed { id, node: 1, at: 0, place };
    stage.confirmed(confirmed(1, first));
    stage.confirmed(confirmed(3, third));
    assert_eq!(stage.ready(), None, "a write of the oldest segment is not confirmed");
    stage.confirmed(confirmed(2, second));
    let (number, mut paths) = stage.ready().unwrap();
    paths.sort();
    assert_eq!((number, paths), (1, vec![path("b"), path("dir/a")]));
    assert_eq!(stage.ready(), None, "the files are being synced");
    stage.not_released(1);
    assert_eq!(stage.ready().map(|(number, _)| number), Some(1));
    let (writes, calls) = stage.released(1);
    assert_eq!(writes, [confirmed(1, first), confirmed(2, second)]);
    assert!(calls.is_empty(), "the next segment writes to the same file");
    assert!(stage.has(&path("dir/a")) && !stage.has(&path("b")));
    stage.seal();
    assert_eq!(stage.ready().map(|(number, _)| number), Some(2));
    // While the files are synced the connection is lost, and the server with it perhaps.
    assert_eq!(stage.doubt(), [confirmed(3, third)]);
    let (writes, calls) = stage.released(2);
    assert!(writes.is_empty() && calls.is_empty() && stage.has(&path("dir/a")));
    assert_eq!(stage.ready(), None, "it is to be sent once more");
    stage.confirmed(confirmed(3, third));
    assert_eq!(stage.ready().map(|(number, _)| number), Some(2));
    stage.released(2).1.into_iter().for_each(|call| call());
    assert_eq!(released.load(Ordering::Relaxed), 2);
    assert!(stage.is_empty() && numbers(&stage.dir).unwrap().is_empty());
}

#[test]
fn a_journal_has_one_mount() {
    let scratch = Scratch::new("lock");
    let stage = scratch.stage();
    let again = Stage::open(&scratch.0, "hikyaku://host:1/a b").map(drop).unwrap_err();
    assert_eq!(again.kind(), io::ErrorKind::WouldBlock);
    assert!(Stage::open(&scratch.0, "hikyaku://host:1/a_b").is_ok(), "another source");
    drop(stage);
}

#[test]
fn bytes_that_are_kept_aside_lie_where_they_would_have_been() {
    let scratch = Scratch::new("aside");
    let stage = scratch.stage();
    stage.append(&target(1, "dir/a"), 2, b"one").unwrap();
    stage.append(&target(2, "b"), 0, b"two").unwrap();
    stage.append(&target(1, "dir/a"), 7, b"three").unwrap();
    stage.keep_aside(1, &path("dir/a"), "a reason").unwrap();
    let aside = stage.aside();
    let names: Vec<_> =
        fs::read_dir(aside.dir()).unwrap().map(|name| name.unwrap().path()).collect();
    assert_eq!((aside.count(), names.len()), (1, 2));
    let list = fs::read_to_string(aside.dir().join("list.txt")).unwrap();
    assert!(list.contains("\tdir/a\ta reason\n"), "{list}");
    let kept = aside.dir().join(list.split('\t').next().unwrap());
    assert_eq!(fs::read(kept).unwrap(), b"\0\0one\0\0three");
}

#[test]
fn a_journal_that_another_user_may_have_made_is_refused() {
    let scratch = Scratch::new("trust");
    let dir = scratch.0.join("s");
    fs::create_dir_all(&dir).unwrap();
    let is_believed = || believed(&scratch.0, &dir).is_ok();
    let mode =
        |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    for (above, below, expected) in [
        (0o755, 0o700, true),
        (0o755, 0o755, true),
        (0o755, 0o777, false),
        (0o755, 0o775, false),
        (0o777, 0o700, false),
        (0o1777, 0o700, true),
    ] {
        mode(&scratch.0, above);
        mode(&dir, below);
        assert_eq!(is_believed(), expected, "{above:o} {below:o}");
    }
    let real = scratch.0.join("real");
    fs::rename(&dir, &real).unwrap();
    std::os::unix::fs::symlink("real", &dir).unwrap();
    assert!(!is_believed());
    fs::remove_file(&dir).unwrap();
    fs::rename(&real, &dir).unwrap();
    if std::os::unix::fs::chown(&dir, Some(47123), None).is_ok() {
        assert!(!is_believed());
        let refused = Stage::open(&scratch.0, "s").map(drop).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::Other);
    }
}
