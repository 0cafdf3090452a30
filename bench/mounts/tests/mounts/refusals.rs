//! File systems that refuse some calls, as vfat and network shares do: each refusal costs what was asked
//! for and nothing else.

use hikyaku_bench_mounts::{Mounted, NameRule, Refused, Said, Scratch, cp, random, skipped};
use rustix::fs::{CWD, FileType, Mode, mknodat};
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

/// Exit code: some files failed.
const SOME_FAILED: Option<i32> = Some(6);

fn copy(scratch: &Scratch, mounted: &Mounted, options: &[&str]) -> Said {
    let mut arguments: Vec<OsString> = options.iter().map(Into::into).collect();
    arguments.extend([scratch.at("s/.").into(), mounted.at("d").into()]);
    cp(&scratch.at("state"), &arguments).unwrap()
}

/// A small file, a large one, and one in a directory.
const FILES: [(&str, usize); 3] = [("small", 900), ("large", 2_000_000), ("deep/small", 900)];

fn begin(name: &str) -> Option<(Scratch, Mounted)> {
    let scratch = Scratch::new(name).unwrap();
    let mounted = skipped(Mounted::new(scratch.at("m")))?;
    fs::create_dir_all(scratch.at("s/deep")).unwrap();
    for (name, length) in FILES {
        fs::write(scratch.at("s").join(name), random(1, length)).unwrap();
    }
    fs::create_dir(mounted.at("d")).unwrap();
    Some((scratch, mounted))
}

fn all_are_there(mounted: &Mounted) -> bool {
    FILES.iter().all(|(name, length)| {
        mounted.content(&Path::new("d").join(name)).as_deref() == Some(&random(1, *length)[..])
    })
}

#[test]
fn without_modes_the_files_are_copied() {
    for (options, code) in [(&["-r"][..], Some(0)), (&["-rp"][..], SOME_FAILED)] {
        for refused in [&[Refused::Chmod][..], &[Refused::Chmod, Refused::Times]] {
            let Some((scratch, mounted)) = begin("refused-chmod") else { return };
            mounted.set(|faults| faults.refused = refused.iter().copied().collect());
            let said = copy(&scratch, &mounted, options);
            assert!(all_are_there(&mounted), "{options:?} {refused:?}: {said:?}");
            assert_eq!(said.code, code, "{options:?} {refused:?}: {said:?}");
            if code == Some(0) {
                assert!(said.stderr.lines().count() <= 1, "a remark at most: {said:?}");
            }
        }
    }
}

#[test]
fn without_attributes_the_files_are_copied() {
    let Some((scratch, mounted)) = begin("refused-attributes") else { return };
    let source = scratch.at("s/small");
    let flags = rustix::fs::XattrFlags::empty();
    let has_attribute = rustix::fs::setxattr(&source, "user.origin", b"x", flags).is_ok();
    mounted.set(|faults| faults.refused = [Refused::Attributes].into());
    let said = copy(&scratch, &mounted, &["-a"]);
    assert!(all_are_there(&mounted), "{said:?}");
    assert_eq!(said.code, if has_attribute { SOME_FAILED } else { Some(0) }, "{said:?}");
}

#[test]
fn a_link_that_cannot_be_made_costs_nothing_that_is_there() {
    let Some((scratch, mounted)) = begin("refused-links") else { return };
    for name in ["file", "link", "dangling", "fifo", "socket", "new"] {
        symlink("small", scratch.at("s").join(name)).unwrap();
    }
    let there = |name: &str| mounted.at("d").join(name);
    fs::write(there("file"), b"old").unwrap();
    fs::write(mounted.at("aside"), b"aside").unwrap();
    symlink("../aside", there("link")).unwrap();
    symlink("nowhere", there("dangling")).unwrap();
    let mode = Mode::RUSR | Mode::WUSR;
    mknodat(CWD, there("fifo"), FileType::Fifo, mode, 0).unwrap();
    mknodat(CWD, there("socket"), FileType::Socket, mode, 0).unwrap();
    let types = || {
        ["fifo", "socket"]
            .map(|name| there(name).symlink_metadata().ok().map(|meta| meta.file_type()))
    };
    let before = types();
    mounted.set(|faults| faults.refused = [Refused::Symlinks].into());
    let said = copy(&scratch, &mounted, &["-a"]);
    assert_eq!(said.code, SOME_FAILED, "{said:?}");
    assert!(all_are_there(&mounted), "{said:?}");
    assert_eq!(fs::read(there("file")).ok().as_deref(), Some(&b"old"[..]), "{said:?}");
    assert_eq!(fs::read_link(there("link")).ok(), Some("../aside".into()), "{said:?}");
    assert_eq!(fs::read_link(there("dangling")).ok(), Some("nowhere".into()), "{said:?}");
    assert_eq!(types(), before, "{said:?}");
    assert!(there("new").symlink_metadata().is_err());
    for name in ["fifo", "socket"] {
        assert!(said.stderr.contains(name), "nothing is said of {name}: {said:?}");
    }
    // One cause may be told once, with the number of those that met it too.
    let links = ["file", "link", "dangling", "new"];
    let ends = |line: &&str| links.iter().any(|name| line.contains(&format!("d/{name}: ")));
    let named = said.stderr.lines().filter(ends).count();
    let is_counted = said.stderr.contains(&format!(" {} more ", links.len() - named));
    assert!(named == links.len() || (named > 0 && is_counted), "{said:?}");
    // The same where links can be made.
    mounted.set(|faults| faults.refused.clear());
    let said = copy(&scratch, &mounted, &["-a"]);
    assert_eq!(said.code, SOME_FAILED, "{said:?}");
    assert_eq!(types(), before, "{said:?}");
    for name in ["file", "link", "dangling", "new"] {
        assert_eq!(fs::read_link(there(name)).ok(), Some("small".into()), "{name}: {said:?}");
    }
    assert_eq!(fs::read(mounted.at("aside")).unwrap(), b"aside");
}

