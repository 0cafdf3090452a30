//! What a copy promises of the disk, at whatever point the power failed.

use super::disk::{Lasting, Node};
use super::record::Number;
use crate::scene::{Durable, Manner, Scene};
use crate::tree::is_partial;
use hikyaku_transfer::{Journal, Part, Reached, Remains, SegmentHash, SegmentIndex};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A name for one thing: what is owned outlives the state that it is compared with.
pub(crate) type Held = BTreeMap<PathBuf, Node>;

/// What stood where.
pub(crate) struct Promise {
    pub(crate) scene: &'static Scene,
    pub(crate) source: Held,
    pub(crate) old: Held,
    /// Which file got which name in the end.
    pub(crate) ended: BTreeMap<PathBuf, Number>,
    /// The roots of the target and of the program's state.
    pub(crate) target: Number,
    pub(crate) state: Number,
}

/// Whether the program has told its user that all is done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Told {
    Nothing,
    Done,
}

/// Where journals are, in the program's state.
const JOURNALS: &str = "hikyaku/copies";

impl Promise {
    /// What is wrong with what is left.
    pub(crate) fn broken(&self, left: &Lasting, told: Told) -> Vec<String> {
        let target = left.below(self.target);
        let mut wrong = Vec::new();
        // Who does not wait for the disk is promised nothing but that an old attempt is not believed.
        let is_promised = self.scene.durable == Durable::Yes;
        let named = target.iter().filter(|(path, _)| is_promised && !is_partial(path));
        for (path, node) in named {
            let is_old = self.old.get(path).is_some_and(|old| is_same(old, node));
            let is_new = self.source.get(path).is_some_and(|new| is_same(new, node));
            let is_over = self.scene.manner == Manner::InPlace && self.old.contains_key(path);
            if told == Told::Nothing && !is_old && !is_new && !is_over {
                wrong.push(format!("{} is neither the old nor the new one", path.display()));
            }
        }
        let old = self.old.keys().filter(|path| !is_partial(path));
        let lost = old.filter(|path| !target.contains_key(*path));
        wrong.extend(lost.map(|path| format!("the old {} is gone", path.display())));
        if told == Told::Done {
            for (path, new) in &self.source {
                if !target.get(path).is_some_and(|node| is_same(new, node)) {
                    wrong.push(format!("{} was told done, and is not there", path.display()));
                }
            }
        }
        for (path, node) in left.below(self.state) {
            if let (Node::File(bytes), true) = (node, path.starts_with(JOURNALS)) {
                wrong.extend(self.believed(bytes, left, &target));
            }
        }
        wrong
    }

    /// What a receiver would take from a journal without reading it again, and is not so.
    fn believed(
        &self,
        journal: &[u8],
        left: &Lasting,
        target: &BTreeMap<PathBuf, &Node>,
    ) -> Vec<String> {
        // One that cannot be read is not believed.
        let Ok(journal) = Journal::read(journal) else { return Vec::new() };
        let mut wrong = Vec::new();
        for (path, remains) in &journal.files {
            let path = Path::new(OsStr::from_bytes(path));
            match remains {
                Remains::Part(part) => wrong.extend(unproven(path, part, target)),
                Remains::Whole(done) if done.reached == Reached::Disk => {
                    let number = left.find(self.target, path);
                    // Another file than the one that got the name there has another version.
                    let is_it = number.is_some() && number == self.ended.get(path).copied();
                    let is_new = self.source.get(path).zip(target.get(path));
                    if is_it && !is_new.is_some_and(|(new, node)| is_same(new, node)) {
                        wrong.push(format!("the journal takes {} for done", path.display()));
                    }
                }
                // It is read again, or begun anew.
                Remains::Whole(_) | Remains::Void(_) => {}
            }
        }
        wrong
    }
}

/// What is proven of an unfinished file, and is not so.
fn unproven(path: &Path, part: &Part, target: &BTreeMap<PathBuf, &Node>) -> Vec<String> {
    let partial = path.with_file_name(OsStr::from_bytes(&part.record.partial));
    let proven = &part.proven;
    // A file under its own name is read again; where there is none nothing is believed.
    let Some(Node::File(bytes)) = target.get(&partial).filter(|_| partial != path) else {
        return Vec::new();
    };
    let is_so = |index: SegmentIndex, hash: SegmentHash| {
        let range = proven.file().range(index)?;
        let bytes = bytes.get(range.start as usize..range.end as usize)?;
        (SegmentHash::new(proven.file(), index, bytes)? == hash).then_some(())
    };
    let mut wrong = Vec::new();
    for (first, hashes) in proven.runs() {
        for (index, hash) in (first.0..).map(SegmentIndex).zip(hashes) {
            if is_so(index, hash).is_none() {
                wrong.push(format!("the journal proves part {} of {}", index.0, path.display()));
            }
        }
    }
    wrong
}

fn is_same(a: &Node, b: &Node) -> bool {
    match (a, b) {
        (Node::File(a), Node::File(b)) => Arc::ptr_eq(a, b) || a == b,
        (Node::Dir(_), Node::Dir(_)) => true,
        (Node::Link(a), Node::Link(b)) => a == b,
        _ => false,
    }
}
