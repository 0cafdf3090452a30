//! A node of a Gfarm file system as a source of files.

mod fetcher;

use crate::convert;
use crate::gfarm::{Gfarm, Trouble};
use crate::lane::Lane;
use crate::opens::TOGETHER_MAX;
use crate::pool::{LANES_MAX, Pool};
use hikyaku_gfarm::{Address, CallError, Code, Handle, Metadata, OpenFile};
use hikyaku_store::{ContentToken, Cut, ErrorKind, Paced};
use std::collections::{HashMap, VecDeque};
use std::ops::{ControlFlow, Range};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

/// A node, over any number of connections. It reads files that [`survey()`](crate::survey()) has found.
#[derive(Debug)]
pub struct Node {
    pool: Pool,
    paced: Paced,
}

/// A file that is wanted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct File<'a> {
    /// Its path.
    path: &'a [u8],
    /// Its content.
    content: Option<&'a ContentToken>,
}

impl File<'_> {
    /// Whether it is the wanted content.
    fn is(&self, content: Handle) -> bool {
        self.content.is_some_and(|wanted| wanted.is(convert::version(content)))
    }
}

/// The number of a small file in its request, and its content or why there is none.
type Content = (usize, Result<Vec<u8>, ErrorKind>);

impl Node {
    /// A node that has not been connected to.
    pub fn new(gfarm: Arc<Gfarm>, address: Address) -> Self {
        Self { pool: Pool::new(gfarm, address), paced: Paced::default() }
    }

    /// Host and port.
    pub const fn address(&self) -> &Address {
        self.pool.address()
    }

    /// Makes a new connection, as a sign of life.
    ///
    /// # Errors
    ///
    /// The node cannot be reached or does not accept the user.
    pub fn probe(&self) -> Result<(), Trouble> {
        self.pool.probe()
    }

    /// Reads ranges of a file, in order. `each` gets blocks of a mebibyte, or up to the end of a range, with their offsets;
    /// `arrived` receives the number of bytes as they arrive.
    ///
    /// gfmd is asked behind the last block whether the content is still the same, and `each` gets that block only then: if
    /// all blocks of a file were handed on, they are of one content.
    ///
    /// # Errors
    ///
    /// The file has other content, the node has no replica of it (`Gone`), or it cannot be reached.
    fn read(
        &self,
        file: File<'_>,
        ranges: &[Range<u64>],
        cut: &Cut,
        arrived: &dyn Fn(u64),
        mut each: impl FnMut(u64, &[u8]),
    ) -> Result<(), Trouble> {
        let is_open = |lane: &Lane| lane.file().is_some_and(|open| file.is(open.stat.handle));
        self.pool.with_lane(is_open, |lane| {
            if !is_open(lane) && !file.is(lane.open(file.path)?.stat.handle) {
                return Err(Trouble::Refused(ErrorKind::Changed));
            }
            let (mut done, mut last) = (0, (0, Vec::new()));
            for range in ranges {
                if cut.is_reached(done) {
                    break;
                }
                lane.read(range.clone(), |at, block| {
                    arrived(block.len() as u64);
                    done += block.len() as u64;
                    let (before, bytes) = &mut last;
                    if !bytes.is_empty() {
                        each(*before, bytes);
                    }
                    *before = at;
                    bytes.clear();
                    bytes.extend_from_slice(block);
                    if cut.is_reached(done) {
                        ControlFlow::Break(())
                    } else {
                        ControlFlow::Continue(())
                    }
                })?;
            }
            if !lane.is_unchanged()? {
                return Err(Trouble::Refused(ErrorKind::Changed));
            }
            if !last.1.is_empty() {
                each(last.0, &last.1);
            }
            Ok(())
        })
    }

