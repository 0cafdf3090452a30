//! An end in memory for tests, which can fail.

use super::{Done, Item, Kind, Meta, Setting, Side, What, Why};
use crate::plan::parent;
use blake3::Hash;
use hikyaku_store::Time;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;

/// An end in memory. Names are given as text; a slash at the end makes a directory.
#[derive(Default)]
pub(crate) struct Memory {
    names: Mutex<BTreeMap<Vec<u8>, Meta>>,
    /// Directories that cannot be listed.
    closed: BTreeSet<Vec<u8>>,
}

impl Memory {
    pub(crate) fn new(names: &[&str]) -> Self {
        let memory = Self::default();
        names.iter().for_each(|name| memory.add(name, 1));
        memory
    }

    /// The same, but these directories cannot be listed.
    pub(crate) fn closed(mut self, dirs: &[&str]) -> Self {
        self.closed = dirs.iter().map(|dir| dir.as_bytes().to_vec()).collect();
        self
    }

    pub(crate) fn add(&self, name: &str, size: u64) {
        let kind = if name.ends_with('/') { Kind::Dir } else { Kind::File };
        let size = if kind == Kind::Dir { 0 } else { size };
        let modified = Time { secs: 9, nanos: 0 };
        let meta = Meta { kind, size, mode: 0o700, modified, identity: None };
        let path = name.trim_end_matches('/').as_bytes().to_vec();
        self.names.lock().unwrap().insert(path, meta);
    }

    pub(crate) fn names(&self) -> Vec<String> {
        let names = self.names.lock().unwrap();
        names.keys().map(|path| String::from_utf8(path.clone()).unwrap()).collect()
    }
}

fn absent<T>() -> Done<T> {
    Err(Why { text: "no such file or directory".to_owned(), what: What::Absent })
}

impl Side for Memory {
    fn look(&self, path: &[u8]) -> Done<Meta> {
        if path.is_empty() {
            let modified = Time { secs: 9, nanos: 0 };
            return Ok(Meta { kind: Kind::Dir, size: 0, mode: 0o700, modified, identity: None });
        }
        self.names.lock().unwrap().get(path).copied().map_or_else(absent, Ok)
    }

    fn entry(&self, path: &[u8]) -> Done<Item> {
        let name = path.rsplit(|&byte| byte == b'/').next().unwrap().to_vec();
        Ok(Item { name, meta: self.look(path)?, link: None })
    }

    fn list(&self, dir: &[u8]) -> Done<Vec<Item>> {
        if self.closed.contains(dir) {
            return Err(Why::of_name("permission denied"));
        }
        self.look(dir)?;
        let names = self.names.lock().unwrap();
        let inner = names.iter().filter(|(path, _)| parent(path) == dir);
        let mut all: Vec<Item> = inner
            .map(|(path, meta)| Item {
                name: path.rsplit(|&byte| byte == b'/').next().unwrap().to_vec(),
                meta: *meta,
                link: None,
            })
            .collect();
        all.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(all)
    }

    fn hash(&self, _: &[u8]) -> Done<Hash> {
        absent()
    }

    fn make_dir(&self, _: &[u8], _: u32) -> Done {
        absent()
    }

    fn make_link(&self, _: &[u8], _: &[u8]) -> Done {
        absent()
    }

    fn remove(&self, path: &[u8], kind: Kind) -> Done {
        if kind == Kind::Dir && !self.list(path)?.is_empty() {
            return Err(Why::of_name("the directory is not empty"));
        }
        self.names.lock().unwrap().remove(path).map_or_else(absent, |_| Ok(()))
    }

    fn rename(&self, from: &[u8], to: &[u8]) -> Done {
        let mut names = self.names.lock().unwrap();
        let Some(meta) = names.remove(from) else { return absent() };
        names.insert(to.to_vec(), meta);
        Ok(())
    }

    fn set(&self, _: &[u8], _: Kind, _: Setting) -> Done {
        Ok(())
    }
}
