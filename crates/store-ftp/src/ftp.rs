//! The sessions of a store.

use crate::convert::{kind, reason};
use crate::listing::Rest;
use crate::notes::Notes;
use crate::sent::Sent;
use crate::uploads::Uploads;
use crate::writing::Writing;
use hikyaku_fs::Shown;
use hikyaku_gridftp::{Channel, Facts, FtpError, Mode, Server, Settings};
use hikyaku_store::{Doing, ErrorKind, Identities, Kind, Note, Result, StorePath};
use std::collections::HashSet;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// A session that has waited for longer than this is asked whether it is alive: servers end idle ones.
const TRUSTED_TIME: Duration = Duration::from_secs(20);

/// A server that does not answer is not waited for longer when an unfinished file is removed.
const LAST_TIME: Duration = Duration::from_secs(5);

/// Batches that are under way at once, each over sessions of its own.
const TURNS_MAX: usize = 4;
/// A file waits for the end of others for at most this time.
const SLOT_TIME: Duration = Duration::from_secs(60);
/// Sessions that read at once, or that carry out one batch, unless the user has set their number.
const SESSIONS: usize = 4;

/// A directory of a server. Clones share its sessions.
#[derive(Clone)]
pub struct Ftp(Arc<Inner>);

struct Inner {
    server: Server,
    settings: Settings,
    /// With a slash at its end.
    root: Vec<u8>,
    traits: Traits,
    idle: Mutex<Vec<Idle>>,
    rest: Mutex<Option<Rest>>,
    /// The unfinished files that this store writes, by their full paths.
    drafts: Mutex<HashSet<Vec<u8>>>,
    turns: Mutex<usize>,
    has_turn: Condvar,
    /// The server has failed with two parts at once.
    is_one_by_one: AtomicBool,
    /// The number of sessions, if the user has set it.
    sessions: OnceLock<usize>,
    writing: OnceLock<Writing>,
    notes: OnceLock<Arc<Notes>>,
    uploads: Uploads,
    sent: Sent,
    /// Bytes of small files that wait in memory.
    held: AtomicU64,
    /// Files that are sent at once.
    slots: Mutex<usize>,
    has_slot: Condvar,
}

/// The right to send a file, until it is dropped.
pub(crate) struct Slot<'f>(&'f Inner);

impl Drop for Slot<'_> {
    fn drop(&mut self) {
        *lock(&self.0.slots) -= 1;
        self.0.has_slot.notify_one();
    }
}

/// The right to send a batch, until it is dropped.
pub(crate) struct Turn<'f>(&'f Inner);

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        *self.0.turns.lock().unwrap_or_else(PoisonError::into_inner) -= 1;
        self.0.has_turn.notify_one();
    }
}

/// Properties of the server, found when the store was opened.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Traits {
    pub(crate) mode: Mode,
    /// Whether it shows permission bits. Servers that do so set them, too.
    pub(crate) modes: Modes,
    pub(crate) times: Times,
    pub(crate) identities: Identities,
    pub(crate) listings: Listings,
    pub(crate) rtt: Duration,
}

/// Whether the server sends listings as replies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Listings {
    /// It does: many of them take one round trip.
    Together,
    /// Each comes over a data connection.
    OneByOne,
}

/// Whether files have permission bits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Modes {
    Shown,
    Unknown,
}

/// Whether modification times can be set (MFMT).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Times {
    Settable,
    OfServer,
}

struct Idle {
    channel: Channel,
    since: Instant,
}

/// Why a store cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The server cannot be used.
    #[error(transparent)]
    Ftp(#[from] FtpError),
    /// The path does not exist.
    #[error("{0}: no such directory")]
    NotFound(String),
    /// The path is another kind of file.
    #[error("{0}: not a directory")]
    NotDir(String),
}

