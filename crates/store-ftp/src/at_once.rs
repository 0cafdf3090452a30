//! Batches: the commands of many looks, of new directories, and of small files that are created whole, are sent together over
//! one session. A file by itself costs some eight round trips. Operations of other kinds go one by one, over several sessions.

use crate::batch::{Batch, Steps};
use crate::chunker::{Attempt, Chunker};
use crate::convert::kind_behind;
use crate::ftp::{Ftp, Modes, Times, Traits};
use crate::tuning::Connections;
use crate::writing::Names;
use hikyaku_fs::Token;
use hikyaku_gridftp::{
    Channel, Facts, FtpError, Mode, Part, Plan, Rename, Upload, Wanted as WantedPart,
};
use hikyaku_store::{
    ErrorKind, Kind, Naming, Note, Op, Put, Reply, Result, Store, StorePath, do_at_once, do_one,
    doing,
};
use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

/// The largest file that is stored with others.
pub(crate) const SMALL_BYTES: usize = 1 << 20;
/// Commands about names that are sent before the first answer is awaited.
const QUESTIONS: usize = 64;

/// A file that is stored with others.
struct Small<'a> {
    index: usize,
    put: Put<'a>,
    full: Vec<u8>,
    /// The unfinished file.
    partial: Vec<u8>,
    /// Lets the next command remove it if this one is killed.
    _note: Option<Note>,
}

