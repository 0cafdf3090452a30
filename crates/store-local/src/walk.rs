//! Walks: each directory is opened once, beneath the root and through no link, and its entries are looked at by that
//! descriptor.

use crate::local::Local;
use hikyaku_fs::{Dir, Name, Token};
use hikyaku_store::{Entry, Kind, Result, Store, StorePath, doing, walk_dirs};
use rustix::io::Errno;
use std::ops::ControlFlow;

impl Local {
    /// [`Store::walk`].
    pub(crate) fn walk_beneath(
        &self,
        root: &StorePath,
        each: &mut dyn FnMut(Entry) -> ControlFlow<()>,
    ) -> Result<()> {
        let found = self.look(root)?;
        let link = (found.kind == Kind::Link).then(|| self.read_link(root)).transpose()?;
        let root = Entry::new(root.clone(), Ok(found), link);
        walk_dirs(root, each, |dir, each| self.entries(dir, each))
    }

    /// Passes on the entries of one directory in the order of their names, until `each` breaks.
    fn entries(
        &self,
        dir: &StorePath,
        each: &mut dyn FnMut(Entry) -> ControlFlow<()>,
    ) -> Result<()> {
        let doing = doing("list", dir);
        let open = doing.or(self.dir(dir))?;
        let mut listed = doing.or(open.names_from(None, usize::MAX))?;
        listed.names.sort_unstable();
        let names = listed.names.iter().filter(|name| Token::of(name).is_none());
        for name in names {
            let entry = match dir.join(name) {
                Ok(path) => self.entry((&open, name), path),
                Err(_) => Some(Entry::of_bad_name(dir)),
            };
            if entry.is_some_and(|entry| each(entry).is_break()) {
                return Ok(());
            }
        }
        if listed.skipped > 0 {
            // It is the last entry, so that a break has no further effect.
            let _ = each(Entry::of_bad_name(dir));
        }
        Ok(())
    }

    /// The entry of this name in an open directory; `None` if it was removed after the listing.
    fn entry(&self, (dir, name): (&Dir, &Name), path: StorePath) -> Option<Entry> {
        let read = |path: &StorePath| -> Result<_> {
            let Some(meta) = doing("look at", path).or(dir.meta(name))? else { return Ok(None) };
            let found = self.sizes().found(&meta, dir);
            let text = match (found.kind == Kind::Link).then(|| dir.read_link(name)) {
                Some(Err(error)) if error.errno() == Some(Errno::NOENT) => return Ok(None),
                Some(text) => Some(doing("read the link", path).or(text)?),
                None => None,
            };
            Ok(Some((found, text)))
        };
        match read(&path) {
            Ok(read) => read.map(|(found, text)| Entry::new(path, Ok(found), text)),
            Err(error) => Some(Entry::new(path, Err(error), None)),
        }
    }
}
