//! Stores in memory that violate one rule each, which the suite must detect.

mod calls;

use hikyaku_fs::Name;
use hikyaku_store::testing::{Forbidden, Rig, failures};
use hikyaku_store::{
    Abilities, Access, Attribute, Change, Cursor, Draft, Entry, ErrorKind, Extent, Fault, Faulty,
    Finish, Found, Item, Kind, Make, Memory, Naming, Op, Open, Operation, Page, Place, Replace,
    Reply, Result, Space, Store, StoreError, StorePath, SyncScope, Token, Version, When, Writes,
};
use std::ops::{ControlFlow, Range};
use std::sync::{Arc, Mutex};

/// The violated rule.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Rule {
    /// R1: an error looks like the end of the file.
    ShortReads,
    /// R2: the version does not change with the content.
    Versions,
    /// R3: a draft has its final name at once.
    Drafts,
    /// R5: bytes beside a write are written back as they were read before.
    Writers,
    /// R6: a symbolic link in a path is followed.
    Links,
    /// R7: an unsupported operation reports success.
    Errors,
    /// R8: the store claims to have holes, and reports data.
    Holes,
    /// R9, see [`calls::Walk`].
    Walk(calls::Walk),
    /// R10, see [`calls::Batch`].
    Batch(calls::Batch),
    /// R11: pieces of a draft are appended, in the order in which they come.
    Appends,
    /// R11: the store declares any order, and fails for all but one.
    OneOrder,
}

#[derive(Clone)]
struct Broken {
    inner: Faulty<Memory>,
    rule: Rule,
    /// The names of unfinished drafts.
    drafts: Arc<Mutex<Vec<StorePath>>>,
}

struct BrokenRig(Broken);

impl Rig for BrokenRig {
    fn store(&self) -> Box<dyn Store> {
        Box::new(self.0.clone())
    }

    fn forbid(&self, dir: &StorePath) -> Forbidden {
        crate::forbid(&self.0.inner, dir)
    }
}

fn of(rule: Rule) -> Vec<String> {
    failures(|| {
        let drafts = Arc::default();
        BrokenRig(Broken { inner: Faulty::new(Memory::default()), rule, drafts })
    })
}

#[test]
fn each_violated_rule_is_detected() {
    for (rule, word) in [
        (Rule::ShortReads, "R1"),
        (Rule::Versions, "R2"),
        (Rule::Drafts, "R3"),
        (Rule::Writers, "R5"),
        (Rule::Links, "R6"),
        (Rule::Errors, "R7"),
        (Rule::Holes, "R8"),
        (Rule::Appends, "R11: pieces in another order make no other file"),
        (Rule::OneOrder, "R11: pieces in the declared order make the file"),
    ] {
        is_detected(rule, word);
    }
}

/// The case whose name begins with this fails for the store.
fn is_detected(rule: Rule, case: &str) {
    let failed = of(rule);
    assert!(failed.iter().any(|name| name.starts_with(case)), "{rule:?}: {failed:#?}");
}

struct Lying(Memory);

impl Rig for Lying {
    fn store(&self) -> Box<dyn Store> {
        let store = Faulty::new(self.0.clone());
        for operation in [Operation::SyncFile, Operation::SyncDir] {
            let when = When { operation, path: None, nth: 1, times: u32::MAX };
            store.add(when, Fault::LyingSync);
        }
        Box::new(store)
    }

    fn crash(&self) -> Option<Box<dyn Store>> {
        Some(Box::new(self.0.crash()))
    }
}

#[test]
fn a_lying_sync_is_detected() {
    let failed = failures(|| Lying(Memory::default()));
    assert!(failed.iter().any(|name| name.starts_with("R4")), "{failed:#?}");
}

impl Broken {
    /// Follows a symbolic link in the first name of a path, which rule R6 forbids.
    fn through(&self, path: &StorePath) -> StorePath {
        let names: Vec<&[u8]> = path.names().collect();
        let first = names.first().and_then(|name| StorePath::new(name).ok());
        match first.map(|first| self.inner.read_link(&first)) {
            Some(Ok(text)) if self.rule == Rule::Links && names.len() > 1 => {
                StorePath::new(&[&text, &names[1..].join(&b'/')[..]].join(&b'/'))
                    .unwrap_or_else(|_| path.clone())
            }
            _ => path.clone(),
        }
    }
}

