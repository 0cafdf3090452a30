//! Fault injection: a store whose calls fail as a test specifies.

use crate::abilities::{Abilities, Ability, Latency, Writes};
use crate::error::{ErrorKind, Result, StoreError};
use crate::found::{Found, Kind, Space};
use crate::path::StorePath;
use crate::store::{
    Access, Attribute, Change, Cursor, Draft, Extent, Finish, Make, Naming, Open, Page, Place,
    Replace, Store, SyncScope, Token,
};
use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// A store that injects faults into another one. Clones refer to the same store.
#[derive(Clone)]
pub struct Faulty<S> {
    inner: S,
    script: Arc<Mutex<Script>>,
    /// The order of writes, if it stands for a store behind a network.
    far: Option<Writes>,
}

/// A call of the store, of an open file or of a draft.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Operation {
    /// [`Store::look`] and [`Open::found`].
    Look,
    /// [`Store::list`].
    List,
    /// [`Store::open`].
    Open,
    /// [`Store::create`] and [`Store::take_up`].
    Create,
    /// Reading an open file or a draft, its extents, a link or attributes.
    Read,
    /// Writing an open file or a draft, and setting its length.
    Write,
    /// [`Open::sync`] and [`Draft::sync`].
    SyncFile,
    /// [`Store::sync`].
    SyncDir,
    /// [`Draft::name`].
    Name,
    /// [`Store::make_dir`] and [`Store::make_link`].
    Make,
    /// [`Store::remove`].
    Remove,
    /// [`Store::rename`].
    Rename,
    /// [`Store::change`].
    Change,
}

/// When a fault is injected.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct When {
    /// The operation.
    pub operation: Operation,
    /// The path; any path if it is `None`.
    pub path: Option<StorePath>,
    /// The first of these calls that fails, counted from 1.
    pub nth: u32,
    /// The number of calls that fail.
    pub times: u32,
}

/// The effect of a fault.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Fault {
    /// The call fails and does nothing.
    Error(ErrorKind),
    /// The call takes this much longer.
    Delay(Duration),
    /// A read returns half of the requested bytes, as if the file ended there. This violates rule
    /// R1.
    ShortRead,
    /// A read returns data with one bit flipped.
    FlippedBit,
    /// A write stores half of its bytes, then fails.
    HalfWrite(ErrorKind),
    /// A sync returns success and does nothing. This violates rule R4.
    LyingSync,
}

/// Receives the operation of each call before the call is made.
type Hook = Arc<dyn Fn(Operation) + Send + Sync>;

struct Script {
    hook: Option<Hook>,
    rules: Vec<Rule>,
    counts: HashMap<(Operation, Option<StorePath>), u32>,
    struck: u32,
}

struct Rule {
    when: When,
    fault: Fault,
}

impl<S> Faulty<S> {
    /// A store without faults yet.
    pub fn new(inner: S) -> Self {
        let script = Script { hook: None, rules: Vec::new(), counts: HashMap::new(), struck: 0 };
        Self { inner, script: Arc::new(Mutex::new(script)), far: None }
    }

    /// The store behind a network, with drafts that take bytes in the order `writes`. A write in another order fails.
    #[must_use]
    pub fn far(self, writes: Writes) -> Self {
        Self { far: Some(writes), ..self }
    }

    /// Adds a fault. Calls are counted from the first fault that concerns their operation and path.
    pub fn add(&self, when: When, fault: Fault) {
        let mut script = self.script.lock().unwrap_or_else(PoisonError::into_inner);
        script.counts.entry((when.operation, when.path.clone())).or_default();
        script.rules.push(Rule { when, fault });
    }

    /// Calls `hook` before each call of the store, of an open file and of a draft, on the thread of that call.
    pub fn on_call(&self, hook: impl Fn(Operation) + Send + Sync + 'static) {
        let mut script = self.script.lock().unwrap_or_else(PoisonError::into_inner);
        script.hook = Some(Arc::new(hook));
    }

    /// How many times a fault was injected.
    pub fn struck(&self) -> u32 {
        self.script.lock().unwrap_or_else(PoisonError::into_inner).struck
    }

    /// The store without the faults.
    pub const fn inner(&self) -> &S {
        &self.inner
    }

    fn injector(&self) -> Injector {
        Injector { script: self.script.clone() }
    }
}

/// Decides for each call whether it fails.
#[derive(Clone)]
struct Injector {
    script: Arc<Mutex<Script>>,
}

