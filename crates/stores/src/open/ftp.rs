//! GridFTP and FTP servers.

use super::{Holder, OpenError, Opening};
use crate::location::{FtpPath, FtpScheme};
use hikyaku_gridftp::{Credentials, Guard, Login, Privacy, Server, Settings};
use hikyaku_reach::tcp::Pipes;
use hikyaku_store::Root;
use hikyaku_store_ftp::{Connections, Ftp, Limits, Retry, Writing};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The number of times that blocks of an upload are sent again after a lost connection that has not confirmed them.
const RETRY: Retry = Retry { attempts: 5, interval: Duration::from_secs(2) };

/// A server that is connected.
#[derive(Clone)]
pub(super) struct FtpServer {
    pub(super) name: String,
    server: Server,
    store: Ftp,
    stop: Arc<AtomicBool>,
}

impl FtpServer {
    /// Logs in. The user's certificate is that of the environment, as for globus-url-copy; both ends of data connections are
    /// then authenticated.
    pub(super) fn connect(at: &FtpPath, opening: &Opening) -> Result<Self, OpenError> {
        let stop: Arc<AtomicBool> = Arc::default();
        let mut settings = Settings { stop: stop.clone(), ..Settings::default() };
        settings.patience = opening.silence.unwrap_or(settings.patience);
        settings.tcp.family = opening.family;
        if at.scheme() == FtpScheme::GsiFtp {
            settings.credentials = Some(Credentials::of_user()?);
            settings.guard = Some(Guard::new(Privacy::Clear)?);
        }
        let connections = match opening.hosts.way.pipes {
            Pipes::Fixed(count) => Connections::Tuned(Limits::exactly(count)),
            Pipes::Auto => Connections::default(),
        };
        let store = Ftp::open(&at.server, &settings, &at.root)
            .map_err(|error| OpenError::Ftp { location: at.to_string(), error: Box::new(error) })?
            .with_writing(Writing { retry: RETRY, connections, ..Writing::default() });
        let store = match opening.hosts.way.pipes {
            Pipes::Fixed(count) => store.with_sessions(count as usize),
            Pipes::Auto => store,
        };
        let root = FtpPath { path: Vec::new(), ..at.clone() }.to_string();
        let (name, server) = (root.trim_end_matches('/').to_owned(), at.server.clone());
        Ok(Self { name, server, store, stop })
    }

    /// The server follows symbolic links in paths by itself.
    pub(super) fn holder(&self) -> Holder {
        Holder::new(self.name.clone(), Arc::new(self.store.clone()), Root::OfAll)
    }

    /// A command line can be read by all users of the machine.
    pub(super) fn warning(&self) -> Option<String> {
        let host = &self.server.host;
        let is_told =
            matches!(&self.server.login, Login::Password { password, .. } if !password.is_empty());
        is_told.then(|| {
            format!(
                "other users of this machine can read the password for {host} in the process list, and ftp:// sends it in the clear"
            )
        })
    }

    pub(super) fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}