#[test]
fn names_that_are_refused_fail_alone() {
    let Some((scratch, mounted)) = begin("refused-names") else { return };
    for name in ["a:b", "deep/c:d", "e:dir/f"] {
        let path = scratch.at("s").join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, b"x").unwrap();
    }
    mounted.set(|faults| faults.names = Some(NameRule { forbidden: b":?*", longest: 255 }));
    let said = copy(&scratch, &mounted, &["-r"]);
    assert_eq!(said.code, Some(2), "an invalid argument may be anything: {said:?}");
    assert!(all_are_there(&mounted), "{said:?}");
    for name in ["a:b", "c:d", "e:dir"] {
        assert!(said.stderr.contains(name), "nothing is said of {name}: {said:?}");
    }
}

/// Where names are shorter than usual, a file's name while it is written must fit too.
#[test]
fn a_name_that_fits_is_copied() {
    let Some((scratch, mounted)) = begin("refused-long") else { return };
    let (fits, is_too_long) = ("x".repeat(143), "y".repeat(144));
    for name in [&fits, &is_too_long] {
        fs::write(scratch.at("s").join(name), b"x").unwrap();
    }
    mounted.set(|faults| faults.names = Some(NameRule { forbidden: b"", longest: 143 }));
    let said = copy(&scratch, &mounted, &["-r"]);
    assert_eq!(said.code, SOME_FAILED, "{said:?}");
    assert!(all_are_there(&mounted), "{said:?}");
    assert!(said.stderr.contains(&is_too_long), "{said:?}");
    assert_eq!(
        mounted.content(&Path::new("d").join(&fits)).as_deref(),
        Some(&b"x"[..]),
        "{said:?}"
    );
}

#[test]
fn where_nothing_may_be_changed_nothing_is() {
    let Some((scratch, mounted)) = begin("refused-changes") else { return };
    fs::write(mounted.at("d/small"), b"old").unwrap();
    mounted.set(|faults| faults.refused = [Refused::Changes].into());
    let said = copy(&scratch, &mounted, &["-r"]);
    assert!(said.code.is_some_and(|code| code != 0), "{said:?}");
    assert!(said.stderr.to_lowercase().contains("read-only"), "{said:?}");
    assert!(said.stderr.lines().count() <= 3, "one cause, one line: {said:?}");
    assert_eq!(mounted.content(Path::new("d/small")).as_deref(), Some(&b"old"[..]));
}

#[test]
fn where_nothing_can_be_renamed_the_old_file_stays_and_it_is_said() {
    let Some((scratch, mounted)) = begin("refused-rename") else { return };
    fs::write(mounted.at("d/small"), b"old").unwrap();
    mounted.set(|faults| faults.refused = [Refused::Rename].into());
    let said = copy(&scratch, &mounted, &["-r"]);
    assert!(said.code.is_some_and(|code| code != 0), "{said:?}");
    assert_eq!(mounted.content(Path::new("d/small")).as_deref(), Some(&b"old"[..]));
    let left: Vec<_> = fs::read_dir(mounted.at("d")).unwrap().flatten().collect();
    let left =
        left.iter().filter(|entry| entry.file_name().as_encoded_bytes().ends_with(b".hikyaku"));
    assert_eq!(left.count(), 0, "nothing unfinished is left: {said:?}");
}

#[test]
fn directories_that_cannot_be_synced_are_no_failure() {
    let Some((scratch, mounted)) = begin("refused-dirs") else { return };
    mounted.set(|faults| faults.refused = [Refused::SyncOfDirs].into());
    let said = copy(&scratch, &mounted, &["-r"]);
    assert_eq!((said.code, said.stderr.as_str()), (Some(0), ""), "{said:?}");
    assert!(all_are_there(&mounted));
}