impl Store for Broken {
    fn abilities(&self) -> Abilities {
        let writes = if self.rule == Rule::Appends { Writes::InOrder } else { Writes::Anywhere };
        Abilities { writes, ..self.inner.abilities() }
    }

    fn look(&self, path: &StorePath) -> Result<Found> {
        let path = self.through(path);
        let is_draft = self.drafts.lock().unwrap().contains(&path);
        match self.inner.look(&path) {
            Err(error) if error.kind == ErrorKind::NotFound && is_draft => {
                self.inner.look(&StorePath::ROOT)
            }
            looked => looked,
        }
    }

    fn list(&self, dir: &StorePath, after: Option<&Cursor>, room: usize) -> Result<Page> {
        let mut page = self.inner.list(dir, after, room)?;
        for draft in self.drafts.lock().unwrap().iter() {
            if let Some((parent, name)) = draft.split()
                && parent == *dir
            {
                let found = self.inner.look(&StorePath::ROOT)?;
                page.items.push(Item { name: Name::new(name.as_bytes()).unwrap(), found });
            }
        }
        Ok(page)
    }

    fn open(&self, path: &StorePath, access: Access) -> Result<Box<dyn Open>> {
        let inner = self.inner.open(&self.through(path), access)?;
        Ok(Box::new(BrokenOpen { inner, rule: self.rule }))
    }

    fn create(&self, path: &StorePath, make: &Make) -> Result<Box<dyn Draft>> {
        let inner = self.inner.create(&self.through(path), make)?;
        if self.rule == Rule::Drafts {
            self.drafts.lock().unwrap().push(path.clone());
        }
        let drafts = self.drafts.clone();
        let (rule, path, end) = (self.rule, path.clone(), Mutex::default());
        Ok(Box::new(BrokenDraft { inner, rule, path, end, drafts }))
    }

    fn take_up(&self, path: &StorePath, token: &Token) -> Result<Box<dyn Draft>> {
        self.inner.take_up(path, token)
    }

    fn make_dir(&self, path: &StorePath, mode: u32) -> Result<()> {
        self.inner.make_dir(&self.through(path), mode)
    }

    fn make_link(&self, path: &StorePath, text: &[u8]) -> Result<()> {
        self.inner.make_link(&self.through(path), text)
    }

    fn read_link(&self, path: &StorePath) -> Result<Vec<u8>> {
        self.inner.read_link(path)
    }

    fn remove(&self, path: &StorePath, kind: Kind) -> Result<()> {
        match self.inner.remove(&self.through(path), kind) {
            Err(_) if self.rule == Rule::Errors => Ok(()),
            removed => removed,
        }
    }

    fn rename(&self, from: &StorePath, to: &StorePath, replace: Replace) -> Result<()> {
        self.inner.rename(&self.through(from), to, replace)
    }

    fn change(&self, path: &StorePath, change: &Change) -> Result<()> {
        self.inner.change(&self.through(path), change)
    }

    fn attributes(&self, path: &StorePath) -> Result<Vec<Attribute>> {
        self.inner.attributes(path)
    }

    fn space(&self) -> Result<Space> {
        self.inner.space()
    }

    fn places(&self, path: &StorePath) -> Result<Vec<Place>> {
        self.inner.places(path)
    }

    fn sync(&self, dirs: &[StorePath]) -> Result<()> {
        self.inner.sync(dirs)
    }

    fn walk(&self, root: &StorePath, each: &mut dyn FnMut(Entry) -> ControlFlow<()>) -> Result<()> {
        match self.rule {
            Rule::Walk(rule) => rule.walk(&self.inner, root, each),
            _ => self.inner.walk(root, each),
        }
    }

    fn batch(&self, ops: &[Op<'_>], each: &mut dyn FnMut(usize, Result<Reply>)) {
        match self.rule {
            Rule::Batch(rule) => rule.batch(&self.inner, ops, each),
            _ => self.inner.batch(ops, each),
        }
    }
}

struct BrokenOpen {
    inner: Box<dyn Open>,
    rule: Rule,
}

impl Open for BrokenOpen {
    fn is_unchanged(&self) -> Result<bool> {
        self.inner.is_unchanged()
    }

    fn found(&self) -> Result<Found> {
        let mut found = self.inner.found()?;
        if self.rule == Rule::Versions {
            found.version = Some(Version([1; 32]));
        }
        Ok(found)
    }

