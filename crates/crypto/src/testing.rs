//! What tests of several files share: a folder that goes away with its owner.

use crate::random::random_u64;
use std::fs;
use std::path::PathBuf;

/// A folder of one test.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new() -> Self {
        let path = std::env::temp_dir().join(format!("hikyaku-crypto-{:016x}", random_u64()));
        fs::create_dir(&path).expect("the folder for temporary files can be written");
        Self(path)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
