//! A copy that has ended with success has nothing left that a power failure would take.

use hikyaku_bench_mounts::{Mounted, Scratch, cp, random, skipped};
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::symlink;

/// Many small files, a large one, a chain of directories, an empty one, links.
fn source(scratch: &Scratch) {
    fs::create_dir_all(scratch.at("s/deep/deeper")).unwrap();
    fs::create_dir_all(scratch.at("s/links")).unwrap();
    fs::create_dir_all(scratch.at("s/empty")).unwrap();
    for n in 0..30 {
        fs::write(scratch.at(&format!("s/deep/{n}")), random(n, 3_000)).unwrap();
    }
    fs::write(scratch.at("s/deep/deeper/large"), random(30, 3_000_000)).unwrap();
    fs::write(scratch.at("s/one"), b"one").unwrap();
    symlink("../one", scratch.at("s/links/one")).unwrap();
    fs::write(scratch.at("list"), "deep/deeper/large\ndeep/7\n").unwrap();
}

#[test]
fn after_success_every_file_and_every_name_is_synced() {
    let cases: [(&str, &[&str], &str, &str); 6] = [
        ("a tree that is new", &["-r"], "s", "d"),
        ("the same with links", &["-a"], "s", "d"),
        ("into a directory", &["-a"], "s", "there"),
        ("what is in it", &["-a"], "s/.", "d"),
        ("one file", &[], "s/one", "one"),
        ("files of a list", &["--files-from"], "s", "d"),
    ];
    let mut wrong = Vec::new();
    for (case, options, from, to) in cases {
        let scratch = Scratch::new("durable").unwrap();
        let Some(mounted) = skipped(Mounted::new(scratch.at("m"))) else { return };
        source(&scratch);
        fs::create_dir(mounted.at("there")).unwrap();
        fs::write(mounted.at("there/old"), b"old").unwrap();
        let before = mounted.unsynced();
        let mut arguments: Vec<OsString> = options.iter().map(Into::into).collect();
        if options.contains(&"--files-from") {
            arguments.push(scratch.at("list").into());
        }
        arguments.extend([scratch.at(from).into(), mounted.at(to).into()]);
        let said = cp(&scratch.at("state"), &arguments).unwrap();
        assert_eq!(said.code, Some(0), "{case}: {said:?}");
        let mut left = mounted.unsynced();
        left.retain(|what| !before.contains(what));
        let record = mounted.take_record();
        for (what, names) in [
            ("not synced at the end", left),
            ("named before it was synced", record.named_unsynced),
            ("named before it was closed", record.named_unclosed),
        ] {
            wrong.extend(names.iter().map(|name| format!("{case}: {what}: {name}")));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Who does not wait for the disk still hears what `close` says.
#[test]
fn without_syncs_files_are_closed_before_they_are_named() {
    let scratch = Scratch::new("durable-hasty").unwrap();
    let Some(mounted) = skipped(Mounted::new(scratch.at("m"))) else { return };
    source(&scratch);
    let arguments: [OsString; 4] =
        ["-r".into(), "--no-fsync".into(), scratch.at("s").into(), mounted.at("d").into()];
    let said = cp(&scratch.at("state"), &arguments).unwrap();
    assert_eq!(said.code, Some(0), "{said:?}");
    let record = mounted.take_record();
    assert_eq!(record.named_unclosed, [""; 0]);
    assert!(record.file_syncs.is_empty(), "it was told not to wait: {record:?}");
}
