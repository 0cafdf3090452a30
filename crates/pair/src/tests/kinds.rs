//! Files that are more than bytes, and targets that are other than new files.

use super::*;
use hikyaku_transfer::{Attributes, Durable, Links, Owners, Preserve, Verify, Write};
use std::os::unix::fs::FileExt;

/// Bytes of disk that a file takes.
fn room(path: &Path) -> u64 {
    fs::metadata(path).unwrap().blocks() * 512
}

fn is_fine(outcome: &Outcome) -> bool {
    outcome.sender.is_none() && outcome.receiver.is_none() && outcome.failures.is_empty()
}

#[test]
fn holes_stay_holes_and_are_not_sent() {
    let scratch = Scratch::new("sparse");
    let file = fs::File::create(scratch.at("a")).unwrap();
    file.write_all_at(&random(1, 300_000), 100 << 20).unwrap();
    file.write_all_at(b"x", (3 << 20) + 70_000).unwrap();
    file.set_len(1 << 30).unwrap();
    let outcome = copy(&[scratch.at("a")], &scratch.at("b"), &Options::default());
    assert!(is_fine(&outcome), "{outcome:?}");
    assert!(outcome.tally.sent() < 8 << 20, "{outcome:?}");
    assert_eq!(outcome.tally.total_bytes, outcome.tally.bytes, "{outcome:?}");
    assert!(fs::read(scratch.at("a")).unwrap() == fs::read(scratch.at("b")).unwrap());
    assert!(room(&scratch.at("b")) < 1 << 20, "{} bytes", room(&scratch.at("b")));
    // In place of something that has no holes, and shorter than it.
    fs::write(scratch.at("c"), random(2, 5 << 20)).unwrap();
    file.set_len(4 << 20).unwrap();
    let options = Options {
        rules: Rules { write: Write::InPlace, verify: Verify::ReadBack, ..Rules::default() },
        ..Options::default()
    };
    let outcome = copy(&[scratch.at("a")], &scratch.at("c"), &options);
    assert!(is_fine(&outcome), "{outcome:?}");
    assert!(fs::read(scratch.at("a")).unwrap() == fs::read(scratch.at("c")).unwrap());
}

#[test]
fn in_place_the_old_file_is_written_over() {
    let scratch = Scratch::new("in-place");
    for (name, len) in [("small", 1000), ("large", 3_000_000)] {
        let (new, old, link) = (scratch.at(name), scratch.at("old"), scratch.at("link"));
        fs::write(&new, random(1, len)).unwrap();
        fs::write(&old, random(2, 4_000_000)).unwrap();
        fs::set_permissions(&old, fs::Permissions::from_mode(0o604)).unwrap();
        fs::hard_link(&old, &link).unwrap();
        let options = Options {
            rules: Rules { write: Write::InPlace, ..Rules::default() },
            ..Options::default()
        };
        let outcome = copy(std::slice::from_ref(&new), &old, &options);
        assert!(is_fine(&outcome), "{outcome:?}");
        assert!(fs::read(&new).unwrap() == fs::read(&link).unwrap(), "{name}");
        assert_eq!(fs::metadata(&link).unwrap().mode() & 0o777, 0o604);
        fs::remove_file(link).unwrap();
    }
}

#[test]
fn a_target_that_is_no_plain_file_is_written_and_stays_what_it_is() {
    let scratch = Scratch::new("stream");
    for len in [0, 1000, 5_000_001] {
        fs::write(scratch.at("a"), random(3, len)).unwrap();
        let outcome = copy(&[scratch.at("a")], Path::new("/dev/null"), &Options::default());
        assert!(is_fine(&outcome), "{outcome:?}");
        let fifo = scratch.at("fifo");
        let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
        rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, mode, 0).unwrap();
        let reader = thread::spawn({
            let fifo = fifo.clone();
            move || fs::read(fifo).unwrap()
        });
        let options = Options {
            rules: Rules { durable: Durable::Disk, verify: Verify::ReadBack, ..Rules::default() },
            ..Options::default()
        };
        let outcome = copy(&[scratch.at("a")], &fifo, &options);
        assert!(is_fine(&outcome), "{outcome:?}");
        assert!(reader.join().unwrap() == random(3, len), "{len}");
        assert!(!fs::metadata(&fifo).unwrap().is_file());
        fs::remove_file(fifo).unwrap();
    }
    assert!(!fs::metadata("/dev/null").unwrap().is_file());
    // Only a target that its user named: what a tree meets is left alone.
    let tree = scratch.at("tree");
    fs::create_dir_all(&tree).unwrap();
    fs::write(tree.join("door"), b"x").unwrap();
    fs::create_dir_all(scratch.at("into/tree")).unwrap();
    let door = scratch.at("into/tree/door");
    let (fifo, mode) = (rustix::fs::FileType::Fifo, rustix::fs::Mode::RUSR);
    rustix::fs::mknodat(rustix::fs::CWD, &door, fifo, mode, 0).unwrap();
    let outcome = copy(&[tree], &scratch.at("into"), &recursive());
    assert_eq!(outcome.failures.len(), 1, "{outcome:?}");
}

