//! Two mounts of one daemon: whoever opens a file sees what was closed before, by versions in the data; a lock keeps others
//! out; whatever is appended is there.
//!
//! A few hundred opens run with the other tests, 10^4 in each mode at night: `cargo xtask nightly --only mounts versions`.

use super::place::{Mode, can_mount, until};
use rustix::fs::{FlockOperation, flock};
use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

/// Writes a version, in place or as another file that gets the name.
fn publish(path: &Path, version: u64) {
    let text = format!("{version:016}");
    if version.is_multiple_of(3) {
        let other = path.with_extension("new");
        fs::write(&other, &text).unwrap();
        fs::rename(&other, path).unwrap();
    } else {
        let file = File::options().write(true).open(path).unwrap();
        file.write_all_at(text.as_bytes(), 0).unwrap();
    }
}

/// One mount writes versions, the other one opens so many times.
fn close_to_open(mode: Mode, opens: usize) {
    let place = mode.place("mount-versions");
    let (here, there) = (place.mnt("file"), place.other_mount().join("file"));
    fs::write(&here, format!("{:016}", 0)).unwrap();
    let (closed, is_over) = (AtomicU64::new(0), AtomicU64::new(0));
    thread::scope(|scope| {
        scope.spawn(|| {
            for version in 1.. {
                publish(&here, version);
                closed.store(version, Ordering::SeqCst);
                if is_over.load(Ordering::SeqCst) > 0 {
                    return;
                }
            }
        });
        let mut seen = 0;
        let mut read = || {
            for n in 0..opens {
                let least = closed.load(Ordering::SeqCst);
                let mut file = File::open(&there).map_err(|error| format!("open {n}: {error}"))?;
                let mut text = String::new();
                // It may change while it is open, which is ESTALE.
                if file.read_to_string(&mut text).is_ok() {
                    let version: u64 =
                        text.parse().map_err(|e| format!("open {n}: {text:?}: {e}"))?;
                    if version < least.max(seen) {
                        return Err(format!("open {n}: {version} after {least} and {seen}"));
                    }
                    seen = version;
                }
            }
            Ok(())
        };
        let read = read();
        is_over.store(1, Ordering::SeqCst);
        assert_eq!(read, Ok(()), "{mode:?}");
    });
}

/// Four threads over two mounts count in a file under a lock; each opens it for each step, or once.
fn count_under_locks(mode: Mode, steps: u64) {
    let place = mode.place("mount-count");
    let mounts = [place.mnt(""), place.other_mount()];
    for keeps in [false, true] {
        let name = format!("count {keeps}");
        fs::write(mounts[0].join(&name), 0u64.to_le_bytes()).unwrap();
        thread::scope(|scope| {
            for worker in 0..4 {
                let path = mounts[worker % 2].join(&name);
                scope.spawn(move || {
                    let open = || File::options().read(true).write(true).open(&path).unwrap();
                    let mut kept = open();
                    for _ in 0..steps {
                        let file = if keeps {
                            &kept
                        } else {
                            kept = open();
                            &kept
                        };
                        flock(file, FlockOperation::LockExclusive).unwrap();
                        let mut bytes = [0; 8];
                        file.read_exact_at(&mut bytes, 0).unwrap();
                        let count = u64::from_le_bytes(bytes) + 1;
                        file.write_all_at(&count.to_le_bytes(), 0).unwrap();
                        if keeps {
                            flock(file, FlockOperation::Unlock).unwrap();
                        }
                    }
                });
            }
        });
        let count = fs::read(place.root(&name)).unwrap();
        assert_eq!(u64::from_le_bytes(count.try_into().unwrap()), 4 * steps, "{mode:?}, {keeps}");
        // Nobody has left a lock. The kernel tells of the last close after it has returned.
        let file = File::open(mounts[1].join(&name)).unwrap();
        let lock = || flock(&file, FlockOperation::NonBlockingLockExclusive);
        until("the locks are free", || lock().is_ok());
    }
}

/// Two mounts make and append to the same files.
fn make_and_append(mode: Mode, files: usize) {
    let place = mode.place("mount-both-make");
    let mounts = [place.mnt(""), place.other_mount()];
    let start = std::sync::Barrier::new(2);
    let append = |path: &Path| {
        OpenOptions::new().append(true).create(true).open(path)?.write_all(b"one line\n")
    };
    let work = |mount: &Path| -> Vec<String> {
        let failed = (0..files).filter_map(|n| {
            start.wait();
            append(&mount.join(format!("log {n}"))).err().map(|error| format!("{n}: {error}"))
        });
        failed.collect()
    };
    let failed: Vec<Vec<String>> = thread::scope(|scope| {
        let work = &work;
        let threads = mounts.each_ref().map(|mount| scope.spawn(move || work(mount)));
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(failed, [const { Vec::<String>::new() }; 2], "{mode:?}");
    for n in 0..files {
        let text = fs::read_to_string(place.root(&format!("log {n}"))).unwrap();
        assert_eq!(text, "one line\n".repeat(2), "{mode:?}, {n}");
    }
}

#[test]
fn whoever_opens_sees_what_another_mount_has_closed() {
    if can_mount() {
        [Mode::Plain, Mode::Leases].into_iter().for_each(|mode| close_to_open(mode, 300));
    }
}

/// One mount gives a name to other files all the time, several threads of the other one open it this number of times.
fn open_what_is_replaced(mode: Mode, opens: usize) {
    const THREADS: usize = 3;
    let place = mode.place("mount-replaced");
    let (here, there) = (place.mnt("file"), place.other_mount().join("file"));
    fs::write(&here, "first").unwrap();
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            let other = here.with_extension("new");
            for version in 0u64.. {
                // Neither their sizes nor their numbers are all the same.
                fs::write(&other, "x".repeat(version as usize % 7)).unwrap();
                fs::rename(&other, &here).unwrap();
                if is_over.load(Ordering::SeqCst) {
                    return;
                }
            }
        });
        let open = || -> Vec<String> {
            let failed = |n| File::open(&there).err().map(|error| format!("{n}: {error}"));
            (0..opens / THREADS).filter_map(failed).collect()
        };
        let threads = [(); THREADS].map(|()| scope.spawn(open));
        let failed = threads.map(|thread| thread.join().unwrap());
        is_over.store(true, Ordering::SeqCst);
        assert_eq!(failed.concat(), Vec::<String>::new(), "{mode:?}");
    });
}

#[test]
fn a_file_that_another_mount_changes_all_the_time_can_be_opened() {
    if can_mount() {
        [Mode::Plain, Mode::Leases].into_iter().for_each(|mode| open_what_is_replaced(mode, 300));
    }
}

#[test]
fn a_lock_keeps_programs_of_two_mounts_apart_and_is_freed() {
    if can_mount() {
        [Mode::Plain, Mode::Leases].into_iter().for_each(|mode| count_under_locks(mode, 30));
    }
}

#[test]
fn two_mounts_that_make_one_file_both_have_it_open() {
    if can_mount() {
        [Mode::Plain, Mode::Leases].into_iter().for_each(|mode| make_and_append(mode, 25));
    }
}

#[test]
#[ignore = "takes ten minutes: two mounts, 10^4 opens, locks and appends in each mode"]
fn two_mounts_agree_for_a_long_time() {
    if can_mount() {
        for mode in [Mode::Plain, Mode::Leases] {
            close_to_open(mode, 10_000);
            open_what_is_replaced(mode, 10_000);
            count_under_locks(mode, 500);
            make_and_append(mode, 500);
        }
    }
}
