//! A target in which the one file of the transfer has another name than at the source.

use super::{Done, Item, Kind, Meta, Setting, Side};
use blake3::Hash;
use hikyaku_store::Time;

/// A side with a file in its root that is told under another name.
pub(crate) struct Renamed {
    pub(crate) inner: Box<dyn Side>,
    /// The name under which the file is told.
    pub(crate) told: Vec<u8>,
    /// Its name in the directory.
    pub(crate) own: Vec<u8>,
}

impl Renamed {
    /// The path in the directory. What begins with the name that is told is the file, or a backup of it.
    fn at(&self, path: &[u8]) -> Vec<u8> {
        match path.strip_prefix(&self.told[..]) {
            Some(rest) => [&self.own, rest].concat(),
            None => path.to_vec(),
        }
    }
}

impl Side for Renamed {
    fn look(&self, path: &[u8]) -> Done<Meta> {
        self.inner.look(&self.at(path))
    }

    fn entry(&self, path: &[u8]) -> Done<Item> {
        Ok(Item { name: path.to_vec(), ..self.inner.entry(&self.at(path))? })
    }

    fn list(&self, dir: &[u8]) -> Done<Vec<Item>> {
        self.inner.list(&self.at(dir))
    }

    fn hash(&self, path: &[u8]) -> Done<Hash> {
        self.inner.hash(&self.at(path))
    }

    fn make_dir(&self, path: &[u8], mode: u32) -> Done {
        self.inner.make_dir(&self.at(path), mode)
    }

    fn make_link(&self, path: &[u8], text: &[u8]) -> Done {
        self.inner.make_link(&self.at(path), text)
    }

    fn remove(&self, path: &[u8], kind: Kind) -> Done {
        self.inner.remove(&self.at(path), kind)
    }

    fn rename(&self, from: &[u8], to: &[u8]) -> Done {
        self.inner.rename(&self.at(from), &self.at(to))
    }

    fn set(&self, path: &[u8], kind: Kind, setting: Setting) -> Done {
        self.inner.set(&self.at(path), kind, setting)
    }

    fn sets_time(&self, time: Time) -> bool {
        self.inner.sets_time(time)
    }

    fn keeps_times_of_links(&self) -> bool {
        self.inner.keeps_times_of_links()
    }
}
