//! What a power failure at this moment, or at that of a rename, would have taken.

use super::{ROOT, Store};
use crate::node::Kind;
use std::ffi::OsStr;

impl Store {
    /// A node gets its final name.
    pub(super) fn judge_name(&mut self, number: u64, name: &OsStr) {
        let Ok(content) = self.content(number) else { return };
        let (is_unsynced, is_unclosed) = (content.is_unsynced, content.is_unclosed);
        let name = name.display().to_string();
        if is_unclosed {
            self.record.named_unclosed.push(name.clone());
        }
        if is_unsynced {
            self.record.named_unsynced.push(name);
        }
    }

    /// All that is not durable: files with their paths, and directories of which names are not.
    pub(crate) fn unsynced(&self) -> Vec<String> {
        let mut all = Vec::new();
        self.add_unsynced(ROOT, "", &mut all);
        all
    }

    fn add_unsynced(&self, number: u64, path: &str, all: &mut Vec<String>) {
        let Ok(dir) = self.dir(number) else { return };
        for (name, child) in &dir.names {
            let below = format!("{path}/{}", name.display());
            if dir.unsynced.contains(name) {
                all.push(format!("the name of {below}"));
            }
            match self.node(*child).map(|node| &node.kind) {
                Ok(Kind::File(content)) if content.is_unsynced => {
                    all.push(format!("the content of {below}"));
                }
                Ok(Kind::Dir(_)) => self.add_unsynced(*child, &below, all),
                _ => {}
            }
        }
    }
}
