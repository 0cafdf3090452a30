//! Walks and batches that violate one rule each.

use super::{Rule, is_detected};
use hikyaku_store::{
    Entry, ErrorKind, Kind, Naming, Op, Put, Reply, Result, Store, StoreError, StorePath, do_one,
};
use std::ops::ControlFlow;

/// The mistake of a walk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Walk {
    /// A directory comes after its entries.
    EntriesFirst,
    /// A file comes twice.
    Twice,
    /// The size of a file is not that of the file.
    Sizes,
    /// A link has no text.
    NoText,
    /// A root that is a file has no entry.
    NoRoot,
    /// A missing root is an empty tree.
    NoError,
    /// It goes on after its caller has enough.
    Unstoppable,
    /// It ends at the first directory that cannot be listed.
    Ends,
    /// It is silent about such a directory.
    Silent,
}

/// The mistake of a batch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Batch {
    /// An operation has two results.
    Twice,
    /// The last operation comes first.
    Backwards,
    /// Nothing is done after an operation that has failed.
    Stops,
    /// Files get other contents of the same size.
    Contents,
    /// A file replaces an existing one whatever its naming is.
    Replaces,
    /// Files have no mode and no time.
    NoMetadata,
}

#[test]
fn each_violated_rule_of_a_walk_is_detected() {
    for (rule, case) in [
        (Walk::EntriesFirst, "R9: a walk has a directory before its entries"),
        (Walk::Twice, "R9: a walk has a directory before its entries"),
        (Walk::Sizes, "R9: a walk reports what a look does"),
        (Walk::NoText, "R9: a walk has links with their text"),
        (Walk::NoRoot, "R9: a walk of a file or a link has it alone"),
        (Walk::NoError, "R9: a walk of a missing root fails"),
        (Walk::Unstoppable, "R9: a walk ends when its caller has enough"),
        (Walk::Ends, "R9: a walk goes on after a directory that cannot be listed"),
        (Walk::Silent, "R9: a walk goes on after a directory that cannot be listed"),
    ] {
        is_detected(Rule::Walk(rule), case);
    }
}

#[test]
fn each_violated_rule_of_a_batch_is_detected() {
    for (rule, case) in [
        (Batch::Twice, "R10: a batch has one result for each operation"),
        (Batch::Backwards, "R10: operations on one path are in order"),
        (Batch::Stops, "R10: an operation that fails does not affect the others"),
        (Batch::Contents, "R10: files of a batch are whole"),
        (Batch::Replaces, "R10: a file of a batch obeys the naming"),
        (Batch::NoMetadata, "R10: mode, time and durability come with a file of a batch"),
    ] {
        is_detected(Rule::Batch(rule), case);
    }
}

impl Walk {
    pub(super) fn walk(
        self,
        store: &dyn Store,
        root: &StorePath,
        each: &mut dyn FnMut(Entry) -> ControlFlow<()>,
    ) -> Result<()> {
        let mut all = Vec::new();
        let walked = store.walk(root, &mut |entry| {
            all.push(entry);
            ControlFlow::Continue(())
        });
        if self == Self::NoError && walked.is_err() {
            return Ok(());
        }
        walked?;
        let mut is_over = false;
        match self {
            Self::EntriesFirst => all.reverse(),
            Self::Twice => all.extend(all.last().cloned()),
            Self::NoRoot if all.len() == 1 => all.retain(|entry| entry.path == StorePath::ROOT),
            Self::Silent => all.retain(|entry| entry.found.is_ok()),
            _ => {}
        }
        for mut entry in all {
            match (self, &mut entry.found) {
                (Self::Sizes, Ok(found)) if found.kind == Kind::File => found.size += 1,
                (Self::NoText, Ok(_)) => entry.link = None,
                (Self::Ends, Err(_)) => is_over = true,
                _ => {}
            }
            let flow = each(entry);
            if is_over || (flow.is_break() && self != Self::Unstoppable) {
                break;
            }
        }
        Ok(())
    }
}

impl Batch {
    pub(super) fn batch(
        self,
        store: &dyn Store,
        ops: &[Op<'_>],
        each: &mut dyn FnMut(usize, Result<Reply>),
    ) {
        let mut order: Vec<usize> = (0..ops.len()).collect();
        if self == Self::Backwards {
            order.reverse();
        }
        let mut is_over = false;
        for index in order {
            let result = match is_over {
                true => Err(StoreError::new("go on", &StorePath::ROOT, ErrorKind::Gone)),
                false => self.one(store, &ops[index]),
            };
            is_over |= self == Self::Stops && result.is_err();
            if self == Self::Twice {
                each(index, result.clone());
            }
            each(index, result);
        }
    }

    fn one(self, store: &dyn Store, op: &Op<'_>) -> Result<Reply> {
        let Op::Put(put) = *op else { return do_one(store, op) };
        let (other, finish) = (vec![b'?'; put.bytes.len()], hikyaku_store::Finish::default());
        let put = match self {
            Self::Contents => Put { bytes: &other, ..put },
            Self::Replaces => Put { naming: Naming::Replace, ..put },
            Self::NoMetadata => Put { finish: &finish, ..put },
            _ => put,
        };
        do_one(store, &Op::Put(put))
    }
}
