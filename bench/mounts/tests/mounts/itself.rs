//! The bad file system does what it is told to: otherwise no test upon it means anything.

use fuser::Errno;
use hikyaku_bench_mounts::{
    FailingSync, Mounted, NameRule, Quota, Refused, Scratch, SmallDisk, Told, random, skipped,
};
use rustix::fs::{AtFlags, CWD, Mode, chmodat, fsync};
use rustix::io::Errno as Error;
use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::symlink;
use std::path::Path;

fn error(result: std::io::Result<()>) -> Option<Error> {
    result.err().and_then(|error| Error::from_io_error(&error))
}

/// Writes a file and asks at each step; the step that failed, and how.
fn write(path: &Path, bytes: &[u8]) -> Result<(), (&'static str, Error)> {
    let mut file = File::create(path).unwrap();
    let told = |step, result: std::io::Result<()>| match error(result) {
        Some(errno) => Err((step, errno)),
        None => Ok(()),
    };
    told("write", file.write_all(bytes))?;
    told("sync", file.sync_all())?;
    // Closing any handle of the file flushes it, and the answer of that one can be had.
    let again = rustix::io::dup(&file).unwrap();
    drop(file);
    drop(again);
    Ok(())
}

#[test]
fn without_faults_it_keeps_what_it_is_given() {
    let scratch = Scratch::new("mounts-itself").unwrap();
    let Some(mounted) = skipped(Mounted::new(scratch.at("m"))) else { return };
    fs::create_dir(mounted.at("d")).unwrap();
    let bytes = random(1, 3_000_000);
    assert_eq!(write(&mounted.at("d/a"), &bytes), Ok(()));
    symlink("a", mounted.at("d/l")).unwrap();
    fs::rename(mounted.at("d/a"), mounted.at("d/b")).unwrap();
    fs::hard_link(mounted.at("d/b"), mounted.at("d/c")).unwrap();
    assert!(fs::read(mounted.at("d/c")).unwrap() == bytes);
    assert!(mounted.content(Path::new("d/b")).unwrap() == bytes);
    fs::remove_file(mounted.at("d/c")).unwrap();
    let names = fs::read_dir(mounted.at("d")).unwrap().map(|entry| entry.unwrap().file_name());
    let mut names: Vec<_> = names.collect();
    names.sort();
    assert_eq!(names, ["b", "l"]);
    assert!(fs::remove_dir(mounted.at("d")).is_err());
}

#[test]
fn a_quota_is_told_where_it_is_told_and_the_data_are_gone() {
    let scratch = Scratch::new("mounts-quota").unwrap();
    let Some(mounted) = skipped(Mounted::new(scratch.at("m"))) else { return };
    let quota = |told| Quota { bytes: 10_000, errno: Errno::EDQUOT, told };
    let cases = [
        (Told::AtWrite, Err(("write", Error::DQUOT))),
        (Told::AtSync, Err(("sync", Error::DQUOT))),
        (Told::AtSyncOrClose, Err(("sync", Error::DQUOT))),
        // The standard library does not tell what `close` said.
        (Told::AtClose, Ok(())),
    ];
    for (told, wanted) in cases {
        mounted.set(|faults| faults.quota = Some(quota(told)));
        assert_eq!(write(&mounted.at("fits"), &random(1, 9_000)), Ok(()), "{told:?}");
        assert_eq!(write(&mounted.at("a"), &random(2, 20_000)), wanted, "{told:?}");
        assert_eq!(mounted.content(Path::new("fits")).unwrap(), random(1, 9_000), "{told:?}");
        assert_eq!(mounted.content(Path::new("a")).unwrap(), b"", "{told:?}");
        for name in ["fits", "a"] {
            fs::remove_file(mounted.at(name)).unwrap();
        }
    }
}

#[test]
fn a_failing_sync_fails_once_and_drops_what_was_not_stored() {
    let scratch = Scratch::new("mounts-lies").unwrap();
    let Some(mounted) = skipped(Mounted::new(scratch.at("m"))) else { return };
    let mut file = File::create(mounted.at("a")).unwrap();
    file.write_all(b"good").unwrap();
    fsync(&file).unwrap();
    mounted.set(|faults| faults.failing_sync = Some(FailingSync { from: 5 }));
    fsync(&file).unwrap();
    file.write_all(b"lost").unwrap();
    assert_eq!(fsync(&file), Err(Error::IO));
    assert_eq!(fsync(&file), Ok(()));
    assert_eq!(mounted.content(Path::new("a")).unwrap(), b"good");
}

