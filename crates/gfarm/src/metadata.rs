//! A session with the metadata server (gfmd).
//!
//! Requests about one file are sent together as a compound: gfmd carries out a sequence and stops at the first error,
//! after which it answers nothing more of that compound. Compounds for many files are sent at once, so that a list of
//! files costs one round trip.

use crate::account::Account;
use crate::code::Writer;
use crate::config::Address;
use crate::error::{CallError, Code, ConnectError};
use crate::link::{Link, Replies};
use crate::login::log_in;
use crate::process::Process;
use crate::reply::{ENTRIES_MAX, Entry, Host, Replica, entries, hosts, opened, replicas};
use crate::request::{Access, PROCESS_KEY_KIND, REPLICAS_ALL, gfmd};
use crate::stat::Stat;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

mod change;

pub use change::Place;
use change::open_file;

/// A session with gfmd, which several threads may use at once.
#[derive(Debug)]
pub struct Metadata {
    link: Mutex<Link>,
    process: Process,
    server: Address,
    round_trip: Duration,
}

/// A file that is open. A node accepts its number once; [`Metadata::close`] frees it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OpenFile {
    /// The number of the open file in this process.
    pub(crate) number: i32,
    /// What gfmd knew of it when it was opened.
    pub stat: Stat,
}

impl OpenFile {
    pub(crate) const fn number(&self) -> i32 {
        self.number
    }
}

/// An answer for each of several names or files.
pub type Each<T> = Vec<Result<T, Code>>;

/// Compounds that are sent before their answers are read. More could fill the buffers of both directions.
const TOGETHER: usize = 64;
/// Directories that are open at once while they are listed: gfmd lets a process have 1,024 files open by default
/// (`max_open_files` in gfarm2.conf(5)).
const DIRS_OPEN_MAX: usize = 128;
/// Entries of a directory: some 2 GB of memory.
const DIR_ENTRIES_MAX: usize = 10_000_000;

impl Metadata {
    /// Logs in at the first of `servers` that accepts it.
    ///
    /// # Errors
    ///
    /// None does; the error is that of the first one.
    pub fn connect(servers: &[Address], account: &Account) -> Result<Self, ConnectError> {
        let mut first = None;
        for server in servers {
            match Self::connect_to(server, account) {
                Ok(session) => return Ok(session),
                Err(error) => first = first.or(Some(error)),
            }
        }
        Err(first.unwrap_or_else(|| ConnectError::Name { host: "gfmd".to_owned() }))
    }

    fn connect_to(server: &Address, account: &Account) -> Result<Self, ConnectError> {
        let failed = |error| ConnectError::Call { server: server.to_string(), error };
        let mut link = Link::connect(server, account.dial)?;
        log_in(&mut link, server, account)?;
        let mut process = Process::new().map_err(|error| failed(error.into()))?;
        let mut ask = Writer::default();
        ask.int(gfmd::PROCESS_ALLOC).int(PROCESS_KEY_KIND).string(&process.key);
        let id = link.send(&ask).and_then(|()| {
            link.reply.good()?;
            link.reply.long()
        });
        process.id = id.map_err(failed)?;
        let round_trip = link.round_trip;
        Ok(Self { link: Mutex::new(link), process, server: server.clone(), round_trip })
    }

    /// The server.
    pub const fn server(&self) -> &Address {
        &self.server
    }

    /// The round-trip time to the server, as its connection was made.
    pub const fn round_trip(&self) -> Duration {
        self.round_trip
    }

    /// What a connection to a node shows to belong to this session.
    pub const fn process(&self) -> &Process {
        &self.process
    }

    /// The metadata of names. A symbolic link is not followed.
    ///
    /// # Errors
    ///
    /// The session has ended. A name that cannot be looked up has its own error.
    pub fn look(&self, paths: &[&[u8]]) -> Result<Each<Stat>, CallError> {
        let ask = |path: &&[u8], ask: &mut Writer| {
            ask.open(path, Access::Look).int(gfmd::FSTAT);
        };
        self.each(paths, ask, |path, reply| {
            opened(path, reply)?;
            reply.good()?;
            Stat::read(reply)
        })
    }