impl Injector {
    /// Counts a call. Waits if the fault is a delay, and returns any other fault.
    fn fault(&self, operation: Operation, path: &StorePath) -> Option<Fault> {
        let hook = self.script.lock().unwrap_or_else(PoisonError::into_inner).hook.clone();
        hook.iter().for_each(|hook| hook(operation));
        let fault = {
            let mut script = self.script.lock().unwrap_or_else(PoisonError::into_inner);
            for key in [None, Some(path.clone())] {
                script.counts.entry((operation, key)).and_modify(|count| *count += 1);
            }
            let counts = &script.counts;
            let strikes = |rule: &&Rule| {
                let When { operation: wanted, path: only, nth, times } = &rule.when;
                let count = counts.get(&(*wanted, only.clone())).copied().unwrap_or(0);
                *wanted == operation
                    && only.as_ref().is_none_or(|only| only == path)
                    && (*nth..nth.saturating_add(*times)).contains(&count)
            };
            let fault = script.rules.iter().find(strikes).map(|rule| rule.fault.clone());
            script.struck += u32::from(fault.is_some());
            fault
        };
        match fault {
            Some(Fault::Delay(time)) => {
                std::thread::sleep(time);
                None
            }
            other => other,
        }
    }

    /// Applies a fault to a call that either succeeds or fails completely.
    fn check(&self, operation: Operation, path: &StorePath, what: &'static str) -> Result<()> {
        match self.fault(operation, path) {
            Some(Fault::Error(kind) | Fault::HalfWrite(kind)) => {
                Err(StoreError::new(what, path, kind))
            }
            _ => Ok(()),
        }
    }

    fn read(
        &self,
        path: &StorePath,
        into: &mut [u8],
        read: impl FnOnce(&mut [u8]) -> Result<usize>,
    ) -> Result<usize> {
        match self.fault(Operation::Read, path) {
            Some(Fault::Error(kind)) => Err(StoreError::new("read", path, kind)),
            Some(Fault::ShortRead) => {
                let half = into.len() / 2;
                read(&mut into[..half])
            }
            Some(Fault::FlippedBit) => {
                let length = read(into)?;
                if let Some(byte) = into[..length].last_mut() {
                    *byte ^= 0x10;
                }
                Ok(length)
            }
            _ => read(into),
        }
    }

    fn write(
        &self,
        path: &StorePath,
        bytes: &[u8],
        write: impl FnOnce(&[u8]) -> Result<()>,
    ) -> Result<()> {
        match self.fault(Operation::Write, path) {
            Some(Fault::Error(kind)) => Err(StoreError::new("write", path, kind)),
            Some(Fault::HalfWrite(kind)) => {
                write(&bytes[..bytes.len() / 2])?;
                Err(StoreError::new("write", path, kind))
            }
            _ => write(bytes),
        }
    }

    fn sync(
        &self,
        operation: Operation,
        path: &StorePath,
        sync: impl FnOnce() -> Result<()>,
    ) -> Result<()> {
        match self.fault(operation, path) {
            Some(Fault::Error(kind)) => Err(StoreError::new("sync", path, kind)),
            Some(Fault::LyingSync) => Ok(()),
            _ => sync(),
        }
    }
}

impl<S: Store> Store for Faulty<S> {
    fn abilities(&self) -> Abilities {
        let inner = self.inner.abilities();
        let latency = Latency::RoundTrip;
        match self.far {
            // Such a draft leaves no range out, and the end of a resumed one is not known.
            Some(writes @ (Writes::InOrder | Writes::Window { .. })) => {
                let take_up = inner.take_up && writes != Writes::InOrder;
                Abilities { writes, latency, take_up, holes: false, ..inner }
            }
            Some(writes) => Abilities { writes, latency, ..inner },
            None => inner,
        }
    }

    fn look(&self, path: &StorePath) -> Result<Found> {
        self.injector().check(Operation::Look, path, "look at")?;
        self.inner.look(path)
    }

    fn list(&self, dir: &StorePath, after: Option<&Cursor>, room: usize) -> Result<Page> {
        self.injector().check(Operation::List, dir, "list")?;
        self.inner.list(dir, after, room)
    }

    fn open(&self, path: &StorePath, access: Access) -> Result<Box<dyn Open>> {
        let injector = self.injector();
        injector.check(Operation::Open, path, "open")?;
        let inner = self.inner.open(path, access)?;
        Ok(Box::new(FaultyOpen { inner, path: path.clone(), injector }))
    }

    fn create(&self, path: &StorePath, make: &Make) -> Result<Box<dyn Draft>> {
        let injector = self.injector();
        injector.check(Operation::Create, path, "create")?;
        let inner = self.inner.create(path, make)?;
        let end = (self.far == Some(Writes::InOrder)).then(Mutex::default);
        Ok(Box::new(FaultyDraft { inner, path: path.clone(), injector, end }))
    }

    fn take_up(&self, path: &StorePath, token: &Token) -> Result<Box<dyn Draft>> {
        let injector = self.injector();
        injector.check(Operation::Create, path, "resume")?;
        if !self.abilities().take_up {
            let kind = ErrorKind::Unsupported(Ability::TakeUp);
            return Err(StoreError::new("resume", path, kind));
        }
        let inner = self.inner.take_up(path, token)?;
        Ok(Box::new(FaultyDraft { inner, path: path.clone(), injector, end: None }))
    }

