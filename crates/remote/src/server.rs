//! The end that has the store.

mod edit;
mod give;
mod list;
mod name;
mod put;
mod report;
mod requests;
mod view;
mod walk;

use give::Gives;
use hikyaku_net::blocking::block_on;
use hikyaku_net::{CloseReason, OpenError};
use hikyaku_reach::Connection;
use hikyaku_run_log::SharedProbe;
use hikyaku_store::Store;
use hikyaku_units::Rate;
use name::Naming;
use requests::attend;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{self, Scope};
pub use view::{Render, Rendered};

/// A store that is served to clients.
#[derive(Clone)]
pub struct Server {
    store: Arc<dyn Store>,
    limits: Limits,
    render: Option<Render>,
    probe: Option<Arc<SharedProbe>>,
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
    /// The rate of payload, which no client can raise.
    pub rate: Option<Rate>,
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
    /// Four objects at once, 1,024 waiting, 8 streams, no rate limit, no changes, 16 drafts.
    fn default() -> Self {
        let writes = Writes::Refused;
        Self { gives: 4, waiting: 1024, streams: 8, rate: None, writes, drafts: 16 }
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
    pub(crate) store: Arc<dyn Store>,
    pub(crate) limits: Limits,
    pub(crate) render: Option<Render>,
    pub(crate) probe: Option<Arc<SharedProbe>>,
    pub(crate) gives: Gives,
    /// Uploaded files that wait for their names.
    pub(crate) naming: Naming,
    /// Drafts that have been begun and not ended.
    pub(crate) drafts: AtomicUsize,
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
        Self { store, limits, render: None, probe: None }
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

    /// Serves one client until the connection ends. It calls the store from several threads.
    ///
    /// # Errors
    ///
    /// The machine has no room for another thread.
    pub fn attend(&self, connection: Connection) -> Result<Option<CloseReason>, ServeError> {
        let session = Session {
            connection: connection.clone(),
            store: self.store.clone(),
            limits: self.limits,
            render: self.render.clone(),
            probe: self.probe.clone(),
            gives: Gives::new(self.limits),
            naming: Naming::default(),
            drafts: AtomicUsize::new(0),
            streams: AtomicUsize::new(0),
        };
        connection.set_payload_rate(self.limits.rate);
        thread::scope(|scope| {
            let served = session.serve(scope);
            // The threads that wait for requests end by this.
            session.gives.end();
            session.naming.end();
            if served.is_err() {
                connection.close(BROKEN, "the server has no room for another thread");
            }
            served
        })
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