    /// The metadata and the replicas of names.
    ///
    /// # Errors
    ///
    /// As for [`Self::look`].
    pub fn replicas(&self, paths: &[&[u8]]) -> Result<Each<(Stat, Vec<Replica>)>, CallError> {
        let ask = |path: &&[u8], ask: &mut Writer| {
            ask.open(path, Access::Look).int(gfmd::FSTAT);
            ask.int(gfmd::REPLICA_INFO_GET).int(REPLICAS_ALL);
        };
        self.each(paths, ask, |path, reply| {
            opened(path, reply)?;
            reply.good()?;
            let stat = Stat::read(reply)?;
            reply.good()?;
            Ok((stat, replicas(reply)?))
        })
    }

    /// Opens files for reading.
    ///
    /// # Errors
    ///
    /// As for [`Self::look`].
    pub fn open(&self, paths: &[&[u8]]) -> Result<Each<OpenFile>, CallError> {
        let ask = |path: &&[u8], ask: &mut Writer| {
            ask.open(path, Access::Read).int(gfmd::FSTAT).int(gfmd::GET_FD);
        };
        self.each(paths, ask, |path, reply| {
            opened(path, reply)?;
            open_file(reply)
        })
    }

    /// Closes open files, and tells what gfmd knows of each at that time.
    ///
    /// # Errors
    ///
    /// As for [`Self::look`].
    pub fn close(&self, files: &[OpenFile]) -> Result<Each<Stat>, CallError> {
        let ask = |file: &OpenFile, ask: &mut Writer| {
            ask.int(gfmd::PUT_FD).int(file.number).int(gfmd::FSTAT).int(gfmd::CLOSE);
        };
        self.each(files, ask, |_, reply| {
            reply.good()?;
            reply.good()?;
            let stat = Stat::read(reply)?;
            reply.good()?;
            Ok(stat)
        })
    }

    /// The texts of symbolic links.
    ///
    /// # Errors
    ///
    /// As for [`Self::look`].
    // fuzz: none, these are paths of the caller
    pub fn read_links(&self, paths: &[&[u8]]) -> Result<Each<Vec<u8>>, CallError> {
        let ask = |path: &&[u8], ask: &mut Writer| {
            ask.open(path, Access::Look).int(gfmd::READLINK);
        };
        self.each(paths, ask, |path, reply| {
            opened(path, reply)?;
            reply.good()?;
            reply.text()
        })
    }

    /// What gfmd knows at present of open files.
    ///
    /// # Errors
    ///
    /// As for [`Self::look`].
    pub fn stat(&self, files: &[OpenFile]) -> Result<Each<Stat>, CallError> {
        let ask = |file: &OpenFile, ask: &mut Writer| {
            ask.int(gfmd::PUT_FD).int(file.number).int(gfmd::FSTAT);
        };
        self.each(files, ask, |_, reply| {
            reply.good()?;
            reply.good()?;
            Stat::read(reply)
        })
    }

    /// All entries of directories, without `.` and `..`. Only some of them are open at a time.
    ///
    /// # Errors
    ///
    /// As for [`Self::look`].
    pub fn list(&self, dirs: &[&[u8]]) -> Result<Each<Vec<Entry>>, CallError> {
        let mut all = Vec::with_capacity(dirs.len());
        for dirs in dirs.chunks(DIRS_OPEN_MAX) {
            all.extend(self.list_some(dirs)?);
        }
        Ok(all)
    }

    fn list_some(&self, dirs: &[&[u8]]) -> Result<Each<Vec<Entry>>, CallError> {
        let ask = |path: &&[u8], ask: &mut Writer| {
            ask.open(path, Access::Read).int(gfmd::FSTAT).int(gfmd::GET_FD);
            ask.int(gfmd::GETDIRENTSPLUS).int(ENTRIES_MAX as i32);
        };
        let first = self.each(dirs, ask, |path, reply| {
            opened(path, reply)?;
            let open = open_file(reply)?;
            reply.good()?;
            Ok((open, entries(reply)?))
        })?;
        let (mut open, mut all) = (Vec::new(), Vec::new());
        for first in first {
            all.push(match first {
                Ok((dir, page)) => {
                    let told = self.rest(&dir, page)?;
                    open.push(dir);
                    told
                }
                Err(code) => Err(code),
            });
        }
        self.close(&open)?;
        Ok(all)
    }

