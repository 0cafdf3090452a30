//! What is deleted: names that the source does not have, and what is in them.

use super::{NoPlan, Sink, Walk};
use crate::options::Excluded;
use crate::plan::{Doomed, join};
use crate::side::{Kind, Meta};

impl Walk<'_> {
    /// Adds a name that the source does not have, and what is in it. Tells whether it is deleted: a directory stays if
    /// anything in it does.
    pub(super) fn delete(
        &self,
        path: &[u8],
        meta: &Meta,
        sink: &mut Sink<'_>,
    ) -> Result<bool, NoPlan> {
        if self.is_kept(path, meta) {
            return Ok(false);
        }
        if meta.kind == Kind::Dir {
            let inner = match self.target.list(path) {
                Ok(inner) => inner,
                Err(why) => return sink.failed(path, why).map(|()| false),
            };
            let mut is_empty = true;
            for item in &inner {
                is_empty &= self.delete(&join(path, &item.name), &item.meta, sink)?;
            }
            if !is_empty {
                return Ok(false);
            }
        }
        sink.hold(path)?;
        sink.plan.touch(path);
        sink.plan.delete.push(Doomed { path: path.to_vec(), meta: *meta });
        Ok(true)
    }

    /// Whether rules, or the suffix of backups, keep a name that the source does not have.
    fn is_kept(&self, path: &[u8], meta: &Meta) -> bool {
        let is_dir = meta.kind == Kind::Dir;
        let suffix = self.options.backup.as_deref();
        let is_backup = suffix.is_some_and(|suffix| !is_dir && path.ends_with(suffix.as_bytes()));
        let excluded = self.options.deletion.map(|deletion| deletion.excluded);
        let side = match excluded {
            Some(Excluded::Deleted) => self.rules.may_delete_excluded(path, is_dir),
            _ => self.rules.may_delete(path, is_dir),
        };
        is_backup || !side
    }
}
