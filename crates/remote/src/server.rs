//! The end that has the store.

mod edit;
mod give;
mod guarded;
mod lease;
mod leases;
mod list;
mod lock;
mod locks;
mod name;
mod processes;
mod put;
mod report;
mod requests;
mod view;
mod walk;
mod wanted;
mod withdrawn;

use crate::message::Holder;
use give::Gives;
use guarded::Guarded;
use hikyaku_net::blocking::block_on;
use hikyaku_net::{CloseReason, OpenError};
use hikyaku_reach::{Connection, Loss, PathMemory, Readers, Service};
use hikyaku_run_log::SharedProbe;
use hikyaku_store::Store;
use leases::End;
pub use leases::{Leases, Party};
use lock::Answers;
pub use locks::Locks;
use name::Naming;
pub use processes::Processes;
use requests::attend;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::{self, Scope};
pub use view::{Render, Rendered};
pub use withdrawn::HIDDEN_PREFIX;
use withdrawn::Withdrawn;

/// The service of a far side that serves all files of its machine to the user who has started it through ssh.
pub const FILES: Service = Service {
    name: "files",
    streams_max: 64,
    readers: Readers::One,
    path_memory: PathMemory::OfUser,
    loss: Loss::BeginsAnew,
};

/// A store that is served to clients.
#[derive(Clone)]
pub struct Server {
    store: Arc<dyn Store>,
    limits: Limits,
    render: Option<Render>,
    probe: Option<Arc<SharedProbe>>,
    leases: Option<(Arc<Leases>, Party)>,
    locks: Option<Arc<Locks>>,
    processes: Option<(Arc<Processes>, Party)>,
    home: Option<Vec<u8>>,
}

/// What one client may have of a server at most.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Bulk objects that are read and sent at once. More wait, so that few files are read at a time and an urgent
    /// request finds the queues short.
    pub gives: usize,
    /// Requests for ranges that wait.
    pub waiting: usize,
    /// Streams of requests.
    pub streams: usize,
    /// Whether clients may change the store.
    pub writes: Writes,
    /// Large files that are being uploaded at once. One more ends the connection.
    pub drafts: usize,
}

/// Whether clients may change the store.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Writes {
    /// Each change is refused.
    #[default]
    Refused,
    /// They may.
    Allowed,
}

impl Default for Limits {
    /// Four objects at once, 1,024 waiting, 8 streams, no changes, 128 drafts.
    fn default() -> Self {
        let writes = Writes::Refused;
        Self { gives: 4, waiting: 1024, streams: 8, writes, drafts: 128 }
    }
}

/// Why a session with a client ended early.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// No thread can be started.
    #[error("cannot start a thread")]
    Thread(#[from] std::io::Error),
}

/// What a session's threads have in common.
pub(crate) struct Session {
    pub(crate) connection: Connection,
    /// The store, whose uses wait for leases of others.
    pub(crate) store: Arc<dyn Store>,
    /// The same without waiting.
    pub(crate) plain: Arc<dyn Store>,
    /// The leases, and the key with which the client was let in.
    pub(crate) leases: Option<(Arc<Leases>, Party)>,
    pub(crate) locks: Option<Arc<Locks>>,
    /// The names of clients' processes, and the key with which the client was let in.
    processes: Option<(Arc<Processes>, Party)>,
    /// The directory in which the paths of the client's user begin.
    pub(crate) home: Option<Vec<u8>>,
    /// The name under which the client holds leases.
    pub(crate) who: Arc<OnceLock<Holder>>,
    /// The number of the session, over all of this process.
    pub(crate) number: u64,
    pub(crate) limits: Limits,
    pub(crate) render: Option<Render>,
    pub(crate) probe: Option<Arc<SharedProbe>>,
    pub(crate) gives: Gives,
    /// Uploaded files that wait for their names.
    pub(crate) naming: Naming,
    /// Drafts that have been begun and not ended.
    pub(crate) drafts: AtomicUsize,
    /// Files without a name that the client goes on with.
    withdrawn: Withdrawn,
    /// Answers about locks that were waited for.
    answers: Answers,
    /// Streams of requests that are open.
    streams: AtomicUsize,
}

/// Uploaded files of one client that are brought to the disk at once: each waits for the disk, which syncs many together.
const NAMERS: usize = 8;

/// With this code the server closes when the client breaks the protocol.
pub(crate) const BROKEN: u64 = hikyaku_net::code::APPLICATION + 2;

impl Server {
    /// A server of `store`.
    pub fn new(store: Arc<dyn Store>, limits: Limits) -> Self {
        Self {
            store,
            limits,
            render: None,
            leases: None,
            locks: None,
            probe: None,
            processes: None,
            home: None,
        }
    }

    /// The same with windows of pictures, which `render` makes. Without it they are refused.
    #[must_use]
    pub fn with_views(self, render: Option<Render>) -> Self {
        Self { render, ..self }
    }