    /// The entries behind the first page.
    fn rest(
        &self,
        dir: &OpenFile,
        page: Vec<Entry>,
    ) -> Result<Result<Vec<Entry>, Code>, CallError> {
        let ask = |file: &OpenFile, ask: &mut Writer| {
            ask.int(gfmd::PUT_FD).int(file.number);
            ask.int(gfmd::GETDIRENTSPLUS).int(ENTRIES_MAX as i32);
        };
        let (mut last, mut all) = (page.len(), page);
        // A page that is not full is the last one.
        while last == ENTRIES_MAX {
            let page = self.each(std::slice::from_ref(dir), ask, |_, reply| {
                reply.good()?;
                reply.good()?;
                entries(reply)
            })?;
            match page.into_iter().next() {
                Some(Ok(page)) => {
                    last = page.len();
                    all.extend(page);
                    if all.len() > DIR_ENTRIES_MAX {
                        return Err(CallError::Protocol("more entries than can be held"));
                    }
                }
                Some(Err(code)) => return Ok(Err(code)),
                None => break,
            }
        }
        all.retain(|(name, _)| !matches!(name.as_slice(), b"." | b".."));
        Ok(Ok(all))
    }

    /// All file-system nodes that are not removed, whether they are up or not.
    ///
    /// # Errors
    ///
    /// The session has ended, or gfmd has no node.
    pub fn hosts(&self) -> Result<Vec<Host>, CallError> {
        self.ask_hosts().map_err(|error| self.named(error))
    }

    fn ask_hosts(&self) -> Result<Vec<Host>, CallError> {
        let mut link = self.locked();
        let mut ask = Writer::default();
        link.send(ask.int(gfmd::HOST_INFO_GET_ALL))?;
        match link.reply.good() {
            Err(CallError::Refused(Code::NO_SUCH_OBJECT)) => return Ok(Vec::new()),
            answer => answer?,
        }
        hosts(&mut link.reply)
    }

    fn locked(&self) -> MutexGuard<'_, Link> {
        self.link.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks the compound that `ask` writes for each item, and reads the answers in order. Many compounds are written by
    /// another thread, because the server stops reading while its answers are not read.
    fn each<T: Sync, A>(
        &self,
        items: &[T],
        ask: impl Fn(&T, &mut Writer) + Sync,
        answer: impl Fn(&T, &mut Replies) -> Result<A, CallError>,
    ) -> Result<Each<A>, CallError> {
        self.ask_each(items, ask, answer).map_err(|error| self.named(error))
    }

    /// An error of the session names the server: it would else seem to be of the node that is being used.
    fn named(&self, error: CallError) -> CallError {
        match error {
            CallError::Lost(kind) => {
                CallError::MetadataLost { server: self.server.to_string(), kind }
            }
            error => error,
        }
    }

    fn ask_each<T: Sync, A>(
        &self,
        items: &[T],
        ask: impl Fn(&T, &mut Writer) + Sync,
        answer: impl Fn(&T, &mut Replies) -> Result<A, CallError>,
    ) -> Result<Each<A>, CallError> {
        let mut link = self.locked();
        let sender = link.sender()?;
        let send = |items: &[T]| {
            items.chunks(TOGETHER).try_for_each(|portion| {
                let mut asked = Writer::default();
                for item in portion {
                    asked.int(gfmd::COMPOUND_BEGIN);
                    ask(item, &mut asked);
                    asked.int(gfmd::COMPOUND_END);
                }
                sender.send(&asked)
            })
        };
        let (now, later) = items.split_at(items.len().min(TOGETHER));
        send(now)?;
        thread::scope(|scope| {
            let sending = (!later.is_empty()).then(|| scope.spawn(|| send(later)));
            let mut answers = Vec::with_capacity(items.len());
            for item in items {
                match compound(item, &mut link.reply, &answer) {
                    Ok(told) => answers.push(told),
                    Err(error) => {
                        // What follows cannot be told from what belongs to this answer. The thread ends by this, too.
                        link.end();
                        return Err(error);
                    }
                }
            }
            match sending.map(thread::ScopedJoinHandle::join) {
                None | Some(Ok(Ok(()))) => Ok(answers),
                Some(Ok(Err(error))) => Err(error),
                Some(Err(_)) => Err(CallError::Lost(std::io::ErrorKind::Other)),
            }
        })
    }
}

/// The answers of one compound. An error number is the last of them.
fn compound<T, A>(
    item: &T,
    reply: &mut Replies,
    answer: impl Fn(&T, &mut Replies) -> Result<A, CallError>,
) -> Result<Result<A, Code>, CallError> {
    let whole = reply.good().and_then(|()| {
        let told = answer(item, reply)?;
        reply.good()?;
        Ok(told)
    });
    match whole {
        Ok(told) => Ok(Ok(told)),
        Err(CallError::Refused(code)) => Ok(Err(code)),
        Err(error) => Err(error),
    }
}
