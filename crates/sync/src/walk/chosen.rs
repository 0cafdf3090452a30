//! Which names of a list take part.

use super::{LISTED_AT_ONCE, NoPlan, Sink, Walk};
use crate::each::at_once;
use crate::names::Names;
use crate::plan::{join, parent};
use crate::side::{Done, Item, Kind, Why};
use std::collections::{BTreeMap, BTreeSet};

/// Names that are looked for, by their directories.
type Sought = BTreeMap<Vec<u8>, BTreeSet<Vec<u8>>>;

/// The names of a list and the directories above them, by the number of directories above each.
fn levels(wanted: &BTreeSet<Vec<u8>>) -> Vec<Sought> {
    let mut levels: Vec<Sought> = Vec::new();
    for name in wanted {
        let mut path = &name[..];
        while !path.is_empty() {
            let depth = path.iter().filter(|&&byte| byte == b'/').count();
            if levels.len() <= depth {
                levels.resize_with(depth + 1, Sought::new);
            }
            let is_new =
                levels[depth].entry(parent(path).to_vec()).or_default().insert(path.to_vec());
            path = if is_new { parent(path) } else { b"" };
        }
    }
    levels
}

impl Walk<'_> {
    /// The names of a list that the source has, and that rules do not leave out. As in rsync a name that the source does
    /// not have is an error, whatever rules say of it, and the directories above a name are no matter of rules. A link is
    /// followed where the list has names below it, or has it with a slash at its end.
    pub(super) fn chosen(&self, names: &Names, sink: &mut Sink<'_>) -> Result<Names, NoPlan> {
        let wanted = names.wanted();
        let mut kept: BTreeSet<Vec<u8>> = BTreeSet::new();
        let mut open = BTreeSet::from([Vec::new()]);
        for level in levels(&wanted) {
            let mut opened = BTreeSet::new();
            let (due, lost): (Vec<_>, Vec<_>) =
                level.into_iter().partition(|(dir, _)| open.contains(dir));
            for name in
                lost.iter().flat_map(|(_, names)| names).filter(|name| wanted.contains(*name))
            {
                sink.failed(name, no_such())?;
            }
            for wave in due.chunks(LISTED_AT_ONCE) {
                for ((dir, sought), listed) in wave.iter().zip(self.listed(wave)) {
                    let mut items = match listed {
                        Ok(items) => items,
                        Err(why) if why.is_absent() => Vec::new(),
                        Err(why) if dir.is_empty() => return Err(NoPlan::End(why)),
                        Err(why) => {
                            sink.failed(dir, why)?;
                            continue;
                        }
                    };
                    for path in sought {
                        let last = path.rsplit(|&byte| byte == b'/').next().unwrap_or_default();
                        let at = items.binary_search_by(|item| item.name[..].cmp(last));
                        let Ok(at) = at else {
                            if wanted.contains(path) {
                                sink.failed(path, no_such())?;
                            }
                            continue;
                        };
                        let was = items[at].meta.kind;
                        if let Err(why) = self.follow(names, path, &mut items[at]) {
                            sink.failed(path, why)?;
                            continue;
                        }
                        let is_dir = items[at].meta.kind == Kind::Dir;
                        if is_dir {
                            opened.insert(path.clone());
                        }
                        // A link that is named, and followed for names below it, does not bring all that is there.
                        let is_named = was != Kind::Link || !is_dir || names.is_opened(path);
                        if wanted.contains(path) && is_named && self.rules.copies(path, is_dir) {
                            kept.insert(path.clone());
                        }
                    }
                    items.retain(|item| self.takes_part(&join(dir, &item.name), item));
                    self.source.keep(dir, items);
                }
            }
            open = opened;
        }
        Ok(names.kept(|name| kept.contains(name)))
    }

    /// Lists directories of the source, all at once.
    fn listed(&self, dirs: &[(Vec<u8>, BTreeSet<Vec<u8>>)]) -> Vec<Done<Vec<Item>>> {
        at_once(dirs, LISTED_AT_ONCE, |(dir, _)| self.list(self.source, dir))
    }

    /// A link that the list takes for a directory becomes what it leads to, if that is one.
    fn follow(&self, names: &Names, path: &[u8], item: &mut Item) -> Done {
        if item.meta.kind == Kind::Link
            && names.means_dir(path)
            && let Some(meta) = self.source.follow(path)?
        {
            *item = Item { name: std::mem::take(&mut item.name), meta, link: None };
        }
        Ok(())
    }
}

fn no_such() -> Why {
    Why::of_name("no such file or directory")
}