impl OpenError {
    /// The reason as that of an operation on a file.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Ftp(error) => reason(error),
            Self::NotFound(_) => ErrorKind::NotFound,
            Self::NotDir(_) => ErrorKind::NotDir,
        }
    }

    /// A remedy for the user.
    pub const fn remedy(&self) -> Option<&'static str> {
        match self {
            Self::Ftp(FtpError::Refused { code: 530, .. }) => {
                Some("another user name or password in the URL: ftp://USER:PASSWORD@HOST/PATH")
            }
            Self::Ftp(FtpError::NotReached(_)) => {
                Some("allow TCP connections from the server to this host in every firewall between")
            }
            _ => None,
        }
    }
}

impl Ftp {
    /// Connects and logs in. The store is the directory `root` of the server.
    ///
    /// # Errors
    ///
    /// The server cannot be used, or `root` is no directory.
    pub fn open(
        server: &Server,
        settings: &Settings,
        root: &[u8],
    ) -> std::result::Result<Self, OpenError> {
        let mut channel = Channel::open(server, settings)?;
        channel.measure_rtt()?;
        let shown = || Shown::new(root).to_string();
        let facts = channel.facts(root)?.ok_or_else(|| OpenError::NotFound(shown()))?;
        // The root may be a link: the user has named it.
        if !matches!(kind(&Facts { link: None, ..facts.clone() }), Kind::Dir) {
            return Err(OpenError::NotDir(shown()));
        }
        Ok(Self::over(channel, (server, settings), (root, &facts)))
    }

    /// A store over an open channel, of whose round-trip time it has a measurement. The directory `root` has these facts.
    pub fn over(
        channel: Channel,
        (server, settings): (&Server, &Settings),
        (root, facts): (&[u8], &Facts),
    ) -> Self {
        let traits = Traits {
            mode: channel.mode(),
            modes: facts.mode.map_or(Modes::Unknown, |_| Modes::Shown),
            identities: match facts.unique {
                Some(_) => Identities::OfFiles,
                None => Identities::OfPaths,
            },
            times: if channel.features().has("MFMT") { Times::Settable } else { Times::OfServer },
            listings: match channel.lists_at_once() {
                true => Listings::Together,
                false => Listings::OneByOne,
            },
            rtt: channel.rtt().unwrap_or_default(),
        };
        let mut root = root.to_vec();
        if !root.ends_with(b"/") {
            root.push(b'/');
        }
        let idle = Mutex::new(vec![Idle { channel, since: Instant::now() }]);
        Self(Arc::new(Inner {
            server: server.clone(),
            settings: settings.clone(),
            root,
            traits,
            idle,
            rest: Mutex::default(),
            drafts: Mutex::default(),
            turns: Mutex::default(),
            has_turn: Condvar::new(),
            is_one_by_one: AtomicBool::new(false),
            sessions: OnceLock::new(),
            writing: OnceLock::new(),
            notes: OnceLock::new(),
            uploads: Uploads::default(),
            sent: Sent::default(),
            held: AtomicU64::new(0),
            slots: Mutex::default(),
            has_slot: Condvar::new(),
        }))
    }

    /// Removes an unfinished file, also if the user has stopped everything. A failure leaves a name that shows that it is
    /// unfinished.
    pub(crate) fn remove_unfinished(&self, path: &[u8]) {
        let removed = self.with(|channel| channel.remove(path));
        if removed.is_err() && self.0.settings.stop.load(Ordering::Relaxed) {
            let stop = Arc::default();
            let settings = Settings { stop, patience: LAST_TIME, ..self.0.settings.clone() };
            let channel = Channel::open(&self.0.server, &settings);
            drop(channel.and_then(|mut channel| channel.remove(path)));
        }
    }

    /// The store, whose drafts are written so.
    #[must_use]
    pub fn with_writing(self, writing: Writing) -> Self {
        self.0.writing.get_or_init(|| writing);
        self
    }

    /// The store, whose unfinished files are noted.
    #[must_use]
    pub fn with_notes(self, notes: Arc<Notes>) -> Self {
        self.0.notes.get_or_init(|| notes);
        self
    }

