//! Downloads of a session.

use super::{Done, Landing, Modes, Renamed, Session, SessionError, Trees};
use crate::census::{Census, ServerId, census};
use crate::fetch::{Job, fetch};
use crate::kind::Kind;
use crate::meter::{Meter, ServerMeter};
use crate::server::Server;
use crate::watch::Direction;
use hikyaku_remote::RemoteError;
use hikyaku_store::{ErrorKind, StorePath};
use std::path::Path;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Files whose servers are all gone are waited for so long: a server is tried again after 5 and 15 s.
const GONE_MAX: Duration = Duration::from_secs(20);

/// What is to be downloaded, and whereto.
#[derive(Clone, Copy)]
pub struct Download<'a> {
    /// Files and directories below the roots of the servers.
    pub sources: &'a [StorePath],
    /// A path of this machine. As scp has it: a directory receives the sources, any other target is the new name of a
    /// single source.
    pub target: &'a Path,
    /// Whether directories are copied.
    pub trees: Trees,
    /// The permission bits of new files.
    pub modes: Modes,
    /// How far it is. It has as many servers as [`Session::met`].
    pub meter: &'a Meter,
    /// Ends the transfer early when it is set. The connections end with it, and the next call makes new ones.
    pub stop: &'a AtomicBool,
}

impl Session {
    /// Fetches files from all servers that have them. Returns when each has its name here or has failed.
    ///
    /// # Errors
    ///
    /// Nothing has the name of a source, a source is a directory and [`Trees::Refused`], the target cannot be used, or
    /// `stop` was set ([`Kind::Stopped`]). Files that came before such an error stay.
    pub fn download(&self, download: &Download<'_>) -> Result<Done, SessionError> {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        self.logged(Direction::In, download.meter, || {
            let mut done = Done::default();
            for source in download.sources {
                self.fetch_one(download, source, &mut done)?;
            }
            download.meter.set_found();
            Ok(done)
        })
    }

    fn fetch_one(
        &self,
        download: &Download<'_>,
        root: &StorePath,
        done: &mut Done,
    ) -> Result<(), SessionError> {
        let ask = || {
            let clients = self.clients();
            let found = census(&clients, root);
            (clients, found)
        };
        let (clients, found) = self.until_stopped(download.stop, ask)?;
        if download.stop.load(Ordering::Relaxed) {
            return Err(SessionError::refused(Kind::Stopped, "stopped"));
        }
        let is_nothing = found.files.is_empty() && found.dirs.is_empty() && found.links.is_empty();
        if is_nothing && found.left_out.is_empty() && *root != StorePath::ROOT {
            return Err(self.nothing(root, &found));
        }
        found.check_trees(root, download.trees).map_err(|kind| {
            let text = format!("{}: is a directory, and -r was not given", self.shown(root));
            SessionError::refused(kind, text)
        })?;
        let renamed = if download.sources.len() > 1 { Renamed::Never } else { Renamed::Allowed };
        let landing = Landing::new(root, download.target, renamed)?;
        let meter = download.meter;
        meter.add_found(found.files.len(), found.bytes());
        if download.sources.last() == Some(root) {
            meter.set_found();
        }
        let servers: Vec<Server> = clients.into_iter().map(Server::from).collect();
        let before: Vec<u64> = meter.servers().iter().map(ServerMeter::bytes).collect();
        let begin = Instant::now();
        let again = |server| self.again(server).map(Server::from);
        let fetched = fetch(&Job {
            servers: &servers,
            redial: &again,
            census: &found,
            store: landing.store.clone(),
            place: &|path| landing.of(path),
            patience: GONE_MAX,
            umask: download.modes.umask(),
            parameters: self.parameters,
            meter,
            stop: download.stop,
        })?;
        if download.stop.load(Ordering::Relaxed) {
            return Err(SessionError::refused(Kind::Stopped, "stopped"));
        }
        self.note(meter, &before, begin.elapsed());
        self.add_lost(done, found.lost.iter().filter(|(_, error)| error.is_of_server()));
        self.add_lost(done, &fetched.lost);
        done.add_fetched(&found, fetched);
        Ok(())
    }

    pub(super) fn add_lost<'a>(
        &self,
        done: &mut Done,
        lost: impl IntoIterator<Item = &'a (ServerId, RemoteError)>,
    ) {
        for (server, error) in lost {
            let address = self.address(*server);
            if done.lost.iter().all(|(known, _)| *known != address) {
                done.lost.push((address, error.clone()));
            }
        }
    }

    /// The error where no server has anything of this name.
    fn nothing(&self, root: &StorePath, found: &Census) -> SessionError {
        let refused = found.lost.iter().find_map(|(_, error)| match error {
            RemoteError::Refused { kind, .. } => Some(*kind),
            RemoteError::Closed(_) | RemoteError::Protocol(_) => None,
        });
        let shown = self.shown(root);
        match refused {
            Some(kind) => SessionError::refused(kind, format!("{shown}: {kind}")),
            None => {
                let text = format!("{shown}: no server answers any more");
                SessionError::refused(Kind::NoAnswer, text)
            }
        }
    }
}

impl Census {
    /// Whether what was found at `root` may be copied: a directory only if trees are.
    ///
    /// # Errors
    ///
    /// It is a directory, and trees are not copied.
    pub fn check_trees(&self, root: &StorePath, trees: Trees) -> Result<(), ErrorKind> {
        let is_dir = *root == StorePath::ROOT
            || self.dirs.first().is_some_and(|(path, _)| path.as_bytes() == root.as_bytes());
        if is_dir && trees == Trees::Refused { Err(ErrorKind::IsDir) } else { Ok(()) }
    }
}
