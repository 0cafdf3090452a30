//! Ends in memory for tests, which can fail.

use super::Side;
use hikyaku_store::{
    ErrorKind, Fault, Faulty, Finish, Memory, Naming, Op, Operation, Put, Root, Store, StorePath,
    Time, When, Writes, do_one,
};
use hikyaku_stores::Holder;
use hikyaku_transfer::Durable;
use hikyaku_units::DataSize;
use std::ops::{ControlFlow, Deref};
use std::sync::Arc;

/// An end in memory. Names are given as text, a directory before what is in it; a slash at the end makes a directory.
pub(crate) struct TestSide {
    side: Side,
    store: Faulty<Memory>,
}

impl Deref for TestSide {
    type Target = Side;

    fn deref(&self) -> &Side {
        &self.side
    }
}

fn path(name: &str) -> StorePath {
    StorePath::new(name.trim_end_matches('/').as_bytes()).unwrap()
}

impl TestSide {
    pub(crate) fn new(names: &[&str]) -> Self {
        let memory = Self::of(Faulty::new(Memory::default()));
        names.iter().for_each(|name| memory.add(name, 1));
        memory
    }

    fn of(store: Faulty<Memory>) -> Self {
        let holder = Holder::new(String::new(), Arc::new(store.clone()), Root::Somewhere);
        let memory = DataSize::from_bytes(u64::MAX);
        let side = Side::of_holder(Arc::new(holder), StorePath::ROOT, memory);
        Self { side, store }
    }

    /// This side behind a network.
    pub(crate) fn far(self) -> Self {
        Self::of(self.store.far(Writes::InOrder))
    }

    /// This side, where the first `times` such operations on each of these paths fail.
    pub(crate) fn failing(
        self,
        (operation, times): (Operation, u32),
        paths: &[&str],
        kind: ErrorKind,
    ) -> Self {
        for name in paths {
            let when = When { operation, path: Some(path(name)), nth: 1, times };
            self.store.add(when, Fault::Error(kind));
        }
        self
    }

    /// This side, where these directories cannot be listed.
    pub(crate) fn closed(self, dirs: &[&str]) -> Self {
        self.failing((Operation::List, u32::MAX), dirs, ErrorKind::Denied)
    }

    /// Makes a directory, or a file of `size` bytes.
    pub(crate) fn add(&self, name: &str, size: usize) {
        let (path, bytes) = (path(name), vec![0; size]);
        let modified = Some(Time { secs: 9, nanos: 0 });
        let finish = Finish { mode: Some(0o700), modified, ..Finish::default() };
        let (naming, durable) = (Naming::Replace, Durable::Cache);
        let op = match name.ends_with('/') {
            true => Op::MakeDir(&path, 0o700),
            false => Op::Put(Put { path: &path, bytes: &bytes, naming, finish: &finish, durable }),
        };
        do_one(&self.store, &op).unwrap();
    }

    pub(crate) fn names(&self) -> Vec<String> {
        let mut names = Vec::new();
        let mut add = |entry: hikyaku_store::Entry| {
            names.push(String::from_utf8(entry.path.as_bytes().to_vec()).unwrap());
            ControlFlow::Continue(())
        };
        self.store.walk(&StorePath::ROOT, &mut add).unwrap();
        names.retain(|name| !name.is_empty());
        names.sort();
        names
    }
}
