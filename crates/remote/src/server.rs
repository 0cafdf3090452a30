//! The end that has the store.

mod give;
mod requests;
mod walk;

use give::Gives;
use hikyaku_net::blocking::block_on;
use hikyaku_net::{CloseReason, OpenError};
use hikyaku_reach::Connection;
use hikyaku_store::Store;
use hikyaku_units::Rate;
use requests::attend;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// A store that is served to clients.
#[derive(Clone)]
pub struct Server {
    store: Arc<dyn Store>,
    limits: Limits,
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
}

impl Default for Limits {
    /// Four objects at once, 1,024 waiting, 8 streams, no rate limit.
    fn default() -> Self {
        Self { gives: 4, waiting: 1024, streams: 8, rate: None }
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
    pub(crate) gives: Gives,
}

/// With this code the server closes when the client breaks the protocol.
pub(crate) const BROKEN: u64 = hikyaku_net::code::APPLICATION + 2;

impl Server {
    /// A server of `store`.
    pub fn new(store: Arc<dyn Store>, limits: Limits) -> Self {
        Self { store, limits }
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
            gives: Gives::new(self.limits),
        };
        connection.set_payload_rate(self.limits.rate);
        let streams = AtomicUsize::new(0);
        thread::scope(|scope| {
            let session = &session;
            for number in 0..self.limits.gives {
                let name = format!("serve-give-{number}");
                let work = || session.gives.work(session);
                if let Err(error) = thread::Builder::new().name(name).spawn_scoped(scope, work) {
                    connection.close(BROKEN, "the server has no room for another thread");
                    session.gives.end();
                    return Err(error.into());
                }
            }
            let urgent = thread::Builder::new().name("serve-urgent".to_owned());
            urgent.spawn_scoped(scope, || session.gives.work_urgent(session))?;
            loop {
                let stream = match block_on(connection.accept_stream()) {
                    Ok(stream) => stream,
                    Err(OpenError::Closed(reason)) => {
                        session.gives.end();
                        return Ok(Some(reason));
                    }
                    Err(_) => {
                        session.gives.end();
                        return Ok(None);
                    }
                };
                if streams.fetch_add(1, Ordering::Relaxed) >= self.limits.streams {
                    connection.close(BROKEN, "too many streams of requests");
                    continue;
                }
                let streams = &streams;
                let attend = move || {
                    if let Err(broken) = attend(session, stream) {
                        session.connection.close(BROKEN, broken);
                    }
                    streams.fetch_sub(1, Ordering::Relaxed);
                };
                let named = thread::Builder::new().name("serve-requests".to_owned());
                if let Err(error) = named.spawn_scoped(scope, attend) {
                    connection.close(BROKEN, "the server has no room for another thread");
                    session.gives.end();
                    return Err(error.into());
                }
            }
        })
    }
}