impl Ftp {
    /// Does operations on different paths.
    pub(crate) fn at_once(
        &self,
        run: &[(usize, Op<'_>)],
        each: &mut dyn FnMut(usize, Result<Reply>),
    ) {
        let (mut looks, mut puts, mut rest) = (Vec::new(), Vec::new(), Vec::new());
        let mut dirs = Vec::new();
        for (index, op) in run.iter().copied() {
            match op {
                Op::Look(path) => looks.push((index, path)),
                Op::MakeDir(path, mode) if self.goes_with_other_dirs(path) => {
                    dirs.push((index, path, mode));
                }
                Op::Put(put) if self.goes_with_others(&put) => puts.push((index, put)),
                op => rest.push((index, op)),
            }
        }
        self.look_at_all(&looks, each);
        let dirs = self.make_all(&dirs, each);
        rest.extend(dirs.into_iter().map(|(index, path, mode)| (index, Op::MakeDir(path, mode))));
        let left = self.put_all(&puts, each);
        rest.extend(left.into_iter().map(|(index, put)| (index, Op::Put(put))));
        do_at_once(self, &rest, self.sessions_of_batch(), each);
    }

    fn look_at_all(
        &self,
        looks: &[(usize, &StorePath)],
        each: &mut dyn FnMut(usize, Result<Reply>),
    ) {
        let paths: Vec<_> = looks.iter().map(|(_, path)| self.full(path)).collect();
        let told = self.told(&paths);
        // Why nothing is at a path depends on its directory.
        let mut missing: HashMap<Option<StorePath>, ErrorKind> = HashMap::new();
        for (at, (index, path)) in looks.iter().enumerate() {
            let dir = path.split().map(|(dir, _)| dir);
            each(
                *index,
                match told.get(at) {
                    Some(Some(facts)) => Ok(Reply::Found(self.found(facts, path))),
                    Some(None) if path.as_bytes().is_ascii() => {
                        let kind = missing.entry(dir).or_insert_with(|| self.missing(path));
                        doing("look at", path).fail(*kind)
                    }
                    _ => do_one(self, &Op::Look(path)),
                },
            );
        }
    }

    /// Whether a directory is made with others. A name that is not ASCII is checked by itself.
    fn goes_with_other_dirs(&self, path: &StorePath) -> bool {
        self.traits().mode == Mode::Extended
            && path.below_root().is_some()
            && path.as_bytes().is_ascii()
    }

    /// Makes directories. Returns those that are not made: why is found out when each is made by itself.
    fn make_all<'a>(
        &self,
        dirs: &[(usize, &'a StorePath, u32)],
        each: &mut dyn FnMut(usize, Result<Reply>),
    ) -> Vec<(usize, &'a StorePath, u32)> {
        if dirs.len() < 2 {
            return dirs.to_vec();
        }
        let paths: Vec<_> = dirs.iter().map(|(_, path, _)| self.full(path)).collect();
        let made = self.with(|channel| channel.make_each(&paths, QUESTIONS));
        let mut made = made.unwrap_or_default().into_iter();
        let (made, left): (Vec<_>, Vec<_>) =
            dirs.iter().copied().partition(|_| matches!(made.next(), Some(Ok(()))));
        let modes: Vec<_> = made.iter().map(|(.., mode)| *mode).collect();
        let paths: Vec<_> = made.iter().map(|(_, path, _)| self.full(path)).collect();
        let set = match self.new_modes() {
            Modes::Shown => {
                self.with(|channel| channel.set_mode_of_each((&paths, &modes), QUESTIONS))
            }
            Modes::Unknown => Ok(made.iter().map(|_| Ok(())).collect()),
        };
        let mut set = set.unwrap_or_default().into_iter();
        for ((index, path, mode), full) in made.into_iter().zip(&paths) {
            let doing = doing("make the directory", path);
            let set = match set.next() {
                Some(Ok(())) => Ok(()),
                _ => self.set_mode(doing, full, mode),
            };
            each(index, set.map(|()| Reply::Done));
        }
        left
    }

    /// The facts of each path, as far as the server sends them.
    fn told(&self, paths: &[Vec<u8>]) -> Vec<Option<Facts>> {
        match paths {
            [] => Vec::new(),
            paths => {
                self.with(|channel| channel.facts_of_each(paths, QUESTIONS)).unwrap_or_default()
            }
        }
    }

    /// Whether a file is stored with others. A name that is not ASCII is checked by itself.
    fn goes_with_others(&self, put: &Put<'_>) -> bool {
        let Some((_, name)) = put.path.split() else { return false };
        self.traits().mode == Mode::Extended
            && self.works_ahead()
            // A file with a condition is compared before it gets its name.
            && self.writing().condition.is_none()
            && put.bytes.len() <= SMALL_BYTES
            && put.naming == Naming::Replace
            && put.finish.owner.is_none()
            && put.finish.attributes.is_empty()
            && put.path.as_bytes().is_ascii()
            && Token::of(&name).is_none()
    }

    /// Stores files. Returns those that were not stored: storing such a file by itself returns the reason.
    fn put_all<'a>(
        &self,
        puts: &[(usize, Put<'a>)],
        each: &mut dyn FnMut(usize, Result<Reply>),
    ) -> Vec<(usize, Put<'a>)> {
        let mut left = Vec::new();
        let paths: Vec<_> = puts.iter().map(|(_, put)| self.full(put.path)).collect();
        // Nothing is asked where the caller has looked.
        let is_looked = self.writing().names == Names::Looked;
        let before = if is_looked { vec![None; puts.len()] } else { self.told(&paths) };
        let (mut dirs, mut files) = (HashMap::new(), Vec::new());
        for (at, (&(index, put), full)) in puts.iter().zip(paths).enumerate() {
            let dir = put.path.split().map(|(dir, _)| dir);
            let is_free = match before.get(at) {
                Some(Some(facts)) => kind_behind(facts, self.writing().links) == Kind::File,
                Some(None) => true,
                None => false,
            };
            let is_in_dir = || {
                let has_spot = || is_looked || self.spot(doing("create", put.path)).is_ok();
                *dirs.entry(dir).or_insert_with(has_spot)
            };
            match self.partial_of(put.path).filter(|_| is_free && is_in_dir()) {
                Some(partial) => {
                    let _note = self.note(&partial);
                    files.push(Small { index, put, full, partial, _note });
                }
                None => left.push((index, put)),
            }
        }
        let stored = self.store_all(&files);
        let Traits { modes, times, .. } = self.traits();
        let rename = |small: &&Small<'a>| {
            let finish = small.put.finish;
            let modified =
                finish.modified.map(|time| time.secs).filter(|_| times == Times::Settable);
            (finish.mode.filter(|_| modes == Modes::Shown), modified)
        };
        let (whole, failed): (Vec<_>, Vec<_>) =
            files.iter().zip(stored).partition(|(_, is_stored)| *is_stored);
        let mut unnamed: Vec<&Small<'a>> = failed.into_iter().map(|(small, _)| small).collect();
        let whole: Vec<&Small<'a>> = whole.into_iter().map(|(small, _)| small).collect();
        let names: Vec<Rename<'_>> = whole
            .iter()
            .map(|small| {
                let (mode, modified) = rename(small);
                Rename { from: &small.partial, to: &small.full, mode, modified }
            })
            .collect();
        let renamed = self.with(|channel| channel.rename_each(&names, QUESTIONS));
        let mut renamed = renamed.unwrap_or_default().into_iter();
        let (named, others): (Vec<_>, Vec<_>) =
            whole.iter().copied().partition(|_| matches!(renamed.next(), Some(Ok(()))));
        unnamed.extend(others);
        let paths: Vec<_> = named.iter().map(|small| small.full.clone()).collect();
        let mut told = self.told(&paths);
        told.resize(named.len(), None);
        for (small, facts) in named.iter().zip(told) {
            each(
                small.index,
                match facts {
                    Some(facts) => Ok(Reply::Found(self.found(&facts, small.put.path))),
                    None => self.look(small.put.path).map(Reply::Found),
                },
            );
        }
        for small in unnamed {
            // It does not exist if the server has not begun to store it.
            let _ = self.with(|channel| channel.remove(&small.partial));
            left.push((small.index, small.put));
        }
        left
    }

    /// The path of an unfinished file beside a path.
    fn partial_of(&self, path: &StorePath) -> Option<Vec<u8>> {
        let (dir, name) = path.split()?;
        let partial = Token::random().ok()?.partial(&name).ok()?;
        Some(self.full(&dir.join(&partial).ok()?))
    }

    /// Stores unfinished files. Returns for each whether the server has confirmed it.
    fn store_all(&self, files: &[Small<'_>]) -> Vec<bool> {
        let mut stored = vec![false; files.len()];
        if files.is_empty() {
            return stored;
        }
        let mut prepare = |number: usize| {
            let Small { put, partial, .. } = &files[number];
            let bytes = put.bytes;
            let supply = move |at: u64, into: &mut [u8]| {
                let start = usize::try_from(at).map_err(io::Error::other)?;
                into.copy_from_slice(&bytes[start..start + into.len()]);
                Ok(())
            };
            let with: Upload<'_> = Arc::new(supply);
            let part = Part { path: partial, offset: 0, length: bytes.len() as u64 };
            Some((WantedPart { part, connections: 1, with }, ()))
        };
        let mut done = |number: usize, ()| stored[number] = true;
        let steps = Steps { prepare: &mut prepare, done: &mut done };
        let mut batch = Batch::new(files.len(), self.writing().ahead, steps);
        // A failure comes again when the file is stored by itself.
        let moved = self.with(|channel| {
            let (mut chunker, counter) =
                (Chunker::new(Connections::default()), self.sent().counter());
            chunker.batch(channel, &mut batch, &upload, &counter.bytes)
        });
        if matches!(moved, Ok(Attempt::OneByOne)) {
            self.works_one_by_one();
        }
        stored
    }
}

/// Uploads the parts of a plan.
fn upload<'p>(
    channel: &mut Channel,
    plan: &mut dyn Plan<'p, Upload<'p>>,
    counted: &AtomicU64,
) -> std::result::Result<(), FtpError> {
    channel.upload(plan, counted)
}
