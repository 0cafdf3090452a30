//! A file that is being written to a node.

use crate::convert;
use crate::gfarm::{Gfarm, Trouble, one};
use crate::place::{Spot, Writer, Writers, spot};
use hikyaku_fs::Name;
use hikyaku_gfarm::{Address, Metadata, OpenFile, Place, Spool};
use hikyaku_store::{
    Ability, Doing, Draft, ErrorKind, Finish, Found, Kind, Make, Naming, Note, Result, StorePath,
    Token, doing,
};
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A draft: a temporary name in the directory of the final name, and a file that is open at one node.
///
/// Bytes that follow each other go as one stream, so that a copy from the begin to the end of a file costs no round trips.
#[derive(Debug)]
pub(crate) struct GfarmDraft {
    writers: Arc<Writers>,
    path: StorePath,
    /// The directory, the final and the temporary name.
    dir: Vec<u8>,
    name: Name,
    temporary: Name,
    writing: Mutex<Writing>,
    /// Dropped when the temporary name is removed.
    _note: Option<Note>,
}

#[derive(Debug)]
struct Writing {
    node: Address,
    /// The connection to the node, until it is given back.
    spool: Option<Spool>,
    session: Arc<Metadata>,
    /// The file, until it is closed.
    file: Option<OpenFile>,
    /// The end of what was sent of a stream that has not been ended, and where it began.
    stream: Option<(u64, u64)>,
    length: u64,
    /// The first failure. Bytes that were written before it may be lost.
    failed: Option<Trouble>,
    /// Whether the temporary name has been given up for the final one.
    is_named: bool,
}

/// The mode of a file that is being written: no other user can read it.
const DRAFT_MODE: u32 = 0o600;
/// The mode of a new file where the writer names none.
const NEW_MODE: u32 = 0o644;

impl GfarmDraft {
    pub(crate) fn new(gfarm: &Gfarm, path: &StorePath, make: &Make) -> Result<Self> {
        let doing = doing("create", path);
        let Spot { dir, name } = spot(gfarm, doing)?;
        let temporary = gfarm.group.partial(&name).ok();
        let Some(temporary) = temporary else { return doing.fail(ErrorKind::System(convert::EIO)) };
        let place = Place { dir: &dir, name: temporary.as_bytes() };
        let note = gfarm.note(&joined(&dir, temporary.as_bytes()));
        let created = gfarm.ask(|session| session.create(place, DRAFT_MODE));
        let (session, file) = doing.or(created.and_then(|(session, file)| Ok((session, file?))))?;
        match open_at_a_node(gfarm, &session, &file, make.size.unwrap_or(0)) {
            Ok((spool, node)) => {
                let writing = Writing {
                    node,
                    spool: Some(spool),
                    session,
                    file: Some(file),
                    stream: None,
                    length: 0,
                    failed: None,
                    is_named: false,
                };
                let (writers, path) = (gfarm.writers.clone(), path.clone());
                let writing = Mutex::new(writing);
                Ok(Self { writers, path, dir, name, temporary, writing, _note: note })
            }
            Err(trouble) => {
                // The caller gets the error of the node.
                let _ = session.close(&[file]);
                let _ = session.remove(place);
                doing.fail(trouble.kind())
            }
        }
    }

    const fn doing(&self, what: &'static str) -> Doing<'_> {
        doing(what, &self.path)
    }

    fn temporary(&self) -> Place<'_> {
        Place { dir: &self.dir, name: self.temporary.as_bytes() }
    }

    fn temporary_path(&self) -> Vec<u8> {
        joined(&self.dir, self.temporary.as_bytes())
    }

    fn writing(&self) -> MutexGuard<'_, Writing> {
        self.writing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets `work` use the file. After the first failure every later call fails with that error.
    fn with<T>(
        &self,
        what: &'static str,
        work: impl FnOnce(&mut Writing) -> std::result::Result<T, Trouble>,
    ) -> Result<T> {
        let mut writing = self.writing();
        let done = match &writing.failed {
            Some(failed) => Err(failed.clone()),
            None => work(&mut writing),
        };
        if let Err(trouble) = &done {
            writing.failed.get_or_insert_with(|| trouble.clone());
        }
        drop(writing);
        self.doing(what).or(done)
    }

