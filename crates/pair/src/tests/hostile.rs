//! A sender that lies. Whatever it sends, no file outside the target is touched, no file is made that was not requested, and the
//! receiver ends with an error or with one file less.

use super::*;
use hikyaku_transfer::{
    Attribute, Entry, EntryId, EntryKind, FileHash, FromSender, Hole, SegmentHash, SegmentIndex,
    Sources, Version,
};

/// The messages of a liar, each with the bytes that follow it.
pub(super) type Script = Vec<(FromSender, Vec<u8>)>;

/// Runs a receiver against a script. Gives its error and its failures.
pub(super) fn against(
    script: &Script,
    target: &Path,
    options: &Options,
) -> (Option<String>, Vec<String>) {
    let allowed = Allowed::of(&[b"run7".to_vec()], Depth::Tree);
    against_asking(script, target, (options, &allowed), Sources::One)
}

/// Runs a receiver that has requested these names against a script.
pub(super) fn against_asking(
    script: &Script,
    target: &Path,
    (options, allowed): (&Options, &Allowed),
    sources: Sources,
) -> (Option<String>, Vec<String>) {
    let far = Meter::default();
    let (error, ()) = pair(
        |half| {
            let connection = half.connection.clone();
            work(half, options, allowed, &far, |ends| {
                receive(ends, target, WRITING);
                connection.close(hikyaku_net::code::DONE, "");
            })
        },
        |half| {
            let begin = begin(sources);
            half.outgoing.say(&begin).unwrap();
            for (message, tail) in script {
                // It may have been sent away by now.
                let _ = half.outgoing.say_with(message, tail);
            }
            let _ = half.outgoing.say(&FromSender::End);
            block_on(half.connection.closed());
        },
    );
    (error, lines(&far))
}

pub(super) const fn begin(sources: Sources) -> FromSender {
    FromSender::Begin { sources, of: [0; 32], from: String::new() }
}

pub(super) fn entry(id: u64, path: &[u8], kind: EntryKind) -> Entry {
    let (id, path, attributes) = (EntryId(id), path.to_vec(), Vec::new());
    let version = Version([0; 32]);
    Entry { id, path, mode: 0o6777, modified: (0, 0), version, kind, owner: None, attributes }
}

pub(super) fn small(id: u64, path: &[u8]) -> (FromSender, Vec<u8>) {
    let entry = entry(id, path, EntryKind::File { size: 4 });
    let hash = FileHash(*blake3::hash(b"evil").as_bytes());
    (FromSender::Small { entry, hash }, b"evil".to_vec())
}

pub(super) fn made(id: u64, path: &[u8], kind: EntryKind) -> (FromSender, Vec<u8>) {
    (FromSender::Entry(entry(id, path, kind)), Vec::new())
}

/// A target with something beside it that must stay as it is.
pub(super) fn scene(name: &str) -> Scratch {
    let scratch = Scratch::new(name);
    fs::create_dir_all(scratch.at("target/run7")).unwrap();
    fs::create_dir_all(scratch.at("outside")).unwrap();
    fs::write(scratch.at("outside/victim"), b"as it was").unwrap();
    std::os::unix::fs::symlink(scratch.at("outside"), scratch.at("target/run7/out")).unwrap();
    scratch
}

pub(super) fn is_untouched(scratch: &Scratch) -> bool {
    let names = |path: &str| fs::read_dir(scratch.at(path)).unwrap().count();
    fs::read(scratch.at("outside/victim")).unwrap() == b"as it was"
        && names("outside") == 1
        && names("") == 2
}

fn recursive_and_links() -> Options {
    Options { rules: Rules { links: Links::Kept, ..recursive().rules }, ..recursive() }
}

