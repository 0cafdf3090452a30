//! Changes of permission bits, and of symbolic links.

use crate::convert::{owner, time};
use crate::local::Local;
use hikyaku_fs::Meta;
use hikyaku_store::{Ability, Change, Doing, ErrorKind, Kind, Result, StorePath, doing};

impl Local {
    /// Sets all twelve permission bits of a file or directory: set-user-id, set-group-id and sticky bit, too. A caller
    /// with a mode from a peer uses [`Store::change`](hikyaku_store::Store::change).
    ///
    /// # Errors
    ///
    /// There is no such file or directory, or it is another's.
    pub fn set_mode(&self, path: &StorePath, mode: u32) -> Result<()> {
        let doing = doing("change", path);
        let opened = match (self.meta(doing)?.kind, path.below_root()) {
            (Kind::File, Some(below)) => self.root.read(below).or_else(|_| self.root.write(below)),
            (Kind::Dir, _) => {
                return doing.or(self.dir(path).and_then(|dir| Meta::set_all_bits(&dir, mode)));
            }
            _ => return doing.fail(ErrorKind::Unsupported(Ability::Modes)),
        };
        doing.or(opened.and_then(|file| Meta::set_all_bits(&file, mode)))
    }

    pub(crate) fn change_link(&self, doing: Doing<'_>, change: &Change) -> Result<()> {
        if change.mode.is_some() {
            return doing.fail(ErrorKind::Unsupported(Ability::Modes));
        }
        let (dir, name) = self.parent(doing)?;
        if let Some(new) = change.owner {
            doing.or(Meta::set_link_owner(&dir, &name, owner(new)))?;
        }
        change
            .modified
            .map_or(Ok(()), |new| doing.or(Meta::set_link_modified(&dir, &name, time(new))))
    }
}