    /// Closes the file at the node and at gfmd, checks its length, and sets mode and time.
    fn close(&self, finish: &Finish) -> Result<()> {
        self.with("write", |writing| {
            writing.end_stream()?;
            let (spool, file) = writing.open()?;
            spool.close(file)?;
            let stat = one(writing.session.close(writing.file.take().as_slice())?)?;
            match stat.size == writing.length {
                true => Ok(()),
                false => Err(Trouble::Refused(ErrorKind::Damaged)),
            }
        })?;
        let path = self.temporary_path();
        let set = |writing: &mut Writing| {
            writing.session.set_mode(&path, finish.mode.unwrap_or(NEW_MODE))??;
            if let Some(time) = finish.modified {
                writing.session.set_time(&path, convert::time(time))??;
            }
            Ok(())
        };
        self.with("set the mode and time of", set)
    }

    /// Gives the file its name.
    fn rename(&self, naming: Naming) -> std::result::Result<(), Trouble> {
        let (from, to) = (self.temporary(), Place { dir: &self.dir, name: self.name.as_bytes() });
        let session = self.writing().session.clone();
        if naming == Naming::IfAbsent {
            session.link(&self.temporary_path(), to)??;
            return Ok(session.remove(from)??);
        }
        let old = match one(session.look(&[&joined(&self.dir, self.name.as_bytes())])?) {
            Ok(stat) => Some(convert::found(&stat)),
            Err(Trouble::Refused(ErrorKind::NotFound)) => None,
            Err(trouble) => return Err(trouble),
        };
        if let Naming::IfVersion(wanted) = naming
            && old.as_ref().and_then(|found| found.version) != Some(wanted)
        {
            return Err(Trouble::Refused(ErrorKind::Changed));
        }
        if old.is_some_and(|found| found.kind == Kind::Dir) {
            return Err(Trouble::Refused(ErrorKind::IsDir));
        }
        Ok(session.rename(from, to)??)
    }
}

/// Opens a file to write it at one of the nodes that gfmd offers.
pub(crate) fn open_at_a_node(
    gfarm: &Gfarm,
    session: &Arc<Metadata>,
    file: &OpenFile,
    size: u64,
) -> std::result::Result<(Spool, Address), Trouble> {
    let offered = session.schedule(file)??;
    let mut trouble = Trouble::Refused(ErrorKind::Unreachable);
    for candidate in gfarm.in_order(offered, size)? {
        let node = candidate.address;
        // A spare connection may have ended meanwhile.
        let spare = gfarm.writers.begin(&node, session);
        if let Some(mut spool) = spare
            && spool.open(file).is_ok()
        {
            return Ok((spool, node));
        }
        let opened = Spool::connect(&node, gfarm.account(), session.process());
        let opened = opened.map_err(|error| Trouble::of_node(&error)).and_then(|mut spool| {
            spool.open(file)?;
            Ok(spool)
        });
        match opened {
            Ok(spool) => return Ok((spool, node)),
            Err(error) => {
                gfarm.writers.end(&node, None);
                trouble = error;
            }
        }
    }
    Err(trouble)
}

impl Writing {
    /// The connection, and the file that is open on it.
    fn open(&mut self) -> std::result::Result<(&mut Spool, &OpenFile), Trouble> {
        match (&mut self.spool, &self.file) {
            (Some(spool), Some(file)) => Ok((spool, file)),
            _ => Err(Trouble::Refused(ErrorKind::Gone)),
        }
    }

