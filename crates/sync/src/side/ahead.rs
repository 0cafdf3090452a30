//! A whole tree of a storage by one walk: over a long path, a request for each directory would cost a round trip each.

use super::{Item, Kind, Listings, Side, Spot};
use crate::plan::parent;
use hikyaku_store::Entry;
use std::collections::BTreeSet;
use std::ops::ControlFlow;

/// The share of what one listing may take that all of a tree may take together.
const LISTINGS: u64 = 8;

impl Side {
    /// Lists everything in and below a directory, if the storage does that by fewer requests than [`Side::list`] sends, and
    /// keeps it. A directory that cannot be read is not kept, and neither is a tree that takes too much memory: what is not
    /// kept is listed when it is its turn.
    pub(crate) fn walk_ahead(&self, dir: &[u8]) {
        let Ok(Spot { tree, path: top }) = self.spot(dir) else { return };
        let Some(root) = tree.walked().filter(|_| self.renamed.is_none()) else { return };
        let (mut dirs, mut unread) = (Listings::new(), BTreeSet::new());
        let (most, mut bytes) = (self.listing_max.saturating_mul(LISTINGS), 0);
        let mut add = |entry: Entry| {
            let below = entry.path.as_bytes().strip_prefix(root.as_bytes()).unwrap_or_default();
            let at = below.strip_prefix(b"/").unwrap_or(below).to_vec();
            match entry.found {
                Err(_) => unread.extend([parent(&at).to_vec(), at]),
                Ok(found) => {
                    if found.kind == Kind::Dir {
                        dirs.entry(at.clone()).or_default();
                    }
                    if at != dir {
                        let name = at.rsplit(|&byte| byte == b'/').next().unwrap_or_default();
                        bytes += super::entry_bytes(name);
                        let (meta, link) = (tree.meta(&entry.path, &found), entry.link.map(Ok));
                        let items = dirs.entry(parent(&at).to_vec()).or_default();
                        items.push(Item { name: name.to_vec(), meta, link });
                    }
                }
            }
            if bytes > most { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let walked = tree.store().walk(&top, &mut add);
        if walked.is_ok() && bytes <= most {
            dirs.retain(|dir, _| !unread.contains(dir));
            super::lock(&self.ahead).extend(dirs);
        }
    }
}
