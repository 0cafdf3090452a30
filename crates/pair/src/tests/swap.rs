//! Sources that another user replaces during the copy. That user may write to them, and may not read all files that the copy may.
//! With `-a` no target of a link is read, and no thread waits for ever.

use super::*;
use rustix::fs::{CWD, FileType, Mode, RenameFlags, mknodat, renameat_with};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const SECRET: &[u8] = b"for its owner alone";
const ROUNDS: usize = 25;

fn archive() -> Options {
    Options { rules: Rules { links: Links::Kept, ..recursive().rules }, ..recursive() }
}

/// Exchanges pairs of names for each other, over and over, while `work` is done.
fn while_exchanged(pairs: &[(PathBuf, PathBuf)], work: impl FnOnce()) {
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                for (a, b) in pairs {
                    renameat_with(CWD, a, CWD, b, RenameFlags::EXCHANGE).unwrap();
                }
                thread::yield_now();
            }
        });
        let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
        is_over.store(true, Ordering::Relaxed);
        done.unwrap();
    });
}

/// No file below holds the secret.
fn check(root: &Path) {
    for entry in fs::read_dir(root).unwrap() {
        let path = entry.unwrap().path();
        let meta = fs::symlink_metadata(&path).unwrap();
        if meta.is_dir() {
            check(&path);
        } else if meta.is_file() {
            let bytes = fs::read(&path).unwrap();
            let is_secret = bytes.windows(SECRET.len()).any(|part| part == SECRET);
            assert!(!is_secret, "{} is what a link led to", path.display());
        }
    }
}

#[test]
fn a_source_exchanged_for_a_link_is_never_followed() {
    let scratch = Scratch::new("swap");
    let link = std::os::unix::fs::symlink::<PathBuf, PathBuf>;
    fs::create_dir_all(scratch.at("owners/deep")).unwrap();
    let large = SECRET.repeat(300_000 / SECRET.len() + 1);
    for (name, bytes) in [("small", SECRET), ("large", &large), ("deep/small", SECRET)] {
        fs::write(scratch.at("owners").join(name), bytes).unwrap();
    }
    fs::create_dir_all(scratch.at("t/dir/deep")).unwrap();
    fs::create_dir_all(scratch.at("aside")).unwrap();
    let mut pairs = Vec::new();
    for n in 0..6 {
        for (name, len) in [("small", 100), ("large", 400_000)] {
            let (file, aside) =
                (scratch.at(&format!("t/{name}{n}")), scratch.at(&format!("aside/{name}{n}")));
            fs::write(&file, random(n, len)).unwrap();
            link(scratch.at("owners").join(name), aside.clone()).unwrap();
            pairs.push((file, aside));
        }
    }
    for name in ["small", "large", "deep/small"] {
        fs::write(scratch.at("t/dir").join(name), random(9, 1000)).unwrap();
    }
    link(scratch.at("owners"), scratch.at("aside/dir")).unwrap();
    pairs.push((scratch.at("t/dir"), scratch.at("aside/dir")));
    let files = ["dir/small", "dir/deep/small", "small0"].map(|name| name.as_bytes().to_vec());
    while_exchanged(&pairs, || {
        for round in 0..ROUNDS {
            let into = scratch.at(&format!("into{round}"));
            fs::create_dir(&into).unwrap();
            let files = if round % 3 == 2 { files.to_vec() } else { Vec::new() };
            let options = Options { files, ..archive() };
            let outcome = copy(&[scratch.at("t")], &into, &options);
            assert_eq!((&outcome.sender, &outcome.receiver), (&None, &None), "{outcome:?}");
            check(&into);
            fs::remove_dir_all(into).unwrap();
        }
    });
}

#[test]
fn a_fifo_in_the_place_of_a_file_is_not_waited_for() {
    let scratch = Scratch::new("swap-fifo");
    fs::create_dir_all(scratch.at("t")).unwrap();
    let mut pairs = Vec::new();
    for n in 0..10 {
        let (file, fifo) = (scratch.at(&format!("t/{n}")), scratch.at(&format!("fifo{n}")));
        fs::write(&file, random(n, if n % 2 == 0 { 10 } else { 300_000 })).unwrap();
        mknodat(CWD, &fifo, FileType::Fifo, Mode::RUSR, 0).unwrap();
        pairs.push((file, fifo));
    }
    // The thread that waits for a writer is released, and the test observes that.
    let begin = Instant::now();
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) && begin.elapsed() < Duration::from_secs(60) {
                thread::sleep(Duration::from_millis(50));
            }
            assert!(is_over.load(Ordering::Relaxed), "a copy waits for a FIFO");
        });
        while_exchanged(&pairs, || {
            for round in 0..ROUNDS {
                let options = if round % 2 == 0 { archive() } else { recursive() };
                let into = scratch.at(&format!("into{round}"));
                fs::create_dir(&into).unwrap();
                let outcome = copy(&[scratch.at("t")], &into, &options);
                assert_eq!((&outcome.sender, &outcome.receiver), (&None, &None), "{outcome:?}");
            }
        });
        is_over.store(true, Ordering::Relaxed);
    });
}

#[test]
fn a_tree_of_two_thousand_levels_arrives() {
    let scratch = Scratch::new("swap-deep");
    // No path of the system reaches so deep: it is made from within.
    let mut dir = hikyaku_fs::Dir::open(&scratch.0).unwrap();
    let name = |text: &str| hikyaku_fs::Name::new(text.as_bytes()).unwrap();
    let levels = (0..2000).map(|_| name("level"));
    for level in std::iter::once(name("t")).chain(levels.clone()) {
        dir = dir.make_dir(&level).unwrap();
    }
    drop(dir.create(&name("f")).unwrap());
    let path = vec!["level"; 2000].join("/");
    for options in [archive(), recursive()] {
        let _ = fs::remove_dir_all(scratch.at("into"));
        fs::create_dir(scratch.at("into")).unwrap();
        let outcome = copy(&[scratch.at("t")], &scratch.at("into"), &options);
        assert_eq!((&outcome.sender, &outcome.receiver), (&None, &None), "{outcome:?}");
        assert!(outcome.failures.is_empty(), "{outcome:?}");
        let made = hikyaku_fs::Dir::open(&scratch.at("into/t")).unwrap();
        let deep = made.dir(&hikyaku_fs::PeerPath::new(path.as_bytes()).unwrap()).unwrap();
        assert!(deep.meta(&name("f")).unwrap().is_some());
    }
}