    fn read_at(&self, at: u64, into: &mut [u8]) -> Result<usize> {
        let length = if self.rule == Rule::ShortReads { into.len().min(4096) } else { into.len() };
        self.inner.read_at(at, &mut into[..length])
    }

    fn write_at(&self, at: u64, bytes: &[u8]) -> Result<()> {
        if self.rule != Rule::Writers {
            return self.inner.write_at(at, bytes);
        }
        write_whole_blocks(
            at,
            bytes,
            |at, into| self.inner.read_at(at, into),
            |at, bytes| self.inner.write_at(at, bytes),
        )
    }

    fn set_len(&self, length: u64) -> Result<()> {
        self.inner.set_len(length)
    }

    fn extents(&self, range: Range<u64>) -> Result<Vec<Extent>> {
        if self.rule != Rule::Holes {
            return self.inner.extents(range);
        }
        let end = range.end.min(self.inner.found()?.size);
        let all = range.start..end;
        Ok(if all.is_empty() { Vec::new() } else { vec![Extent::Data(all)] })
    }

    fn sync(&self, scope: SyncScope) -> Result<()> {
        self.inner.sync(scope)
    }
}

const BLOCK_BYTES: u64 = 4096;
const EINVAL: i32 = 22;

/// Reads the blocks around a range, and later writes them back with the range in them.
fn write_whole_blocks(
    at: u64,
    bytes: &[u8],
    read: impl Fn(u64, &mut [u8]) -> Result<usize>,
    write: impl Fn(u64, &[u8]) -> Result<()>,
) -> Result<()> {
    let begin = at / BLOCK_BYTES * BLOCK_BYTES;
    let end = at + bytes.len() as u64;
    let mut block = vec![0; (end.div_ceil(BLOCK_BYTES) * BLOCK_BYTES - begin) as usize];
    let length = read(begin, &mut block)?.max((end - begin) as usize);
    let from = (at - begin) as usize;
    block[from..from + bytes.len()].copy_from_slice(bytes);
    std::thread::yield_now();
    write(begin, &block[..length])
}

struct BrokenDraft {
    inner: Box<dyn Draft>,
    rule: Rule,
    path: StorePath,
    /// The end of the last piece.
    end: Mutex<u64>,
    drafts: Arc<Mutex<Vec<StorePath>>>,
}

impl BrokenDraft {
    fn forget(&self) {
        self.drafts.lock().unwrap().retain(|draft| *draft != self.path);
    }
}

impl Draft for BrokenDraft {
    fn write_at(&self, at: u64, bytes: &[u8]) -> Result<()> {
        if matches!(self.rule, Rule::Appends | Rule::OneOrder) {
            let mut end = self.end.lock().unwrap();
            if self.rule == Rule::OneOrder && at != *end {
                return Err(StoreError::new("write", &self.path, ErrorKind::System(EINVAL)));
            }
            self.inner.write_at(*end, bytes)?;
            *end += bytes.len() as u64;
            return Ok(());
        }
        if self.rule != Rule::Writers {
            return self.inner.write_at(at, bytes);
        }
        write_whole_blocks(
            at,
            bytes,
            |at, into| self.inner.read_at(at, into),
            |at, bytes| self.inner.write_at(at, bytes),
        )
    }

    fn read_at(&self, at: u64, into: &mut [u8]) -> Result<usize> {
        self.inner.read_at(at, into)
    }

    fn set_len(&self, length: u64) -> Result<()> {
        self.inner.set_len(length)
    }

    fn token(&self) -> Token {
        self.inner.token()
    }

    fn keep(&self) {
        self.inner.keep();
    }

    fn sync(&self) -> Result<()> {
        self.inner.sync()
    }

    fn name(self: Box<Self>, naming: Naming, finish: &Finish) -> Result<Found> {
        self.forget();
        self.inner.name(naming, finish)
    }

    fn discard(self: Box<Self>) {
        self.forget();
        self.inner.discard();
    }
}

/// The message of an error is a readable sentence.
#[test]
fn an_error_reads_as_a_sentence() {
    let error = StoreError::new("read", &StorePath::new(b"a/b").unwrap(), ErrorKind::Changed);
    assert_eq!(error.to_string(), "a/b: cannot read: it was changed meanwhile");
}
