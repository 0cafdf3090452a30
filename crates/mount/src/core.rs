//! The state that all threads of a mount share.
//!
//! One lock guards the state. No thread waits for the network or the kernel while it holds the lock: requests are sent,
//! and programs are answered, after it is released. A request to the server is answered by a function that runs on the
//! thread which reads the server's messages, so that no thread waits for one request.

use crate::answer::Waiting;
use crate::ask::Done;
use crate::ask::Op;
use crate::changes::{Changes, Turn};
use crate::crew::Crew;
use crate::fetch::{Give, Gives};
use crate::front::{OpenDir, Retries};
use crate::kernel::Kernel;
use crate::leases::Leases;
use crate::listings::Listing;
use crate::listings::Listings;
use crate::locks::{Locked, Locking};
use crate::nodes::{Nodes, Numbering};
use crate::options::Checks;
use crate::read::Read;
use crate::refused::Refused;
use crate::stage::Stage;
use crate::unconfirmed::Writes;
use crate::unnamed::Unnamed;
use crate::write::Outbox;
use bytes::Bytes;
use fuser::Errno;
use hikyaku_read_ahead::{Content, Pace, Pages, Reader};
use hikyaku_remote::Client;
use hikyaku_store::{ErrorKind, StorePath};
use hikyaku_units::Instant as Moment;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How a mount behaves.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    /// Metadata may be as old as this.
    pub(crate) attr_ttl: Duration,
    /// Whether the server is asked at each open.
    pub(crate) opens: Opens,
    /// Maximum time for which a program waits for a lost server.
    pub(crate) timeout: Duration,
    /// Memory for blocks of files, in bytes.
    pub(crate) cache_bytes: u64,
    /// Whether programs may write.
    pub(crate) access: Access,
    /// Where locks are.
    pub(crate) locking: Locking,
    /// Whose files they seem to be; `None` for the numbers of the server.
    pub(crate) owner: Option<(u32, u32)>,
    /// Whether the kernel checks the rights of a program by the metadata that it has.
    pub(crate) checks: Checks,
}

/// Whether the server is asked when a file is opened for reading.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Opens {
    /// At each open.
    Ask,
    /// Where the metadata are older than they may be.
    Trust,
}

/// Whether programs may write.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Access {
    Read,
    Write,
}

/// A mount.
pub(crate) struct Core {
    pub(crate) settings: Settings,
    pub(crate) gives: Gives,
    pub(crate) outbox: Outbox,
    /// Requests of programs that wait.
    pub(crate) waiting: Waiting,
    /// Changes that were decided here, on their way to the server.
    pub(crate) held_outbox: Outbox,
    /// Notifications to the kernel.
    pub(crate) kernel: Kernel,
    /// The journal of writes, with `--stage`.
    pub(crate) stage: Option<Arc<Stage>>,
    /// See [`Core::lock_order`].
    pub(crate) lock_order: Mutex<()>,
    /// The server has answered a change of names.
    pub(crate) names_told: Condvar,
    state: Mutex<State>,
    begin: Instant,
}

/// A caller that waits for a listing, and the last change of this mount when it began.
type ListWait = (Turn, Done<Arc<Listing>>);

/// The mutable state.
pub(crate) struct State {
    /// The servers.
    pub(crate) crew: Crew,
    /// Number of connections, plus that of lost ones while another connection existed.
    pub(crate) epoch: u64,
    pub(crate) nodes: Nodes,
    pub(crate) listings: Listings,
    /// Changes of this mount.
    pub(crate) changes: Changes,
    pub(crate) leases: Leases,
    /// Locks at the server.
    pub(crate) locked: Locked,
    pub(crate) pages: Pages<Bytes>,
    pub(crate) pace: Pace,
    pub(crate) handles: HashMap<u64, Handle>,
    pub(crate) dirs: HashMap<u64, OpenDir>,
    /// Requests that threads make once more after `ESTALE`.
    pub(crate) retries: Retries,
    /// Figures that programs have opened.
    pub(crate) texts: HashMap<u64, Bytes>,
    /// Requests for metadata.
    pub(crate) ops: BTreeMap<u64, Op>,
    /// Calls that wait for changes of names that are under way.
    pub(crate) change_waits: Vec<Box<dyn FnOnce() + Send>>,
    /// Calls that wait for the listing of a directory, each with the last change when it began.
    pub(crate) list_waits: HashMap<StorePath, Vec<ListWait>>,
    /// Directories of which the listing is asked for.
    pub(crate) lists: HashSet<StorePath>,
    /// Reads of programs that wait for blocks.
    pub(crate) reads: BTreeMap<u64, Read>,
    /// Which of them wait for a block.
    pub(crate) block_waits: HashMap<(Content, u64), Vec<u64>>,
    /// Requests for segments that are under way.
    pub(crate) under_way: Vec<Give>,
    /// Writes that the server has not confirmed.
    pub(crate) writes: Writes,
    /// Files that are open and have no name.
    pub(crate) unnamed: Unnamed,
    /// Changes that the server has refused and may accept later.
    pub(crate) refused: Refused,
    /// Since when there is no connection.
    pub(crate) down: Option<Instant>,
    pub(crate) totals: Totals,
    pub(crate) ending: Ending,
    last: u64,
}

/// Whether the mount ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Ending {
    /// It is served.
    #[default]
    None,
    /// The process ends. No server is connected again.
    Begun,
}