    /// How drafts are written.
    pub(crate) fn writing(&self) -> &Writing {
        self.0.writing.get_or_init(Writing::default)
    }

    /// Notes an unfinished file.
    pub(crate) fn note(&self, full: &[u8]) -> Option<Note> {
        self.0.notes.get()?.note(full)
    }

    /// The counters of uploads.
    pub(crate) fn sent(&self) -> &Sent {
        &self.0.sent
    }

    /// Bytes of small files that wait in memory.
    pub(crate) fn held(&self) -> &AtomicU64 {
        &self.0.held
    }

    /// The measurements of uploads.
    pub(crate) fn uploads(&self) -> &Uploads {
        &self.0.uploads
    }

    /// Waits until another file may be sent, if the user has set the number of sessions. A wait for too long ends: the
    /// others may wait for this file.
    pub(crate) fn slot(&self) -> Slot<'_> {
        let Inner { slots, has_slot, sessions, .. } = &*self.0;
        let most = sessions.get().copied().unwrap_or(usize::MAX);
        let taken = lock(slots);
        let waited = has_slot.wait_timeout_while(taken, SLOT_TIME, |taken| {
            *taken >= most && !self.settings().stop.load(Ordering::Relaxed)
        });
        *waited.unwrap_or_else(PoisonError::into_inner).0 += 1;
        Slot(&self.0)
    }

    /// The store with this number of sessions at once.
    #[must_use]
    pub fn with_sessions(self, count: usize) -> Self {
        self.0.sessions.get_or_init(|| count.max(1));
        self
    }

    /// Sessions that read at once.
    pub(crate) fn readers_max(&self) -> usize {
        self.0.sessions.get().copied().unwrap_or(SESSIONS)
    }

    fn turns_max(&self) -> usize {
        self.0.sessions.get().map_or(TURNS_MAX, |sessions| TURNS_MAX.min(*sessions))
    }

    /// Sessions of one batch.
    pub(crate) fn sessions_of_batch(&self) -> usize {
        self.0.sessions.get().map_or(SESSIONS, |sessions| sessions / self.turns_max())
    }

    /// Waits until another batch may be under way.
    pub(crate) fn turn(&self) -> Turn<'_> {
        let Inner { turns, has_turn, .. } = &*self.0;
        let most = self.turns_max();
        let turns = turns.lock().unwrap_or_else(PoisonError::into_inner);
        let free = has_turn.wait_while(turns, |turns| *turns >= most);
        *free.unwrap_or_else(PoisonError::into_inner) += 1;
        Turn(&self.0)
    }

    /// Whether the server sends many listings in one round trip.
    pub(crate) fn lists_at_once(&self) -> bool {
        self.0.traits.listings == Listings::Together
    }

    /// Whether the server takes the command for a file before it has stored another one.
    pub(crate) fn works_ahead(&self) -> bool {
        !self.0.is_one_by_one.load(Ordering::Relaxed)
    }

    /// The server does not.
    pub(crate) fn works_one_by_one(&self) {
        self.0.is_one_by_one.store(true, Ordering::Relaxed);
    }

    /// A session that waits for work; `None` if none does.
    pub fn take_idle(&self) -> Option<Channel> {
        self.idle().pop().map(|idle| idle.channel)
    }

    /// Adds a session that waits for work.
    pub fn add_idle(&self, channel: Channel) {
        self.idle().push(Idle { channel, since: Instant::now() });
    }

    /// Opens a session more, which waits for work.
    pub(crate) fn open_another(&self) -> std::result::Result<(), FtpError> {
        Channel::open(&self.0.server, &self.0.settings).map(|channel| self.add_idle(channel))
    }

    pub(crate) fn traits(&self) -> Traits {
        self.0.traits
    }

    /// The server.
    pub(crate) fn server(&self) -> &Server {
        &self.0.server
    }

    pub(crate) fn settings(&self) -> &Settings {
        &self.0.settings
    }

    /// The entries of a directory behind the last page of its listing.
    pub(crate) fn rest(&self) -> MutexGuard<'_, Option<Rest>> {
        self.0.rest.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The unfinished files that this store writes.
    pub(crate) fn drafts(&self) -> MutexGuard<'_, HashSet<Vec<u8>>> {
        self.0.drafts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The path at the server.
    pub(crate) fn full(&self, path: &StorePath) -> Vec<u8> {
        [&self.0.root[..], path.as_bytes()].concat()
    }

    /// Does something in a session.
    pub(crate) fn with<T>(
        &self,
        what: impl FnOnce(&mut Channel) -> std::result::Result<T, FtpError>,
    ) -> std::result::Result<T, FtpError> {
        let mut channel = self.take()?;
        let done = what(&mut channel);
        let is_usable = done.as_ref().err().is_none_or(FtpError::leaves_channel);
        if is_usable && channel.is_in_step() {
            self.add_idle(channel);
        }
        done
    }

    /// A session that waits, or a new one.
    fn take(&self) -> std::result::Result<Channel, FtpError> {
        self.take_alive().map_or_else(|| Channel::open(&self.0.server, &self.0.settings), Ok)
    }

    /// A session that waits; `None` if none does that the server has not ended.
    pub(crate) fn take_alive(&self) -> Option<Channel> {
        loop {
            // The lock is not held while the server is asked.
            let idle = self.idle().pop();
            let Idle { mut channel, since } = idle?;
            if since.elapsed() < TRUSTED_TIME || channel.measure_rtt().is_ok() {
                return Some(channel);
            }
        }
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Idle>> {
        self.0.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The facts of a path that exists.
    pub(crate) fn facts(&self, doing: Doing<'_>) -> Result<Facts> {
        let full = self.full(doing.path());
        match self.with_retries(|channel| channel.facts(&full)) {
            Ok(Some(facts)) => Ok(facts),
            Ok(None) => doing.fail(self.missing(doing.path())),
            Err(error) => {
                let kind = reason(&error);
                self.observed(|observer| observer.failed(Some(doing.path()), error));
                doing.fail(kind)
            }
        }
    }

    /// The server's checksum of a whole file (CKSM, GFD.047), in hexadecimal digits.
    ///
    /// # Errors
    /// The server cannot compute it.
    pub fn checksum(
        &self,
        path: &StorePath,
        algorithm: &str,
        size: u64,
    ) -> std::result::Result<String, FtpError> {
        let full = self.full(path);
        self.with(|channel| channel.checksum(algorithm, &full, 0, size))
    }

    /// Why nothing is at a path.
    pub(crate) fn missing(&self, path: &StorePath) -> ErrorKind {
        let mut above = path.split().map(|(dir, _)| dir);
        while let Some(dir) = above.filter(|dir| *dir != StorePath::ROOT) {
            let full = self.full(&dir);
            match self.with(|channel| channel.facts(&full)) {
                Ok(Some(facts)) if kind(&facts) == Kind::Dir => return ErrorKind::NotFound,
                Ok(Some(facts)) if kind(&facts) == Kind::File => return ErrorKind::NotDir,
                Ok(Some(_)) => return ErrorKind::Link,
                Ok(None) => {}
                Err(error) => return reason(&error),
            }
            above = dir.split().map(|(dir, _)| dir);
        }
        ErrorKind::NotFound
    }

    /// Why a command about a path has failed. A server has one code for most reasons.
    pub(crate) fn why(&self, path: &StorePath, error: &FtpError) -> ErrorKind {
        let kind = reason(error);
        if !matches!(error, FtpError::Refused { code: 500.., .. }) || kind == ErrorKind::NoSpace {
            return kind;
        }
        let full = self.full(path);
        match self.with(|channel| channel.facts(&full)) {
            Ok(None) => self.missing(path),
            _ => kind,
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl fmt::Debug for Ftp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ftp").field("server", &self.0.server).finish_non_exhaustive()
    }
}