    /// The same with reports of the state of this machine, which `probe` reads. Without it they are refused.
    #[must_use]
    pub fn with_reports(self, probe: Option<Arc<SharedProbe>>) -> Self {
        Self { probe, ..self }
    }

    /// The same with leases, which all servers of the same files share, for a client that was let in with this key. Without
    /// them they are refused.
    #[must_use]
    pub fn with_leases(self, leases: Option<Arc<Leases>>, party: Party) -> Self {
        Self { leases: leases.map(|leases| (leases, party)), ..self }
    }

    /// The same with locks of ranges, which all servers of the same files share. Without them they are refused.
    #[must_use]
    pub fn with_locks(self, locks: Option<Arc<Locks>>) -> Self {
        Self { locks, ..self }
    }

    /// The same with the names of clients' processes, which all servers of a daemon share, for a client that was let in with
    /// this key. Without them what clients tell of their processes is not used.
    #[must_use]
    pub fn with_processes(self, processes: Arc<Processes>, party: Party) -> Self {
        Self { processes: Some((processes, party)), ..self }
    }

    /// This server, for a user of this machine whose paths begin in this directory of the store. Without a directory the request
    /// `Home` is refused.
    #[must_use]
    pub fn with_home(self, home: Option<Vec<u8>>) -> Self {
        Self { home, ..self }
    }

    /// Serves one client until the connection ends. It calls the store from several threads.
    ///
    /// # Errors
    ///
    /// The machine has no room for another thread.
    pub fn attend(&self, connection: Connection) -> Result<Option<CloseReason>, ServeError> {
        static SESSIONS: AtomicU64 = AtomicU64::new(0);
        let who = Arc::<OnceLock<Holder>>::default();
        let guarded = |(leases, _): &(Arc<Leases>, Party)| -> Arc<dyn Store> {
            let (inner, leases, who) = (self.store.clone(), leases.clone(), who.clone());
            Arc::new(Guarded { inner, leases, who })
        };
        let session = Session {
            connection: connection.clone(),
            store: self.leases.as_ref().map_or_else(|| self.store.clone(), guarded),
            plain: self.store.clone(),
            leases: self.leases.clone(),
            locks: self.locks.clone(),
            processes: self.processes.clone(),
            home: self.home.clone(),
            who: who.clone(),
            number: SESSIONS.fetch_add(1, Ordering::Relaxed),
            limits: self.limits,
            render: self.render.clone(),
            probe: self.probe.clone(),
            gives: Gives::new(self.limits),
            naming: Naming::default(),
            drafts: AtomicUsize::new(0),
            withdrawn: Withdrawn::default(),
            answers: Answers::default(),
            streams: AtomicUsize::new(0),
        };
        let served = thread::scope(|scope| {
            let served = session.serve(scope);
            // The threads that wait for requests end by this.
            session.gives.end();
            session.naming.end();
            session.answers.end();
            if let Some(locks) = &session.locks {
                locks.end(session.number);
            }
            if let (Some((leases, _)), Some(&holder)) = (&session.leases, session.who.get()) {
                let end = match &served {
                    Ok(Some(CloseReason::Peer { .. })) => End::Told,
                    _ => End::Lost,
                };
                leases.end(holder, session.number, end);
            }
            if served.is_err() {
                connection.close(BROKEN, "the server has no room for another thread");
            }
            served
        });
        if let Some((processes, _)) = &session.processes {
            processes.end(session.number);
        }
        // A request that was under way when the connection ended may have locked something.
        if let Some(locks) = &session.locks {
            locks.end(session.number);
        }
        served
    }
}

impl Session {
    /// Starts the threads of the session and accepts streams until the connection ends.
    fn serve<'scope>(
        &'scope self,
        scope: &'scope Scope<'scope, '_>,
    ) -> Result<Option<CloseReason>, ServeError> {
        let named = |name: &str| thread::Builder::new().name(name.to_owned());
        for _ in 0..self.limits.gives {
            named("serve-give").spawn_scoped(scope, || self.gives.work(self))?;
        }
        named("serve-urgent").spawn_scoped(scope, || self.gives.work_urgent(self))?;
        if self.locks.is_some() {
            named("serve-locks").spawn_scoped(scope, || self.answers.work())?;
        }
        if self.limits.writes == Writes::Allowed {
            for _ in 0..NAMERS {
                named("serve-names").spawn_scoped(scope, || self.naming.work(&*self.store))?;
            }
        }
        loop {
            let stream = match block_on(self.connection.accept_stream()) {
                Ok(stream) => stream,
                Err(OpenError::Closed(reason)) => return Ok(Some(reason)),
                Err(_) => return Ok(None),
            };
            if self.streams.fetch_add(1, Ordering::Relaxed) >= self.limits.streams {
                self.connection.close(BROKEN, "too many streams of requests");
                continue;
            }
            let attend = move || {
                if let Err(broken) = attend(self, stream) {
                    self.connection.close(BROKEN, broken);
                }
                self.streams.fetch_sub(1, Ordering::Relaxed);
            };
            named("serve-requests").spawn_scoped(scope, attend)?;
        }
    }
}
