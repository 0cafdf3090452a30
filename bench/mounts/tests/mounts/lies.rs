//! A disk that accepts data and loses them, and says so once: nothing of that is a success.

use hikyaku_bench_mounts::{FailingSync, Mounted, Said, Scratch, SmallDisk, cp, random, skipped};
use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::thread;
use std::time::Duration;

/// A file that is under way for longer than a copy waits between two syncs (5 s).
const LONG: usize = 40_000_000;
const RATE: u32 = 4_000_000;
/// When the disk begins to lose what it accepts, and when it ceases to. In between is a sync.
const BEGIN: Duration = Duration::from_millis(1500);
const END: Duration = Duration::from_millis(7000);

fn copy(scratch: &Scratch, from: &Path, to: &Path, options: &[&str]) -> Said {
    let mut arguments: Vec<OsString> = options.iter().map(Into::into).collect();
    arguments.extend([from.into(), to.into()]);
    cp(&scratch.at("state"), &arguments).unwrap()
}

/// Waits until the file is under way, so that time counts from there.
fn wait_for_partial(dir: &Path) {
    let is_there = || fs::read_dir(dir).is_ok_and(|mut entries| entries.next().is_some());
    for _ in 0..500 {
        if is_there() {
            return;
        }
        thread::sleep(Duration::from_millis(20));
    }
    panic!("nothing is written into {}", dir.display());
}

/// The backing store of an ext4 is full for some seconds in mid-copy. Then the same again with room.
fn full_for_some_seconds(name: &str, options: &[&str]) {
    let scratch = Scratch::new(name).unwrap();
    let Some(disk) = skipped(SmallDisk::new(scratch.at("disk"), 400, 100)) else { return };
    // It comes slowly, so that the copy is still under way when there is room again.
    let Some(slow) = skipped(Mounted::new(scratch.at("slow"))) else { return };
    fs::write(slow.at("f"), random(1, LONG)).unwrap();
    slow.set(|faults| faults.rate = Some(RATE));
    fs::create_dir(disk.at("d")).unwrap();
    let (from, to) = (slow.at("f"), disk.at("d/f"));
    if options.contains(&"--inplace") {
        fs::write(&to, b"old").unwrap();
    }
    let said = thread::scope(|scope| {
        let copying = scope.spawn(|| copy(&scratch, &from, &to, options));
        wait_for_partial(&disk.at("d"));
        thread::sleep(BEGIN);
        disk.fill().unwrap();
        thread::sleep(END.saturating_sub(BEGIN));
        let is_under_way = !copying.is_finished();
        disk.free().unwrap();
        let said = copying.join().unwrap();
        assert!(is_under_way || said.code != Some(0), "it was over before there was room again");
        said
    });
    disk.mount_again().unwrap();
    let is_right = || fs::read(disk.at("d/f")).ok().as_deref() == Some(&random(1, LONG)[..]);
    assert!(said.code != Some(0) || is_right(), "success, and the disk has other bytes: {said:?}");
    if !options.contains(&"--inplace") {
        assert!(is_right() || !disk.at("d/f").exists(), "a name without its content: {said:?}");
    }
    slow.set(|faults| faults.rate = None);
    let said = copy(&scratch, &from, &to, options);
    disk.mount_again().unwrap();
    assert!(said.code == Some(0) && is_right(), "there is room again: {said:?}");
    let names = fs::read_dir(disk.at("d")).unwrap().count();
    assert_eq!(names, 1, "nothing unfinished is left");
}

#[test]
fn a_backing_store_that_is_full_for_some_seconds_costs_no_byte() {
    full_for_some_seconds("lies-full", &[]);
}

#[test]
#[ignore = "takes ten seconds more: cargo test -p hikyaku-bench-mounts -- --ignored"]
fn a_backing_store_that_is_full_for_some_seconds_costs_no_byte_in_place() {
    full_for_some_seconds("lies-full-in-place", &["--inplace"]);
}

/// The first sync in mid-copy fails, and all that come after it succeed.
fn failing_once(name: &str, options: &[&str]) {
    let scratch = Scratch::new(name).unwrap();
    let Some(mounted) = skipped(Mounted::new(scratch.at("m"))) else { return };
    fs::write(scratch.at("f"), random(1, LONG)).unwrap();
    fs::write(mounted.at("f"), b"old").unwrap();
    mounted.set(|faults| {
        faults.rate = Some(RATE);
        faults.failing_sync = Some(FailingSync { from: 4 });
    });
    let (from, to) = (scratch.at("f"), mounted.at("f"));
    let said = copy(&scratch, &from, &to, options);
    assert!(!mounted.has_failing_sync(), "nothing was synced");
    let has = mounted.content(Path::new("f")).unwrap();
    let is_right = has == random(1, LONG);
    assert!(said.code != Some(0) || is_right, "success, and the store has other bytes: {said:?}");
    if !options.contains(&"--inplace") {
        assert!(is_right || has == b"old", "neither the old file nor the new one: {said:?}");
    }
    mounted.set(|faults| faults.rate = None);
    let said = copy(&scratch, &from, &to, options);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(mounted.content(Path::new("f")).unwrap() == random(1, LONG), "after a second try");
}

#[test]
fn a_sync_that_fails_once_in_mid_copy_is_not_forgotten() {
    failing_once("lies-once", &[]);
}

#[test]
#[ignore = "takes ten seconds more: cargo test -p hikyaku-bench-mounts -- --ignored"]
fn a_sync_that_fails_once_in_mid_copy_is_not_forgotten_in_place() {
    failing_once("lies-once-in-place", &["--inplace"]);
}

#[test]
fn a_sync_of_small_files_that_fails_once_is_not_forgotten() {
    let scratch = Scratch::new("lies-small").unwrap();
    let Some(mounted) = skipped(Mounted::new(scratch.at("m"))) else { return };
    fs::create_dir(scratch.at("s")).unwrap();
    // One of them is longer than the others: it is the one whose sync fails.
    for n in 0..40 {
        let length = if n == 17 { 9_000 } else { 3_000 };
        fs::write(scratch.at(&format!("s/{n}")), random(n, length)).unwrap();
    }
    mounted.set(|faults| faults.failing_sync = Some(FailingSync { from: 9_000 }));
    let (from, to) = (scratch.at("s/."), mounted.at("d"));
    let said = copy(&scratch, &from, &to, &["-r"]);
    let right = |n: u64| fs::read(scratch.at(&format!("s/{n}"))).ok();
    let has = |n: u64| mounted.content(Path::new(&format!("d/{n}")));
    assert!(!mounted.has_failing_sync(), "the file was named, and never synced: {said:?}");
    assert!(said.code != Some(0) || has(17) == right(17), "{said:?}");
    for n in 0..40 {
        assert!(has(n).is_none() || has(n) == right(n), "{n} has its name and not its content");
    }
    let said = copy(&scratch, &from, &to, &["-r"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    let wrong: Vec<_> = (0..40).filter(|n| has(*n) != right(*n)).collect();
    assert_eq!(wrong, [0; 0], "after a second try: {said:?}");
}
