//! Each kind of target is known, and what is no regular file is never replaced.

use super::*;
use crate::whole::write_whole;
use crate::{Draft, Kind, Replace, Token, Zeros};
use rustix::fs::{CWD, Mode, makedev, mknodat};
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::{FileTypeExt, symlink};
use std::os::unix::net::UnixListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let path =
            std::env::temp_dir().join(format!("hikyaku-target-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    fn fifo(&self, name: &str) -> PathBuf {
        let path = self.at(name);
        mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        path
    }

    /// A device that takes and gives nothing, with a name of its own; `None` without the right to make one.
    fn null(&self, name: &str) -> Option<PathBuf> {
        let path = self.at(name);
        let mode = Mode::RUSR | Mode::WUSR;
        mknodat(CWD, &path, FileType::CharacterDevice, mode, makedev(1, 3)).ok()?;
        // A file system that is mounted with nodev has devices that cannot be opened.
        File::options().write(true).open(&path).ok().map(|_| path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The name of the kind and of the spot.
fn kind(path: &Path) -> String {
    match Target::of(path) {
        Ok(Target::Dir) => "directory".to_owned(),
        Ok(Target::Name(spot)) => {
            let slash = if spot.must_be_dir { "/" } else { "" };
            format!("name {}{slash}", spot.name.shown())
        }
        Ok(Target::Stream(Device::Descriptor(number))) => format!("descriptor {number}"),
        Ok(Target::Stream(Device::Fifo(..))) => "fifo".to_owned(),
        Ok(Target::Stream(Device::Device(..))) => "device".to_owned(),
        Err(error) => error.reason(),
    }
}

#[test]
fn each_kind_of_target_is_told() {
    let scratch = Scratch::new("kinds");
    fs::create_dir(scratch.at("dir")).unwrap();
    fs::write(scratch.at("file"), "old").unwrap();
    scratch.fifo("fifo");
    let _socket = UnixListener::bind(scratch.at("socket")).unwrap();
    for (link, to) in [
        ("dir/to-file", "../file"),
        ("to-dir", "dir"),
        ("to-fifo", "fifo"),
        ("to-socket", "socket"),
        ("nowhere", "absent"),
        ("to-link", "dir/to-file"),
    ] {
        symlink(to, scratch.at(link)).unwrap();
    }
    let special = "not a regular file; it is left unchanged";
    for (name, wanted) in [
        ("absent", "name absent"),
        ("absent/", "name absent/"),
        ("file", "name file"),
        ("file/", "not a directory"),
        ("dir", "directory"),
        ("dir/", "directory"),
        ("fifo", "fifo"),
        ("socket", special),
        ("dir/to-file", "name file"),
        ("to-link", "name file"),
        ("to-dir", "directory"),
        ("to-fifo", "fifo"),
        ("to-socket", special),
        ("nowhere", "name nowhere"),
        ("absent/deep", "no such file or directory"),
        ("file/deep", "not a directory"),
    ] {
        assert_eq!(kind(&scratch.at(name)), wanted, "{name}");
    }
    if scratch.null("null").is_some() {
        assert_eq!(kind(&scratch.at("null")), "device");
    }
    assert_eq!(kind(Path::new("/dev/stdout")), "descriptor 1");
    assert_eq!(kind(Path::new("/dev/null")), "device");
}

#[test]
fn a_draft_never_replaces_what_is_no_regular_file() {
    let scratch = Scratch::new("draft");
    let dir = || Arc::new(Dir::open(&scratch.0).unwrap());
    let socket = UnixListener::bind(scratch.at("socket")).unwrap();
    scratch.fifo("fifo");
    let null = scratch.null("null");
    let names = ["fifo", "socket"].into_iter().chain(null.is_some().then_some("null"));
    for name in names {
        let (token, of) = (Token::random().unwrap(), Name::new(name.as_bytes()).unwrap());
        let refused = Draft::create(dir(), &of, &token).unwrap_err();
        assert!(matches!(refused, FsError::Special { .. }), "{name}: {refused}");
        // It gets the name while the draft is written.
        let draft = Draft::create(dir(), &Name::new(b"other").unwrap(), &token).unwrap();
        draft.write_at(0, b"bytes", Zeros::Written).unwrap();
        fs::rename(scratch.at(name), scratch.at("other")).unwrap();
        let refused = draft.name(Replace::Allowed).unwrap_err();
        assert!(matches!(refused, FsError::Special { .. }), "{name}: {refused}");
        assert!(!fs::symlink_metadata(scratch.at("other")).unwrap().is_file(), "{name}");
        fs::rename(scratch.at("other"), scratch.at(name)).unwrap();
        let linked = dir().put_link(&of, b"elsewhere", &token);
        assert!(matches!(linked, Err(FsError::Special { .. })), "{name}: {linked:?}");
    }
    let unfinished = fs::read_dir(&scratch.0).unwrap().flatten();
    let unfinished = unfinished.filter(|entry| entry.file_name().as_encoded_bytes()[0] == b'.');
    assert_eq!(unfinished.count(), 0);
    drop(socket);
}

#[test]
fn a_whole_file_replaces_a_file_and_is_written_into_a_fifo() {
    let scratch = Scratch::new("whole");
    fs::write(scratch.at("file"), "old").unwrap();
    symlink("file", scratch.at("link")).unwrap();
    write_whole(&scratch.at("link"), b"new").unwrap();
    assert_eq!(fs::read(scratch.at("file")).unwrap(), b"new");
    assert!(fs::symlink_metadata(scratch.at("link")).unwrap().is_symlink());
    write_whole(&scratch.at("absent"), b"made").unwrap();
    assert_eq!(fs::read(scratch.at("absent")).unwrap(), b"made");
    assert!(write_whole(&scratch.0, b"x").is_err());
    assert!(write_whole(&scratch.at("gone/"), b"x").is_err());
    let fifo = scratch.fifo("fifo");
    let reader = thread::spawn({
        let fifo = fifo.clone();
        move || fs::read(fifo).unwrap()
    });
    // More than a FIFO holds.
    let bytes = vec![7; 300_000];
    write_whole(&fifo, &bytes).unwrap();
    assert!(reader.join().unwrap() == bytes);
    assert!(fs::metadata(&fifo).unwrap().file_type().is_fifo());
}

#[test]
fn a_writer_waits_for_a_reader_no_longer_than_its_patience() {
    let scratch = Scratch::new("patience");
    let fifo = scratch.fifo("fifo");
    let Ok(Target::Stream(device)) = Target::of(&fifo) else { panic!("it is a FIFO") };
    let looks = Arc::new(AtomicUsize::new(0));
    let counted = looks.clone();
    let patience = Patience::new(move || counted.fetch_add(1, Ordering::Relaxed) < 3);
    let error = device.open(patience.clone()).unwrap_err();
    assert_eq!(error.errno(), Some(Errno::CANCELED), "{error}");
    // The reader is there, and reads nothing: the FIFO fills.
    looks.store(0, Ordering::Relaxed);
    let mut reader = File::options().read(true).write(true).open(&fifo).unwrap();
    let stream = device.open(patience).unwrap();
    let spot = Spot::of(&fifo).unwrap();
    let draft = Draft::stream(stream, Arc::new(spot.dir), spot.name);
    draft.write_at(0, b"begin", Zeros::Written).unwrap();
    assert_eq!(
        draft.write_at(9, b"gap", Zeros::Written).unwrap_err().errno(),
        Some(Errno::SPIPE),
        "what is behind a gap is not written"
    );
    let error = draft.write_at(5, &vec![1; 4 << 20], Zeros::Written).unwrap_err();
    assert_eq!(error.errno(), Some(Errno::CANCELED), "{error}");
    let mut begin = [0; 5];
    reader.read_exact(&mut begin).unwrap();
    assert_eq!(&begin, b"begin");
}

#[test]
fn an_unfinished_file_of_another_user_is_not_taken_up() {
    let scratch = Scratch::new("planted");
    let dir = || Arc::new(Dir::open(&scratch.0).unwrap());
    let (name, token) = (Name::new(b"a").unwrap(), Token::random().unwrap());
    let draft = Draft::create(dir(), &name, &token).unwrap();
    draft.keep();
    let partial = draft.partial().clone();
    drop(draft);
    let path = scratch.at(std::str::from_utf8(partial.as_bytes()).unwrap());
    let taken = || Draft::take_up(dir(), partial.clone(), &name).map(|draft| draft.keep());
    taken().unwrap();
    fs::hard_link(&path, scratch.at("again")).unwrap();
    assert!(matches!(taken(), Err(FsError::NotOurs { .. })), "it has a second name");
    fs::remove_file(scratch.at("again")).unwrap();
    rustix::fs::chmod(&path, Mode::from_raw_mode(0o666)).unwrap();
    assert!(matches!(taken(), Err(FsError::NotOurs { .. })), "others may write to it");
    rustix::fs::chmod(&path, Mode::from_raw_mode(0o600)).unwrap();
    if std::os::unix::fs::chown(&path, Some(47_123), None).is_ok() {
        assert!(matches!(taken(), Err(FsError::NotOurs { .. })), "it is another user's");
    } else {
        eprintln!("SKIPPED: only root can give a file to another user");
    }
    let made = dir().meta(&name).unwrap();
    assert!(made.is_none_or(|made| made.kind == Kind::File));
    assert_eq!(fs::read_dir(&scratch.0).unwrap().count(), 1, "the measure is removed");
}