    fn write_at(&mut self, at: u64, bytes: &[u8]) -> std::result::Result<(), Trouble> {
        if self.stream.is_none_or(|(_, end)| end != at) {
            self.end_stream()?;
            let (spool, file) = self.open()?;
            spool.begin_write(file, at)?;
            self.stream = Some((at, at));
        }
        self.open()?.0.write(bytes)?;
        if let Some((_, end)) = &mut self.stream {
            *end += bytes.len() as u64;
            self.length = self.length.max(*end);
        }
        Ok(())
    }

    /// Waits until the node has written what was sent.
    fn end_stream(&mut self) -> std::result::Result<(), Trouble> {
        let Some((from, end)) = self.stream.take() else { return Ok(()) };
        match self.open()?.0.end_write()? == end - from {
            true => Ok(()),
            false => Err(Trouble::Refused(ErrorKind::NoSpace)),
        }
    }
}

impl Draft for GfarmDraft {
    fn write_at(&self, at: u64, bytes: &[u8]) -> Result<()> {
        if bytes.is_empty() {
            return Ok(());
        }
        self.with("write", |writing| writing.write_at(at, bytes))
    }

    fn read_at(&self, at: u64, into: &mut [u8]) -> Result<usize> {
        self.with("read", |writing| {
            writing.end_stream()?;
            let end = writing.length.min(at.saturating_add(into.len() as u64));
            let (spool, file) = writing.open()?;
            spool.read(file, at..end.max(at), |from, block| {
                let from = (from - at) as usize;
                into[from..from + block.len()].copy_from_slice(block);
                ControlFlow::Continue(())
            })?;
            Ok(end.saturating_sub(at) as usize)
        })
    }

    fn set_len(&self, length: u64) -> Result<()> {
        self.with("change the length of", |writing| {
            writing.end_stream()?;
            let (spool, file) = writing.open()?;
            spool.set_length(file, length)?;
            writing.length = length;
            Ok(())
        })
    }

    /// A draft cannot be resumed, so the token has no use.
    fn token(&self) -> Token {
        Token(self.temporary.as_bytes().to_vec())
    }

    fn keep(&self) {}

    fn sync(&self) -> Result<()> {
        self.with("sync", |writing| {
            writing.end_stream()?;
            let (spool, file) = writing.open()?;
            Ok(spool.sync(file)?)
        })
    }

    fn name(self: Box<Self>, naming: Naming, finish: &Finish) -> Result<Found> {
        let doing = self.doing("name");
        let lacks = |ability| doing.fail(ErrorKind::Unsupported(ability));
        if finish.owner.is_some() {
            return lacks(Ability::Owners);
        }
        if !finish.attributes.is_empty() {
            return lacks(Ability::Attributes);
        }
        self.close(finish)?;
        doing.or(self.rename(naming))?;
        let path = joined(&self.dir, self.name.as_bytes());
        let mut writing = self.writing();
        writing.is_named = true;
        let looked = writing.session.look(&[&path]);
        drop(writing);
        let looked = looked.map_err(Trouble::from).and_then(one);
        doing.or(looked).map(|stat| convert::found(&stat))
    }

    fn discard(self: Box<Self>) {}
}

impl Drop for GfarmDraft {
    fn drop(&mut self) {
        let mut writing = self.writing();
        // A failure here leaves a temporary name, which no listing shows.
        let _ = writing.end_stream();
        if let Ok((spool, file)) = writing.open() {
            let _ = spool.close(file);
            let file = writing.file.take();
            let _ = writing.session.close(file.as_slice());
        }
        let (node, session) = (writing.node.clone(), writing.session.clone());
        let is_named = writing.is_named;
        let writer = writing.spool.take().map(|spool| Writer {
            node: node.clone(),
            session: session.clone(),
            spool,
        });
        drop(writing);
        self.writers.end(&node, writer);
        if !is_named {
            let _ = session.remove(self.temporary());
        }
    }
}

/// The path of a name.
pub(crate) fn joined(dir: &[u8], name: &[u8]) -> Vec<u8> {
    if dir.is_empty() { name.to_vec() } else { [dir, b"/", name].concat() }
}
