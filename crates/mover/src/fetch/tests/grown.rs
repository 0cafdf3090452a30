//! Files that are written under their own names from their first byte on, into a directory of this machine.

use super::{filled, put, random, same_names};
use crate::census::store_census;
use crate::dress::FileMode;
use crate::fetch::asked::reach;
use crate::fetch::{Taking, Writing};
use crate::target::Target;
use crate::{FetchError, Fetched, Growth, Job, Meter, Plan, RESUME, fetch};
use hikyaku_remote::Seen;
use hikyaku_store::{
    ErrorKind, Fault, Faulty, Fetcher, Found, Growing, Memory, Operation, Store, StorePath, Time,
    When, fetcher_by_file, fetchers,
};
use hikyaku_store_local::{Local, NewModes};
use hikyaku_units::DataSize;
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// A directory of this machine, which is removed at the end.
struct Dir(PathBuf);

impl Dir {
    fn new(name: &str) -> Self {
        let dir = std::env::temp_dir().join(format!("hikyaku-grow-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&dir);
        fs::create_dir(&dir).unwrap();
        Self(dir)
    }

    fn read(&self, name: &str) -> Vec<u8> {
        fs::read(self.0.join(name)).unwrap()
    }

    /// Copies all files of a store into it. Returns also the bytes that were not fetched.
    fn copy(
        &self,
        (source, all): (&Faulty<Memory>, &BTreeMap<Vec<u8>, Found>),
        growth: Growth,
    ) -> (Fetched, u64) {
        let source: Arc<dyn Store> = Arc::new(source.clone());
        let servers = fetchers(&source, 4).unwrap();
        let target = Arc::new(Local::open(&self.0, NewModes::default()).unwrap());
        let plan = same_names(store_census(all, servers.len()));
        let (meter, stop) = (Meter::new(servers.len()), AtomicBool::new(false));
        let job = Job::new(&servers, &plan, target, (&meter, &stop));
        let fetched = fetch(&Job { growth: Some(growth), ..job }).unwrap();
        (fetched, meter.kept())
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn a_file_goes_on_where_it_ends_and_one_that_begins_otherwise_is_left_alone() {
    let (source, files, all) = filled();
    let dir = Dir::new("on");
    let bytes = |name: &str| &files.iter().find(|(other, _)| other == name).unwrap().1;
    let mut other = bytes("f4")[..1 << 19].to_vec();
    other[(1 << 19) - 1] ^= 1;
    let longer = [&bytes("f3")[..], b"x"].concat();
    let begun = [("f5", &bytes("f5")[..(2 << 20) + 123]), ("f4", &other), ("f3", &longer)];
    for (name, content) in begun {
        fs::write(dir.0.join(name), content).unwrap();
    }
    let (mut done, kept) = dir.copy((&source, &all), Growth::Continued);
    // The last mebibyte is fetched again, and the part of a segment before it.
    assert_eq!(kept, 1 << 20);
    done.failed.sort_by(|a, b| a.0.cmp(&b.0));
    let why = |(path, error): &(Vec<u8>, FetchError)| match error {
        FetchError::Target(error) if error.what == RESUME => (path.clone(), error.kind),
        other => panic!("{other}"),
    };
    let failed: Vec<_> = done.failed.iter().map(why).collect();
    let wanted = [(b"f3".to_vec(), ErrorKind::TooLarge), (b"f4".to_vec(), ErrorKind::Changed)];
    assert_eq!(failed, wanted);
    assert!(dir.read("f3") == longer && dir.read("f4") == other);
    for name in ["f0", "f1", "f2", "f5", "f6"] {
        assert!(dir.read(name) == *bytes(name), "{name}");
    }
    // Written anew, all of them are those of the source.
    let (done, _) = dir.copy((&source, &all), Growth::Anew);
    assert!(done.failed.is_empty(), "{done:?}");
    assert!(files.iter().all(|(name, bytes)| dir.read(name) == *bytes));
}

#[test]
fn a_file_that_fails_keeps_its_beginning_and_nothing_else() {
    let (source, files, all) = filled();
    let dir = Dir::new("begin");
    fs::write(dir.0.join("f5"), random(9, 7 << 20)).unwrap();
    let path = Some(StorePath::new(b"f5").unwrap());
    let when = When { operation: Operation::Read, path, nth: 4, times: u32::MAX };
    source.add(when, Fault::Error(ErrorKind::Denied));
    let (done, _) = dir.copy((&source, &all), Growth::Anew);
    assert_eq!(done.failed.len(), 1, "{done:?}");
    let (_, bytes) = &files[5];
    assert!(bytes.starts_with(&dir.read("f5")));
}

#[test]
fn a_file_goes_on_also_behind_what_is_asked_for_ahead_of_the_first_byte() {
    let (source, dir) = (Faulty::new(Memory::default()), Dir::new("far"));
    let bytes = random(5, 140 << 20);
    put(source.inner(), "large", &bytes);
    let found = source.look(&StorePath::new(b"large").unwrap()).unwrap();
    fs::write(dir.0.join("large"), &bytes[..139 << 20]).unwrap();
    let all = [(b"large".to_vec(), found)].into();
    let (done, kept) = dir.copy((&source, &all), Growth::Continued);
    assert!(done.failed.is_empty() && kept == 138 << 20, "{done:?}");
    assert!(dir.read("large") == bytes);
}

#[test]
fn a_file_that_comes_in_order_is_asked_for_as_a_whole() {
    let store: Arc<dyn Store> = Arc::new(Memory::default());
    let (plan, meter, stop) = (Plan::default(), Meter::new(2), AtomicBool::new(false));
    let (path, seen) =
        (StorePath::new(b"f").unwrap(), Seen { size: 1 << 30, modified: Time::default() });
    let how = (Taking::AnyOrder, Writing::default());
    let target = Target::new(store.clone(), path, (seen, FileMode::Exact(0o644)), how).unwrap();
    let target = target.growing(Growing::Anew, false);
    let end = |servers: &[Arc<dyn Fetcher>]| {
        reach(&Job::new(servers, &plan, store.clone(), (&meter, &stop)), &target)
    };
    let by_file = || fetcher_by_file(&store, 4);
    assert_eq!(end(&[by_file()]), None);
    // Parts of a file come in any order from here on, and wait in memory.
    let ahead = Some(DataSize::from_bytes(128 << 20));
    assert_eq!(end(&[by_file(), by_file()]), ahead);
    assert_eq!(end(&fetchers(&store, 1).unwrap()), ahead);
}