    fn make_dir(&self, path: &StorePath, mode: u32) -> Result<()> {
        self.injector().check(Operation::Make, path, "make the directory")?;
        self.inner.make_dir(path, mode)
    }

    fn make_link(&self, path: &StorePath, text: &[u8]) -> Result<()> {
        self.injector().check(Operation::Make, path, "make the link")?;
        self.inner.make_link(path, text)
    }

    fn read_link(&self, path: &StorePath) -> Result<Vec<u8>> {
        self.injector().check(Operation::Read, path, "read the link")?;
        self.inner.read_link(path)
    }

    fn remove(&self, path: &StorePath, kind: Kind) -> Result<()> {
        self.injector().check(Operation::Remove, path, "remove")?;
        self.inner.remove(path, kind)
    }

    fn rename(&self, from: &StorePath, to: &StorePath, replace: Replace) -> Result<()> {
        self.injector().check(Operation::Rename, from, "rename")?;
        self.inner.rename(from, to, replace)
    }

    fn change(&self, path: &StorePath, change: &Change) -> Result<()> {
        self.injector().check(Operation::Change, path, "change")?;
        self.inner.change(path, change)
    }

    fn attributes(&self, path: &StorePath) -> Result<Vec<Attribute>> {
        self.injector().check(Operation::Read, path, "read the attributes of")?;
        self.inner.attributes(path)
    }

    fn space(&self) -> Result<Space> {
        self.inner.space()
    }

    fn places(&self, path: &StorePath) -> Result<Vec<Place>> {
        self.inner.places(path)
    }

    fn sync(&self, dirs: &[StorePath]) -> Result<()> {
        let injector = self.injector();
        dirs.iter().try_for_each(|dir| {
            injector.sync(Operation::SyncDir, dir, || self.inner.sync(std::slice::from_ref(dir)))
        })
    }
}

struct FaultyOpen {
    inner: Box<dyn Open>,
    path: StorePath,
    injector: Injector,
}

impl Open for FaultyOpen {
    fn is_unchanged(&self) -> Result<bool> {
        self.inner.is_unchanged()
    }

    fn found(&self) -> Result<Found> {
        self.injector.check(Operation::Look, &self.path, "look at")?;
        self.inner.found()
    }

    fn read_at(&self, at: u64, into: &mut [u8]) -> Result<usize> {
        self.injector.read(&self.path, into, |into| self.inner.read_at(at, into))
    }

    fn write_at(&self, at: u64, bytes: &[u8]) -> Result<()> {
        self.injector.write(&self.path, bytes, |bytes| self.inner.write_at(at, bytes))
    }

    fn set_len(&self, length: u64) -> Result<()> {
        self.injector.check(Operation::Write, &self.path, "set the length")?;
        self.inner.set_len(length)
    }

    fn extents(&self, range: Range<u64>) -> Result<Vec<Extent>> {
        self.injector.check(Operation::Read, &self.path, "read")?;
        self.inner.extents(range)
    }

    fn sync(&self, scope: SyncScope) -> Result<()> {
        self.injector.sync(Operation::SyncFile, &self.path, || self.inner.sync(scope))
    }
}

struct FaultyDraft {
    inner: Box<dyn Draft>,
    path: StorePath,
    injector: Injector,
    /// The end of what was written, if the next write has to begin there.
    end: Option<Mutex<u64>>,
}

impl Draft for FaultyDraft {
    fn write_at(&self, at: u64, bytes: &[u8]) -> Result<()> {
        if let Some(end) = &self.end {
            let mut end = end.lock().unwrap_or_else(PoisonError::into_inner);
            if at != *end {
                let kind = ErrorKind::Unsupported(Ability::Update);
                return Err(StoreError::new("write", &self.path, kind));
            }
            *end += bytes.len() as u64;
        }
        self.injector.write(&self.path, bytes, |bytes| self.inner.write_at(at, bytes))
    }

    fn read_at(&self, at: u64, into: &mut [u8]) -> Result<usize> {
        self.injector.read(&self.path, into, |into| self.inner.read_at(at, into))
    }

    fn set_len(&self, length: u64) -> Result<()> {
        self.injector.check(Operation::Write, &self.path, "set the length")?;
        self.inner.set_len(length)
    }

    fn token(&self) -> Token {
        self.inner.token()
    }

    fn keep(&self) {
        self.inner.keep();
    }

    fn sync(&self) -> Result<()> {
        self.injector.sync(Operation::SyncFile, &self.path, || self.inner.sync())
    }

    fn name(self: Box<Self>, naming: Naming, finish: &Finish) -> Result<Found> {
        self.injector.check(Operation::Name, &self.path, "name")?;
        self.inner.name(naming, finish)
    }

    fn discard(self: Box<Self>) {
        self.inner.discard();
    }
}

#[cfg(test)]
mod tests;