// spec: copy-entry-1
#[test]
fn paths_of_a_liar_lead_nowhere() {
    let scratch = scene("liar-paths");
    let up = b"run7/../../outside/victim";
    let long = [&b"run7/"[..], &[b'x'; 300]].concat();
    let paths: [&[u8]; 14] = [
        b"../outside/victim",
        up,
        b"/etc/hikyaku-was-here",
        b"run7/out/victim",
        b"run7/out/new",
        b"run7//x",
        b"run7/./x",
        b"run7/",
        b"",
        b".",
        b"run7/a\0b",
        b"other/x",
        b".ssh/authorized_keys",
        &long,
    ];
    let kinds = [
        EntryKind::File { size: 1 << 20 },
        EntryKind::Dir,
        EntryKind::Link(b"../../outside".to_vec()),
    ];
    for path in paths {
        let mut scripts: Vec<Script> =
            kinds.iter().map(|kind| vec![made(0, path, kind.clone())]).collect();
        scripts.push(vec![small(0, path)]);
        for script in scripts {
            let (error, failures) = against(&script, &scratch.at("target"), &recursive_and_links());
            assert!(error.is_some() || !failures.is_empty(), "{script:?}");
            assert!(is_untouched(&scratch), "{script:?}: {error:?}");
        }
    }
    assert!(!Path::new("/etc/hikyaku-was-here").exists());
}

#[test]
fn a_link_that_a_liar_makes_is_not_followed_by_what_it_sends_next() {
    let scratch = scene("liar-link");
    let outside = scratch.at("outside");
    let to = std::os::unix::ffi::OsStrExt::as_bytes(outside.as_os_str()).to_vec();
    let script = vec![
        made(0, b"run7/door", EntryKind::Link(to.clone())),
        small(1, b"run7/door/victim"),
        made(2, b"run7/door/big", EntryKind::File { size: 1 << 21 }),
        made(3, b"run7/door/dir", EntryKind::Dir),
        // A file of the link's name takes its place and does not go through it.
        made(4, b"run7/door2", EntryKind::Link([&to[..], b"/victim"].concat())),
        small(5, b"run7/door2"),
    ];
    let (_, failures) = against(&script, &scratch.at("target"), &recursive_and_links());
    assert!(is_untouched(&scratch));
    assert!(failures.len() >= 3, "{failures:?}");
}

// spec: copy-order-2
#[test]
fn what_was_not_asked_for_is_refused() {
    let scratch = scene("liar-unasked");
    let flat = Options {
        rules: Rules { resume: Resume::Fresh, ..Rules::default() },
        ..Options::default()
    };
    let cases: [(Script, &Options); 4] = [
        (vec![made(0, b"run7", EntryKind::Dir)], &flat),
        (vec![small(0, b"run7/x")], &flat),
        (vec![made(0, b"run7/l", EntryKind::Link(b"x".to_vec()))], &recursive()),
        (vec![small(0, b"elsewhere")], &recursive()),
    ];
    for (script, options) in cases {
        let (error, _) = against(&script, &scratch.at("target"), options);
        assert!(error.unwrap().contains("not asked for"), "{script:?}");
        assert!(is_untouched(&scratch));
    }
}

// spec: copy-msg-2, copy-begin-1, copy-small-1, copy-hole-1
#[test]
fn lies_about_data_cost_little_and_make_no_file() {
    let scratch = scene("liar-data");
    let big = |id, size| made(id, b"run7/big", EntryKind::File { size });
    let data = |id, ranges: &[(u64, u64)]| {
        let ranges = ranges.to_vec();
        (FromSender::Data { id: EntryId(id), object: 3, ranges }, Vec::new())
    };
    let hashes = |id, first| {
        let hashes = vec![SegmentHash([0; 32]); 64];
        (FromSender::Segments { id: EntryId(id), first: SegmentIndex(first), hashes }, Vec::new())
    };
    let read = |id| (FromSender::Read { id: EntryId(id) }, Vec::new());
    let wrong_hash = {
        let (message, _) = small(0, b"run7/wrong");
        (message, b"good".to_vec())
    };
    let holes = |id, all: &[(u32, u32)]| {
        let of = |&(first, count)| Hole { first: SegmentIndex(first), count };
        let holes = all.iter().map(of).collect();
        (FromSender::Holes { id: EntryId(id), holes }, Vec::new())
    };
    let scripts: [Script; 13] = [
        vec![big(0, 1 << 21), holes(0, &[(0, 3)]), read(0)],
        vec![big(0, 1 << 21), holes(0, &[(1, 1), (0, 1)]), read(0)],
        vec![big(0, 1 << 21), holes(0, &[(0, 1)]), holes(0, &[(0, 2)]), read(0)],
        vec![big(0, 1 << 21), holes(0, &[(0, 0)]), read(0)],
        vec![big(0, u64::MAX)],
        vec![big(0, 1 << 52), data(0, &[(0, 1), (1 << 20, (1 << 20) + 1)])],
        vec![big(0, 1 << 52), hashes(0, u32::MAX - 8), read(0), big(0, 1 << 52)],
        vec![big(0, 1 << 21), data(0, &[(1 << 20, 0)])],
        vec![big(0, 1 << 21), data(0, &[(0, u64::MAX)])],
        vec![big(0, 1 << 21), big(0, 1 << 21)],
        vec![wrong_hash],
        vec![(small(0, b"run7/tail").0, b"longer".to_vec())],
        vec![(begin(Sources::Several), Vec::new())],
    ];
    for script in scripts {
        let (error, _) = against(&script, &scratch.at("target"), &recursive());
        assert!(error.is_some(), "{script:?}");
        assert!(is_untouched(&scratch));
    }
    for name in ["big", "wrong", "tail"] {
        assert!(!scratch.at("target/run7").join(name).exists(), "{name}");
    }
}