/// An open file.
#[derive(Debug)]
pub(crate) struct Handle {
    pub(crate) number: u64,
    pub(crate) reader: Reader,
    pub(crate) access: Access,
    /// The thread that has opened it.
    pub(crate) thread: u32,
    /// The error of a lost write, until a call through this handle has returned it.
    pub(crate) error: Option<Errno>,
    pub(crate) standing: Standing,
}

/// Whether the bytes of a file are those that a handle may read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Standing {
    Present,
    /// The file was opened anew with another content, which this handle must not mix with what it has read.
    Outdated,
}

/// Counters for `--status`.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Totals {
    /// Reads of programs, and those that found their bytes here.
    pub(crate) reads: u64,
    pub(crate) hits: u64,
    /// Bytes that came from the server.
    pub(crate) arrived_bytes: u64,
    /// Bytes that programs got.
    pub(crate) read_bytes: u64,
    /// Bytes that programs have written.
    pub(crate) written_bytes: u64,
    /// Reads that failed.
    pub(crate) failed: u64,
    /// Requests and changes that were sent to the server and that a program waited for.
    pub(crate) asked: u64,
    /// Changes that were decided here, and those of them that the server refused.
    pub(crate) held: u64,
    pub(crate) lost: u64,
}

impl Core {
    pub(crate) fn new(settings: Settings, crew: Crew, stage: Option<Arc<Stage>>) -> Arc<Self> {
        let state = State {
            epoch: crew.counts().1 as u64,
            nodes: Nodes::new(match crew.counts().1 {
                1 => Numbering::Identity,
                _ => Numbering::Path,
            }),
            crew,
            listings: Listings::default(),
            changes: Changes::default(),
            leases: Leases::default(),
            locked: Locked::new(),
            pages: Pages::new(settings.cache_bytes),
            pace: Pace::default(),
            handles: HashMap::new(),
            dirs: HashMap::new(),
            retries: Retries::default(),
            texts: HashMap::new(),
            ops: BTreeMap::new(),
            change_waits: Vec::new(),
            list_waits: HashMap::new(),
            lists: HashSet::new(),
            reads: BTreeMap::new(),
            block_waits: HashMap::new(),
            under_way: Vec::new(),
            writes: Writes::default(),
            refused: Refused::default(),
            unnamed: Unnamed::default(),
            down: None,
            totals: Totals::default(),
            ending: Ending::None,
            last: 0,
        };
        let (outbox, held_outbox) = (Outbox::default(), Outbox::default());
        let (gives, state, begin) = (Gives::default(), Mutex::new(state), Instant::now());
        let (waiting, names_told) = (Waiting::default(), Condvar::new());
        Arc::new(Self {
            settings,
            gives,
            outbox,
            waiting,
            held_outbox,
            kernel: Kernel::default(),
            stage,
            lock_order: Mutex::new(()),
            names_told,
            state,
            begin,
        })
    }

    /// Starts the threads that receive and send.
    pub(crate) fn start_threads(self: &Arc<Self>) -> std::io::Result<()> {
        self.start_receiving()?;
        self.start_writing()?;
        self.start_telling()
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The time, for the parts that read no clock.
    pub(crate) fn now(&self) -> Moment {
        Moment::from_nanos(self.begin.elapsed().as_nanos() as u64)
    }

    /// There is a connection again: everything that waits is asked for once more.
    pub(crate) fn on_up(self: &Arc<Self>, server: usize, client: Client) {
        self.doubt_staged();
        let mut state = self.state();
        state.epoch += 1;
        let number = state.epoch;
        state.crew.set_up(server, client.clone(), number);
        state.lose_leases();
        state.writes.resend();
        self.ask_again(state);
        if client.has_leases() {
            self.begin_leases(&client);
        }
    }

    /// A connection is lost. Its pending requests are sent to the other servers.
    pub(crate) fn on_down(self: &Arc<Self>, server: usize) {
        self.lose_locks();
        let mut state = self.state();
        state.crew.set_lost(server);
        state.lose_leases();
        let takes = state.drop_takes();
        if state.crew.is_up() {
            state.epoch += 1;
            self.ask_again(state);
        } else {
            state.down = Some(Instant::now());
            drop(state);
        }
        // Nothing is granted over the next connection before the server knows whom it is with.
        takes.iter().for_each(|dir| self.taken(dir, None, None));
    }

    fn ask_again(self: &Arc<Self>, mut state: MutexGuard<'_, State>) {
        state.down = None;
        self.outbox.replace(state.writes.numbers());
        let ops: Vec<u64> = state.ops.keys().copied().collect();
        let reads: Vec<u64> = state.reads.keys().copied().collect();
        drop(state);
        ops.into_iter().for_each(|op| self.start(op));
        self.drive_all(&reads);
    }

    /// Fails what has waited for too long.
    pub(crate) fn expire(self: &Arc<Self>) {
        let now = Instant::now();
        self.waiting.tend();
        self.tend_leases();
        self.expire_ops(now);
        self.expire_reads(now);
        self.expire_writes(now);
        self.expire_stage(now);
        self.tend_stage();
        self.tend_refused();
        self.tend_reads();
    }
}

impl State {
    /// A number that was not used before.
    pub(crate) const fn next(&mut self) -> u64 {
        self.last += 1;
        self.last
    }
}

/// The error number that a program gets. A server that is not there is an input/output error.
pub(crate) fn errno(kind: ErrorKind) -> Errno {
    match kind {
        ErrorKind::TimedOut | ErrorKind::Unreachable => Errno::EIO,
        kind => Errno::from_i32(kind.errno().raw_os_error()),
    }
}
