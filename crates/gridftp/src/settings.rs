//! How a channel behaves.

use crate::gsi::Credentials;
use crate::guard::Guard;
use crate::reply::Reply;
use hikyaku_tcp::Options;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// How a channel behaves.
#[derive(Clone)]
pub struct Settings {
    /// Set by the caller to end all that is under way, within a few tenths of a second.
    pub stop: Arc<AtomicBool>,
    /// Time without a byte after which the connection to a server fails. Default 60 s: longer than a server takes to open
    /// a file on tape, shorter than a user waits.
    pub patience: Duration,
    /// Of all connections. A buffer size is asked of the server as well (SBUF).
    pub tcp: Options,
    /// Whether data connections may go to, and come from, other hosts than the control connection's.
    pub data_hosts: DataHosts,
    /// Whether all data nodes of a striped server carry a part at once (SPAS, SPOR). Default: one of them does.
    pub stripes: Stripes,
    /// Bytes of a block of an upload. Default 256 KiB.
    pub block_bytes: u32,
    /// For a login by certificate.
    pub credentials: Option<Credentials>,
    /// The key by which data connections of a login by certificate are authenticated (`DCAU A`). Without it they are not
    /// (`DCAU N`).
    pub guard: Option<Guard>,
    /// Whether servers can connect to this end, in common for all channels with these settings.
    pub reach: Reach,
    /// Receives every command and reply, without passwords.
    pub trace: Option<Trace>,
}

/// Whether the server can connect to this end. Clones have it in common. If it could not once, because of a firewall or an address
/// translator, downloads and listings come in stream mode: this end connects then.
#[derive(Clone, Debug, Default)]
pub struct Reach(Arc<AtomicBool>);

impl Reach {
    pub(crate) fn is_blocked(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    pub(crate) fn block(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Which hosts may be at the other end of a data connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum DataHosts {
    /// The control connection's host only. It replaces every address that the server sends, so that a server cannot
    /// direct data to a third host, and a server behind an address translator can be used.
    #[default]
    Server,
    /// Any address that the server sends: for a server whose data nodes are other hosts.
    Any,
}

/// Which data nodes of a server carry a part.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Stripes {
    /// One, which the server chooses.
    #[default]
    One,
    /// All of them at once. Data connections go to, and come from, the hosts that the server names as its data nodes.
    All,
}

/// Receives every command and reply.
pub type Trace = Arc<dyn Fn(Spoken<'_>) + Send + Sync>;

/// A line of a control connection.
#[derive(Clone, Copy, Debug)]
pub enum Spoken<'a> {
    /// A command of this end.
    Command(&'a str),
    /// A reply of the server.
    Reply(&'a Reply),
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            stop: Arc::default(),
            patience: Duration::from_secs(60),
            tcp: Options::default(),
            data_hosts: DataHosts::default(),
            stripes: Stripes::default(),
            block_bytes: 256 << 10,
            credentials: None,
            guard: None,
            reach: Reach::default(),
            trace: None,
        }
    }
}

impl Settings {
    pub(crate) fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Settings").field("patience", &self.patience).finish_non_exhaustive()
    }
}