#[test]
fn a_sender_cannot_have_any_number_of_files_open() {
    let scratch = scene("liar-open");
    let begun = |n: usize| {
        let name = format!("run7/{n}").into_bytes();
        made(n as u64, &name, EntryKind::File { size: 1 << 20 })
    };
    let script: Script = (0..=WRITING.places).map(begun).collect();
    let (error, _) = against(&script, &scratch.at("target"), &recursive());
    assert!(error.is_some_and(|error| error.contains("ulimit -n")), "it waits for nobody");
}

#[test]
fn a_file_larger_than_any_is_not_made_of_holes() {
    let scratch = scene("liar-holes");
    let all = Hole { first: SegmentIndex(0), count: u32::MAX };
    let script = vec![
        made(0, b"run7/big", EntryKind::File { size: ((1 << 32) - 1) << 20 }),
        (FromSender::Holes { id: EntryId(0), holes: vec![all] }, Vec::new()),
        (FromSender::Read { id: EntryId(0) }, Vec::new()),
    ];
    let (error, failures) = against(&script, &scratch.at("target"), &recursive());
    // The file system may have room for it: then it is one that takes none.
    let made = fs::metadata(scratch.at("target/run7/big"));
    assert!(made.is_ok() || error.is_some() || !failures.is_empty());
    assert!(made.is_err() || made.unwrap().blocks() < 1000);
}

// spec: copy-entry-2
#[test]
fn attributes_that_give_rights_are_not_set() {
    let scratch = scene("liar-attributes");
    let (message, bytes) = small(0, b"run7/x");
    let FromSender::Small { mut entry, hash } = message else { panic!() };
    let attribute = |name: &[u8]| Attribute { name: name.to_vec(), value: vec![1, 0, 0, 2] };
    entry.attributes =
        vec![attribute(b"security.capability"), attribute(b"trusted.overlay.opaque")];
    let script = vec![(FromSender::Small { entry, hash }, bytes)];
    let options = Options {
        rules: Rules { attributes: Attributes::Kept, ..recursive().rules },
        ..recursive()
    };
    let (_, failures) = against(&script, &scratch.at("target"), &options);
    assert_eq!(failures.len(), 1, "one is told, the other counted: {failures:?}");
    let file = fs::File::open(scratch.at("target/run7/x")).unwrap();
    let mut names = vec![0; 1024];
    let length = rustix::fs::flistxattr(&file, names.as_mut_slice()).unwrap_or(0);
    assert_eq!(String::from_utf8_lossy(&names[..length]), "");
}

#[test]
fn modes_that_give_rights_away_are_dropped() {
    let scratch = scene("liar-mode");
    against(&vec![small(0, b"run7/x")], &scratch.at("target"), &recursive());
    let mode = fs::metadata(scratch.at("target/run7/x")).unwrap().mode();
    assert_eq!(mode & 0o7777, 0o777, "no set-user-id");
}