#[test]
fn attributes_are_kept_where_they_are_asked_for() {
    let scratch = Scratch::new("attributes");
    let tree = scratch.at("t");
    fs::create_dir(&tree).unwrap();
    for (name, len) in [("small", 10), ("large", 1_000_000)] {
        fs::write(tree.join(name), random(1, len)).unwrap();
    }
    let names = ["small", "large", ""];
    for name in names {
        let file = fs::File::open(tree.join(name)).unwrap();
        if hikyaku_fs::set_attribute(&file, b"user.origin", name.as_bytes()).is_err() {
            // This file system has none.
            return;
        }
    }
    let of = |path: PathBuf| hikyaku_fs::attributes(fs::File::open(path).unwrap()).unwrap();
    for attributes in [Attributes::Dropped, Attributes::Kept] {
        let keep = attributes == Attributes::Kept;
        let into = scratch.at(if keep { "with" } else { "without" });
        fs::create_dir(&into).unwrap();
        let options = Options { rules: Rules { attributes, ..recursive().rules }, ..recursive() };
        let outcome = copy(std::slice::from_ref(&tree), &into, &options);
        assert!(is_fine(&outcome), "{outcome:?}");
        for name in names {
            let kept = vec![(b"user.origin".to_vec(), name.as_bytes().to_vec())];
            let wanted = if keep { kept } else { Vec::new() };
            assert_eq!(of(into.join("t").join(name)), wanted, "{name}");
        }
    }
}

#[test]
fn owners_and_times_of_links_are_kept_where_they_are_asked_for() {
    let scratch = Scratch::new("owners");
    let tree = scratch.at("t");
    fs::create_dir_all(tree.join("d")).unwrap();
    for (name, len) in [("small", 10), ("large", 1_000_000)] {
        fs::write(tree.join(name), random(1, len)).unwrap();
    }
    std::os::unix::fs::symlink("nowhere", tree.join("link")).unwrap();
    let names = ["small", "large", "d", "link", ""];
    let may = rustix::process::geteuid().is_root();
    let dir = hikyaku_fs::Dir::open(&tree).unwrap();
    let link = hikyaku_fs::Name::new(b"link").unwrap();
    hikyaku_fs::Meta::set_link_modified(&dir, &link, (1_000_000, 77)).unwrap();
    for name in names.iter().filter(|_| may) {
        std::os::unix::fs::lchown(tree.join(name), Some(1234), Some(4321)).unwrap();
    }
    let kept = [(Owners::New, Preserve::Nothing), (Owners::Kept, Preserve::Times)];
    for (owners, preserve) in kept {
        let keep = owners == Owners::Kept;
        let into = scratch.at(if keep { "with" } else { "without" });
        fs::create_dir(&into).unwrap();
        let options = Options {
            rules: Rules { owners, preserve, links: Links::Kept, ..recursive().rules },
            ..recursive()
        };
        let outcome = copy(std::slice::from_ref(&tree), &into, &options);
        assert!(is_fine(&outcome), "{outcome:?}");
        for name in names {
            let meta = fs::symlink_metadata(into.join("t").join(name)).unwrap();
            let is_given = (meta.uid(), meta.gid()) == (1234, 4321);
            assert_eq!(is_given, keep && may, "{name:?} {keep}");
        }
        let meta = fs::symlink_metadata(into.join("t/link")).unwrap();
        assert_eq!((meta.mtime(), meta.mtime_nsec()) == (1_000_000, 77), keep);
    }
}

#[test]
fn times_are_kept_alone_of_names_that_are_new_and_of_those_that_were_there() {
    let scratch = Scratch::new("times-alone");
    let (tree, into) = (scratch.at("t"), scratch.at("into"));
    let names = ["small", "large", "d", "d/inner", ""];
    for root in [&tree, &into.join("t")] {
        fs::create_dir_all(root.join("d")).unwrap();
    }
    for (name, len) in [("small", 10), ("large", 1_000_000), ("d/inner", 1)] {
        fs::write(tree.join(name), random(1, len)).unwrap();
    }
    fs::write(into.join("t/small"), b"before").unwrap();
    let mode = |path: PathBuf, mode| {
        fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(mode)).unwrap();
    };
    mode(tree.join("small"), 0o600);
    mode(tree.join("d"), 0o711);
    mode(into.join("t/small"), 0o640);
    mode(into.join("t/d"), 0o750);
    for name in names {
        // A time that no SFTP server can be told.
        let file = fs::File::open(tree.join(name)).unwrap();
        hikyaku_fs::Meta::set_modified(&file, (-77, 5)).unwrap();
    }
    let options =
        Options { rules: Rules { preserve: Preserve::Times, ..recursive().rules }, ..recursive() };
    let outcome = copy(std::slice::from_ref(&tree), &into, &options);
    assert!(is_fine(&outcome), "{outcome:?}");
    for name in names {
        let meta = fs::metadata(into.join("t").join(name)).unwrap();
        assert_eq!((meta.mtime(), meta.mtime_nsec()), (-77, 5), "{name:?}");
    }
    let mode = |name: &str| fs::metadata(into.join("t").join(name)).unwrap().mode() & 0o777;
    assert_eq!((mode("small"), mode("d")), (0o640, 0o750));
}
