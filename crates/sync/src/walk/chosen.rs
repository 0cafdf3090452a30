//! Which names of a list take part.

use super::{LISTED_AT_ONCE, NoPlan, Sink, Walk};
use crate::names::Names;
use crate::plan::parent;
use crate::side::{Kind, Why};
use std::collections::{BTreeMap, BTreeSet};
use std::thread;

impl Walk<'_> {
    /// The names of a list that the source has, and that rules do not leave out. As in rsync a name that the source does
    /// not have is an error, whatever rules say of it, and the directories above a name are no matter of rules.
    pub(super) fn chosen(&self, names: &Names, sink: &mut Sink<'_>) -> Result<Names, NoPlan> {
        let wanted = names.wanted();
        let mut dirs: BTreeMap<&[u8], Vec<&[u8]>> = BTreeMap::new();
        for name in wanted.iter().filter(|name| !name.is_empty()) {
            dirs.entry(parent(name)).or_default().push(name);
        }
        let (dirs, mut kept): (Vec<_>, BTreeSet<&[u8]>) =
            (dirs.into_iter().collect(), BTreeSet::new());
        for wave in dirs.chunks(LISTED_AT_ONCE) {
            let listed = thread::scope(|scope| {
                let mut threads = Vec::new();
                for &(dir, _) in wave {
                    threads.push(scope.spawn(move || self.list(self.source, dir)));
                }
                threads.into_iter().map(thread::ScopedJoinHandle::join).collect::<Vec<_>>()
            });
            for ((dir, names), listed) in wave.iter().zip(listed) {
                let items = match listed {
                    Ok(Ok(items)) => items,
                    Ok(Err(why)) if why.is_absent() => Vec::new(),
                    Ok(Err(why)) if dir.is_empty() => return Err(NoPlan::End(why)),
                    Ok(Err(why)) => {
                        sink.failed(dir, why)?;
                        continue;
                    }
                    Err(_) => return Err(NoPlan::End(Why::of_name("it cannot be read"))),
                };
                for name in names {
                    let last = name.rsplit(|&byte| byte == b'/').next().unwrap_or_default();
                    match items.binary_search_by(|item| item.name[..].cmp(last)) {
                        Ok(at) if self.rules.copies(name, items[at].meta.kind == Kind::Dir) => {
                            kept.insert(name);
                        }
                        Ok(_) => {}
                        Err(_) => sink.failed(name, Why::of_name("no such file or directory"))?,
                    }
                }
            }
        }
        Ok(names.kept(|name| kept.contains(name)))
    }
}