    /// Reads small files whole, and hands each to `each` with its index: its content, or the error. `arrived` gets the
    /// number of bytes as they arrive.
    ///
    /// # Errors
    ///
    /// The node or gfmd cannot be reached. Files that were not handed on are to be asked for again.
    fn read_whole(
        &self,
        files: &[File<'_>],
        cut: &Cut,
        arrived: &(dyn Fn(u64) + Sync),
        each: &mut dyn FnMut(usize, Result<Vec<u8>, ErrorKind>),
    ) -> Result<(), Trouble> {
        let done = AtomicU64::new(0);
        let arrived = |bytes| {
            arrived(bytes);
            cut.is_reached(done.fetch_add(bytes, Ordering::Relaxed) + bytes)
        };
        let mut rest: VecDeque<usize> = (0..files.len()).collect();
        while !rest.is_empty() && !cut.is_reached(done.load(Ordering::Relaxed)) {
            let places = self.pool.gfarm().opens.take(rest.len().min(TOGETHER_MAX));
            let portion: Vec<usize> = rest.drain(..places.count).collect();
            let later = self.portion(files, &portion, &arrived, each)?;
            drop(places);
            rest.extend(later);
        }
        Ok(())
    }

    /// Reads some of the files, which are open at the same time; those that gfmd lets this process open only later.
    fn portion(
        &self,
        files: &[File<'_>],
        portion: &[usize],
        arrived: &(impl Fn(u64) -> bool + Sync),
        each: &mut dyn FnMut(usize, Result<Vec<u8>, ErrorKind>),
    ) -> Result<Vec<usize>, Trouble> {
        let paths: Vec<&[u8]> = portion.iter().map(|&index| files[index].path).collect();
        let (session, opened) = self.pool.gfarm().ask(|session| session.open(&paths))?;
        let has_opened = opened.iter().any(Result::is_ok);
        let (mut open, mut told, mut later) = (Vec::new(), HashMap::new(), Vec::new());
        for (&index, opened) in portion.iter().zip(opened) {
            match opened {
                Ok(file) => open.push((index, file)),
                // There is room when those that are open have been closed.
                Err(Code::TOO_MANY_OPEN) if has_opened => later.push(index),
                Err(code) => drop(told.insert(index, Err(convert::error(code)))),
            }
        }
        let read = |files: &[(usize, OpenFile)]| self.read_small(&session, files, arrived);
        let share = open.len().div_ceil(LANES_MAX).max(1);
        let read: Vec<_> = thread::scope(|scope| {
            let reads = open.chunks(share).map(|files| scope.spawn(|| read(files)));
            let reads: Vec<_> = reads.collect();
            reads.into_iter().map(|read| read.join().unwrap_or_else(|_| panicked())).collect()
        });
        let all: Vec<OpenFile> = open.iter().map(|(_, file)| file.clone()).collect();
        let closed = session.close(&all)?;
        let mut failed = None;
        for read in read {
            match read {
                Ok(contents) => told.extend(contents),
                Err(error) => failed = Some(error),
            }
        }
        for ((index, file), stat) in open.iter().zip(closed) {
            let wanted = files[*index];
            let is_same =
                wanted.is(file.stat.handle) && stat.is_ok_and(|stat| wanted.is(stat.handle));
            if let Some(told) = told.get_mut(index).filter(|told| told.is_ok() && !is_same) {
                *told = Err(ErrorKind::Changed);
            }
        }
        for (index, content) in told {
            match content {
                // The node has lost gfmd. That is no failure of the file.
                Err(ErrorKind::Unreachable) => {
                    let away = || Trouble::Away("it cannot reach the metadata server".to_owned());
                    failed.get_or_insert_with(away);
                }
                content => each(index, content),
            }
        }
        failed.map_or(Ok(later), Err)
    }

    /// The reads of small files over one connection.
    fn read_small(
        &self,
        session: &Arc<Metadata>,
        files: &[(usize, OpenFile)],
        arrived: &(impl Fn(u64) -> bool + Sync),
    ) -> Result<Vec<Content>, Trouble> {
        self.pool.with_lane(
            |lane| lane.file().is_none(),
            |lane| {
                if !Arc::ptr_eq(lane.session(), session) {
                    return Err(Trouble::Away("the session with gfmd has ended".to_owned()));
                }
                let mut contents = Vec::with_capacity(files.len());
                lane.read_small(files, |index, content| {
                    let is_enough = content.as_ref().is_ok_and(|bytes| arrived(bytes.len() as u64));
                    let kind = |error: CallError| Trouble::from(error).kind();
                    contents.push((index, content.map(<[u8]>::to_vec).map_err(kind)));
                    if is_enough { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
                })?;
                Ok(contents)
            },
        )
    }
}

fn panicked<T>() -> Result<T, Trouble> {
    Err(Trouble::Away("a thread panicked".to_owned()))
}
