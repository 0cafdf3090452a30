//! Files whose size differs from the number of bytes that can be read: files of /proc and /sys, and files under a writer.

use super::*;
use std::io::Write;

/// Files of the kernel that read the same twice.
fn kernels() -> Vec<PathBuf> {
    let all = [
        "/proc/filesystems",
        "/proc/version",
        "/sys/kernel/mm/transparent_hugepage/enabled",
        "/sys/power/state",
    ];
    let has_bytes = |path: &PathBuf| fs::read(path).is_ok_and(|bytes| !bytes.is_empty());
    all.map(PathBuf::from).into_iter().filter(has_bytes).collect()
}

#[test]
fn files_without_a_true_size_are_copied_whole() {
    let scratch = Scratch::new("sizes");
    let all = kernels();
    assert!(!all.is_empty());
    for path in &all {
        let to = scratch.at("copy");
        let outcome = copy(std::slice::from_ref(path), &to, &Options::default());
        assert_eq!((&outcome.sender, &outcome.receiver), (&None, &None), "{outcome:?}");
        assert!(outcome.failures.is_empty(), "{}: {outcome:?}", path.display());
        let bytes = fs::read(path).unwrap();
        assert!(fs::read(&to).unwrap() == bytes, "{}", path.display());
        let Tally { total_files, total_bytes, files, bytes: written, .. } = outcome.tally;
        let length = bytes.len() as u64;
        assert_eq!((total_files, total_bytes, files, written), (1, length, 1, length));
        fs::remove_file(to).unwrap();
    }
    // Through links of a tree, as a user meets them.
    let tree = scratch.at("t");
    fs::create_dir(&tree).unwrap();
    for (n, path) in all.iter().enumerate() {
        std::os::unix::fs::symlink(path, tree.join(n.to_string())).unwrap();
    }
    let outcome = copy(std::slice::from_ref(&tree), &scratch.at("made"), &recursive());
    assert!(outcome.failures.is_empty(), "{outcome:?}");
    assert!(listing(&tree) == listing(&scratch.at("made")));
}

#[test]
fn what_has_no_size_and_is_large_is_refused_in_plain_words() {
    let scratch = Scratch::new("sizes-large");
    // The symbols of a kernel are megabytes, and the size of the file is 0.
    let path = PathBuf::from("/proc/kallsyms");
    if fs::read(&path).map_or(0, |bytes| bytes.len()) as u64 <= SMALL {
        eprintln!("SKIPPED, because there is no /proc/kallsyms");
        return;
    }
    let outcome = copy(&[path], &scratch.at("copy"), &Options::default());
    assert_eq!((&outcome.sender, &outcome.receiver), (&None, &None), "{outcome:?}");
    assert_eq!(outcome.failures.len(), 1, "{outcome:?}");
    let said = &outcome.failures[0];
    assert!(said.contains("more bytes than its size") && !said.contains("changed"), "{said}");
    assert!(!scratch.at("copy").exists());
}

#[test]
fn a_file_that_grows_is_whole_or_said_to_have_changed() {
    let scratch = Scratch::new("sizes-grows");
    for begin in [0, 1000, 3_000_000] {
        let path = scratch.at("log");
        fs::write(&path, random(1, begin)).unwrap();
        let mut log = fs::File::options().append(true).open(&path).unwrap();
        let is_over = std::sync::atomic::AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                while !is_over.load(std::sync::atomic::Ordering::Relaxed) {
                    log.write_all(&[7; 64]).unwrap();
                    thread::yield_now();
                }
            });
            for _ in 0..10 {
                let _ = fs::remove_file(scratch.at("copy"));
                let options = Options {
                    rules: Rules { resume: Resume::Fresh, ..Rules::default() },
                    ..Options::default()
                };
                let outcome = copy(std::slice::from_ref(&path), &scratch.at("copy"), &options);
                assert_eq!((&outcome.sender, &outcome.receiver), (&None, &None), "{outcome:?}");
                let is_made = scratch.at("copy").exists();
                assert_eq!(is_made, outcome.failures.is_empty(), "{outcome:?}");
                let is_said = |text: &String| text.contains("changed while it was read");
                assert!(outcome.failures.iter().all(is_said), "{outcome:?}");
                if is_made {
                    let (copy, now) =
                        (fs::read(scratch.at("copy")).unwrap(), fs::read(&path).unwrap());
                    assert!(now.starts_with(&copy) && copy.len() >= begin);
                }
            }
            is_over.store(true, std::sync::atomic::Ordering::Relaxed);
        });
    }
}
