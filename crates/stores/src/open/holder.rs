//! A store with what its paths need.

use hikyaku_remote::{Client, RemoteStore};
use hikyaku_session::Connector;
use hikyaku_store::{
    End, ErrorKind, Fetcher, Kind, Last, Led, Root, Step, Store, StoreError, StorePath, lead,
};
use std::any::Any;
use std::sync::Arc;

/// A store that holds files. Clones share it.
#[derive(Clone)]
pub struct Holder {
    /// Its name: a daemon's address, or the location without its path.
    pub name: String,
    /// The store.
    pub store: Arc<dyn Store>,
    /// Where absolute links in it begin.
    pub root: Root,
    /// How it has directories.
    pub directories: Directories,
    /// The connection to a daemon.
    daemon: Option<Daemon>,
    /// The session with a host behind ssh, which ends with the last holder.
    _session: Option<Arc<dyn Any + Send + Sync>>,
}

/// How a store has directories.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Directories {
    /// Each has to be made.
    Made,
    /// One exists as soon as it has an entry.
    Implied,
}

/// The connection to a daemon.
#[derive(Clone)]
struct Daemon {
    client: Client,
    /// The socket of the connection, which ends with the last holder.
    _connector: Arc<Connector>,
}

impl Holder {
    /// A store that needs nothing else to work.
    pub fn new(name: String, store: Arc<dyn Store>, root: Root) -> Self {
        Self { name, store, root, directories: Directories::Made, daemon: None, _session: None }
    }

    /// The store of a daemon.
    pub(super) fn of_daemon(name: String, client: Client, connector: &Arc<Connector>) -> Self {
        let store = Arc::new(RemoteStore::new(client.clone()));
        let daemon = Daemon { client, _connector: connector.clone() };
        Self { daemon: Some(daemon), ..Self::new(name, store, Root::Somewhere) }
    }

    /// This store, with the session that it uses.
    pub(super) fn within(self, session: Arc<dyn Any + Send + Sync>) -> Self {
        Self { _session: Some(session), ..self }
    }

    /// Ends the connection to a daemon.
    pub(super) fn close(&self) {
        if let Some(daemon) = &self.daemon {
            Fetcher::close(&daemon.client, "stopped by the user");
        }
    }

    /// The path without symbolic links, as the user who has named it means it: a store itself follows no link.
    ///
    /// # Errors
    ///
    /// No entry has the name (`NotFound`), links lead out of the store (`Link`), or the store cannot be read.
    pub fn resolve(&self, path: &StorePath, last: Last) -> Result<StorePath, StoreError> {
        let Led { path: led, end } = self.lead(path, last)?;
        match end {
            End::There => Ok(led),
            End::Nothing | End::Dangling => Err(StoreError::new("find", path, ErrorKind::NotFound)),
            End::Away => Err(StoreError::new("follow", path, ErrorKind::Link)),
        }
    }

    /// Where the path leads without symbolic links, also if nothing has the name.
    ///
    /// # Errors
    ///
    /// The store cannot be read.
    pub fn lead(&self, path: &StorePath, last: Last) -> Result<Led, StoreError> {
        let led = |end| Ok(Led { path: path.clone(), end });
        // A store follows no link: none is above a name that it finds.
        match self.store.look(path) {
            Ok(found) if found.kind != Kind::Link || last == Last::Kept => return led(End::There),
            Ok(_) => {}
            Err(error) if error.kind == ErrorKind::NotFound && self.is_plain_above(path) => {
                return led(End::Nothing);
            }
            Err(error) if may_be_link(error.kind) && self.store.abilities().links => {}
            Err(error) => return Err(error),
        }
        lead(path, (self.root, last), |at| match self.store.look(at) {
            Ok(found) if found.kind == Kind::Link => self.store.read_link(at).map(Step::Link),
            Ok(_) => Ok(Step::Other),
            Err(error) if error.kind == ErrorKind::NotFound => Ok(Step::Nothing),
            Err(error) => Err(error),
        })
    }

    /// Whether no link is in the path above its last name.
    fn is_plain_above(&self, path: &StorePath) -> bool {
        let is_dir =
            |dir: &StorePath| self.store.look(dir).is_ok_and(|found| found.kind == Kind::Dir);
        !self.store.abilities().links || path.split().is_none_or(|(dir, _)| is_dir(&dir))
    }
}

/// Whether a link in the middle of a path can be the reason that nothing is found.
const fn may_be_link(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::NotFound | ErrorKind::NotDir | ErrorKind::Link)
}
