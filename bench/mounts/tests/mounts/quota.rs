//! A file system that is out of quota or full: what cannot be stored is no success, and no file has its
//! name without its content.

use fuser::Errno;
use hikyaku_bench_mounts::{Mounted, Quota, Said, Scratch, Told, cp, random, skipped};
use std::fs;
use std::path::Path;

/// Small files, and the bytes of each.
const FILES: u64 = 40;
const LENGTH: usize = 20_000;

/// A source of small files and of a large one.
fn source(scratch: &Scratch, large: usize) {
    fs::create_dir(scratch.at("s")).unwrap();
    for n in 0..FILES {
        fs::write(scratch.at(&format!("s/{n}")), random(n, LENGTH)).unwrap();
    }
    if large > 0 {
        fs::write(scratch.at("s/large"), random(FILES, large)).unwrap();
    }
}

fn copy(scratch: &Scratch, mounted: &Mounted, options: &[&str]) -> Said {
    let mut arguments: Vec<_> = options.iter().map(Into::into).collect();
    arguments.extend([scratch.at("s").into_os_string(), mounted.at("d").into_os_string()]);
    cp(&scratch.at("state"), &arguments).unwrap()
}

/// Names in the target whose content the file system has not, and names that no source has.
fn wrong(scratch: &Scratch, mounted: &Mounted) -> Vec<String> {
    let Ok(names) = fs::read_dir(mounted.at("d")) else { return Vec::new() };
    let names = names.map(|entry| entry.unwrap().file_name());
    let is_wrong = |name: &std::ffi::OsString| {
        let wanted = fs::read(scratch.at("s").join(name)).ok();
        mounted.content(&Path::new("d").join(name)) != wanted
    };
    names.filter(is_wrong).map(|name| name.display().to_string()).collect()
}

fn quota(bytes: u64, told: Told) -> Quota {
    Quota { bytes, errno: Errno::EDQUOT, told }
}

#[test]
fn what_is_over_quota_is_no_success_and_has_no_name() {
    let all = [Told::AtWrite, Told::AtClose, Told::AtSync, Told::AtSyncOrClose];
    // Who does not wait for the disk is not told by `fsync`.
    let cases = all.map(|told| (told, None));
    let hasty = [Told::AtWrite, Told::AtClose, Told::AtSyncOrClose];
    let cases = cases.into_iter().chain(hasty.map(|told| (told, Some("--no-fsync"))));
    for (told, hasty) in cases {
        let scratch = Scratch::new("quota").unwrap();
        let Some(mounted) = skipped(Mounted::new(scratch.at("m"))) else { return };
        source(&scratch, 0);
        mounted.set(|faults| faults.quota = Some(quota(6 * LENGTH as u64 + 100, told)));
        let options: Vec<_> = ["-r"].into_iter().chain(hasty).collect();
        let said = copy(&scratch, &mounted, &options);
        assert!(said.code.is_some_and(|code| code != 0), "{told:?} {hasty:?}: {said:?}");
        assert!(said.stderr.to_lowercase().contains("quota"), "{told:?}: {said:?}");
        // What lets the same command go on may be kept; under its own name nothing is wrong.
        let mut wrong = wrong(&scratch, &mounted);
        wrong.retain(|name| !name.ends_with(".hikyaku"));
        assert_eq!(wrong, [""; 0], "{told:?} {hasty:?}: {said:?}");
    }
}

#[test]
fn when_there_is_room_again_the_same_command_makes_it_right() {
    for told in [Told::AtWrite, Told::AtClose, Told::AtSync, Told::AtSyncOrClose] {
        let scratch = Scratch::new("quota-again").unwrap();
        let Some(mounted) = skipped(Mounted::new(scratch.at("m"))) else { return };
        source(&scratch, 5_000_000);
        let errno = Errno::ENOSPC;
        mounted.set(|faults| faults.quota = Some(Quota { bytes: 2_000_000, errno, told }));
        let said = copy(&scratch, &mounted, &["-r"]);
        assert!(said.code.is_some_and(|code| code != 0), "{told:?}: {said:?}");
        mounted.set(|faults| faults.quota = None);
        let said = copy(&scratch, &mounted, &["-r"]);
        assert_eq!(said.code, Some(0), "{told:?}: {said:?}");
        assert_eq!(wrong(&scratch, &mounted), [""; 0], "{told:?}");
        let count = fs::read_dir(mounted.at("d")).unwrap().count() as u64;
        assert_eq!(count, FILES + 1, "{told:?}");
    }
}

/// Unfinished files that no journal will take up again are not left behind.
#[test]
fn a_failure_leaves_nothing_that_nobody_goes_on_with() {
    for fresh in [None, Some("--fresh")] {
        let scratch = Scratch::new("quota-left").unwrap();
        let Some(mounted) = skipped(Mounted::new(scratch.at("m"))) else { return };
        source(&scratch, 5_000_000);
        mounted.set(|faults| faults.quota = Some(quota(100_000, Told::AtWrite)));
        let said = copy(&scratch, &mounted, &["-r"]);
        assert!(said.code.is_some_and(|code| code != 0), "{said:?}");
        let partial = || {
            let names = fs::read_dir(mounted.at("d")).into_iter().flatten().flatten();
            let names = names.map(|entry| entry.file_name().display().to_string());
            names.filter(|name| name.ends_with(".hikyaku")).collect::<Vec<_>>()
        };
        let journals = scratch.at("state/hikyaku/copies");
        let journals: Vec<_> = fs::read_dir(journals).into_iter().flatten().flatten().collect();
        let text: Vec<u8> =
            journals.iter().flat_map(|journal| fs::read(journal.path()).unwrap()).collect();
        for name in partial() {
            let is_kept = text.windows(name.len()).any(|bytes| bytes == name.as_bytes());
            assert!(is_kept, "{name} is left, and no journal knows it: {said:?}");
        }
        // The end of the story, in either way, leaves none at all.
        mounted.set(|faults| faults.quota = None);
        let options: Vec<_> = ["-r"].into_iter().chain(fresh).collect();
        let said = copy(&scratch, &mounted, &options);
        assert_eq!(said.code, Some(0), "{said:?}");
        assert_eq!(partial(), [""; 0], "{fresh:?}");
    }
}