#[test]
fn what_is_refused_is_refused() {
    let scratch = Scratch::new("mounts-refused").unwrap();
    let Some(mounted) = skipped(Mounted::new(scratch.at("m"))) else { return };
    fs::write(mounted.at("a"), b"a").unwrap();
    let dir = File::open(mounted.at("")).unwrap();
    let a = mounted.at("a");
    type Call<'a> = Box<dyn Fn() -> Result<(), Error> + 'a>;
    let calls: [(Refused, Call<'_>, Error); 6] = [
        (Refused::Chmod, Box::new(|| chmodat(CWD, &a, Mode::RUSR, AtFlags::empty())), Error::PERM),
        (
            Refused::Symlinks,
            Box::new(|| rustix::fs::symlinkat("x", CWD, mounted.at("l"))),
            Error::PERM,
        ),
        (
            Refused::Rename,
            Box::new(|| rustix::fs::renameat(CWD, &a, CWD, mounted.at("b"))),
            Error::PERM,
        ),
        (Refused::SyncOfDirs, Box::new(|| fsync(&dir)), Error::INVAL),
        (
            Refused::Attributes,
            Box::new(|| rustix::fs::setxattr(&a, "user.x", b"x", rustix::fs::XattrFlags::empty())),
            Error::OPNOTSUPP,
        ),
        (
            Refused::Changes,
            Box::new(|| rustix::fs::mkdirat(CWD, mounted.at("d"), Mode::RWXU)),
            Error::ROFS,
        ),
    ];
    for (refused, call, errno) in &calls {
        mounted.set(|faults| faults.refused = [*refused].into());
        assert_eq!(call(), Err(*errno), "{refused:?}");
        mounted.set(|faults| faults.refused.clear());
    }
    let rule = NameRule { forbidden: b":", longest: 8 };
    mounted.set(|faults| faults.names = Some(rule));
    assert_eq!(error(fs::write(mounted.at("a:b"), b"")), Some(Error::INVAL));
    assert_eq!(error(fs::write(mounted.at("123456789"), b"")), Some(Error::NAMETOOLONG));
    assert_eq!(error(fs::write(mounted.at("12345678"), b"")), None);
}

#[test]
fn what_is_not_synced_is_known() {
    let scratch = Scratch::new("mounts-unsynced").unwrap();
    let Some(mounted) = skipped(Mounted::new(scratch.at("m"))) else { return };
    let mut file = File::create(mounted.at("a")).unwrap();
    file.write_all(b"a").unwrap();
    assert_eq!(mounted.unsynced(), ["the name of /a", "the content of /a"]);
    fs::rename(mounted.at("a"), mounted.at("b")).unwrap();
    let record = mounted.take_record();
    assert_eq!(
        (record.named_unsynced, record.named_unclosed),
        (vec!["b".into()], vec!["b".into()])
    );
    fsync(&file).unwrap();
    fsync(File::open(mounted.at("")).unwrap()).unwrap();
    assert_eq!(mounted.unsynced(), [""; 0]);
    drop(file);
    fs::rename(mounted.at("b"), mounted.at("c")).unwrap();
    let record = mounted.take_record();
    assert_eq!(record.file_syncs.len() + record.dir_syncs.len(), 2);
    assert_eq!((record.named_unsynced, record.named_unclosed), (vec![], vec![]));
    assert_eq!(mounted.unsynced(), ["the name of /c"]);
}

#[test]
fn a_full_backing_store_loses_what_the_disk_accepted() {
    let scratch = Scratch::new("mounts-small").unwrap();
    let Some(disk) = skipped(SmallDisk::new(scratch.at("disk"), 200, 40)) else { return };
    disk.fill().unwrap();
    let mut file = File::create(disk.at("a")).unwrap();
    file.write_all(&random(1, 8_000_000)).unwrap();
    assert!(file.sync_all().is_err());
    disk.free().unwrap();
    assert!(file.sync_all().is_ok(), "told once");
    drop(file);
    disk.mount_again().unwrap();
    assert!(fs::read(disk.at("a")).unwrap_or_default() != random(1, 8_000_000), "it is lost");
}
