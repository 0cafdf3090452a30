//! Contents of files that both ends have, which are compared by their hashes.

use super::Walk;
use crate::each::at_once;
use crate::item::Comparison;
use crate::options::{Existing, Quick};
use crate::plan::join;
use crate::side::{Done, Item, Kind};
use std::collections::BTreeMap;

/// Files that are compared at once.
const COMPARED_AT_ONCE: usize = 8;

/// Results of the comparisons in a directory, by the names of the files.
pub(super) type Compared<'a> = BTreeMap<&'a [u8], Done<Comparison>>;

impl Walk<'_> {
    /// Compares the files of a directory that both ends have with one size, if contents count.
    pub(super) fn contents<'a>(
        &self,
        dir: &[u8],
        source: &'a [Item],
        target: &[Item],
    ) -> Compared<'a> {
        let options = self.options;
        if options.quick != Quick::Content || options.existing == Existing::LeftAlone {
            return Compared::new();
        }
        let is_due = |item: &&Item| {
            let at = target.binary_search_by(|other| other.name.cmp(&item.name));
            let is_like =
                |there: &Item| (there.meta.kind, there.meta.size) == (Kind::File, item.meta.size);
            item.meta.kind == Kind::File
                && at.is_ok_and(|at| is_like(&target[at]))
                && self.takes_part(&join(dir, &item.name), item)
        };
        let due: Vec<&Item> = source.iter().filter(is_due).collect();
        let compared = at_once(&due, COMPARED_AT_ONCE, |item| {
            let path = join(dir, &item.name);
            let hashes = at_once(&[self.source, self.target], 2, |side| side.hash(&path));
            let hashes = hashes.into_iter().collect::<Done<Vec<_>>>()?;
            let is_same = hashes.windows(2).all(|two| two[0] == two[1]);
            Ok(if is_same { Comparison::Same } else { Comparison::Differs })
        });
        due.iter().map(|item| &item.name[..]).zip(compared).collect()
    }
}
