//! Opening a location: the store that holds it, and the path in the store.

mod daemons;
mod error;
#[cfg(not(feature = "s3"))]
mod no_s3;
#[cfg(feature = "s3")]
mod s3;

pub use error::{OpenError, code_of};

use crate::location::{GfarmPath, Location, Remote};
use hikyaku_fs::Shown;
use hikyaku_reach::dial::Ending;
use hikyaku_session::{ClientConfig, Connector};
use hikyaku_store::{
    End, ErrorKind, Kind, Last, Led, Root, Step, Store, StoreError, StorePath, lead,
};
use hikyaku_store_gfarm::Gfarm;
use hikyaku_store_local::{Local, NewModes};
#[cfg(not(feature = "s3"))]
use no_s3 as s3;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

/// How locations are opened.
#[derive(Clone, Default)]
pub struct Opening {
    /// The client of daemons. Default: the user's, with any carrier.
    pub client: Option<ClientConfig>,
    /// The service that has the buckets, as a URL. Default: what the user's settings for S3 name.
    pub endpoint: Option<String>,
}

/// A location that is open.
pub struct Opened {
    /// The stores that may hold the path: one, or one for each daemon that can be used.
    pub holders: Vec<Holder>,
    /// The path in each of them.
    pub path: StorePath,
    /// How the path was written. One with a slash at its end is a directory.
    pub ending: Ending,
    /// Whether a daemon cannot be used, for which an error was printed.
    pub has_all: HasAll,
}

/// Whether all servers of a location can be used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HasAll {
    /// They can.
    Yes,
    /// At least one cannot.
    No,
}

/// A store that holds files.
pub struct Holder {
    /// Its name: a daemon's address, or the location without its path.
    pub name: String,
    /// The store.
    pub store: Arc<dyn Store>,
    /// Where absolute links in it begin.
    pub root: Root,
    /// The socket of its connection, which ends with the last holder.
    _connector: Option<Arc<Connector>>,
}

impl Holder {
    /// A store that needs nothing else to work.
    pub fn new(name: String, store: Arc<dyn Store>, root: Root) -> Self {
        Self { name, store, root, _connector: None }
    }

    /// The path without symbolic links, as the user who has named it means it: a store itself follows no link.
    ///
    /// # Errors
    ///
    /// No entry has the name (`NotFound`), links lead out of the store (`Link`), or the store cannot be read.
    pub fn resolve(&self, path: &StorePath, last: Last) -> Result<StorePath, StoreError> {
        if !self.store.abilities().links {
            return Ok(path.clone());
        }
        let Led { path: led, end } =
            lead(path, (self.root, last), |at| match self.store.look(at) {
                Ok(found) if found.kind == Kind::Link => self.store.read_link(at).map(Step::Link),
                Ok(_) => Ok(Step::Other),
                Err(error) if error.kind == ErrorKind::NotFound => Ok(Step::Nothing),
                Err(error) => Err(error),
            })?;
        match end {
            End::There => Ok(led),
            End::Nothing | End::Dangling => Err(StoreError::new("find", path, ErrorKind::NotFound)),
            End::Away => Err(StoreError::new("follow", path, ErrorKind::Link)),
        }
    }
}

/// Opens a location. Prints the key of each new daemon, and an error for each of several daemons that cannot be used.
///
/// # Errors
///
/// No store that may hold the location can be used.
pub fn open(location: &Location, opening: &Opening) -> Result<Opened, OpenError> {
    match location {
        Location::Local(path) => local(path),
        Location::Servers(servers) => daemons::open(servers, opening),
        Location::Gfarm(at) => gfarm(at),
        Location::S3(at) => s3::open(at, opening),
        Location::Remote(Remote { login, .. }) => {
            Err(OpenError::Ssh { host: login.host.clone(), location: location.to_string() })
        }
    }
}

/// A directory is the root of the store; a file is a name in its directory, whose path may lead through links.
fn local(path: &Path) -> Result<Opened, OpenError> {
    let shown = Shown::new(path.as_os_str().as_bytes()).to_string();
    let failed = |kind| OpenError::Store { location: shown.clone(), kind };
    let is_dir = fs::metadata(path).is_ok_and(|meta| meta.is_dir());
    let (dir, name) = match (is_dir, path.parent(), path.file_name()) {
        (true, ..) => (path, StorePath::ROOT),
        (false, Some(dir), Some(name)) => {
            // A missing file, or a slash behind the name of one.
            fs::symlink_metadata(path).map_err(|error| failed(error.into()))?;
            let name = StorePath::new(name.as_bytes()).map_err(|_| failed(ErrorKind::BadName))?;
            (if dir.as_os_str().is_empty() { Path::new(".") } else { dir }, name)
        }
        _ => return Err(failed(ErrorKind::NotFound)),
    };
    let store = Local::open(dir, NewModes::default()).map_err(|error| failed(error.into()))?;
    let ending = if is_dir { Ending::Slash } else { Ending::Name };
    Ok(one(shown, (Arc::new(store), Root::Somewhere), (name, ending)))
}

fn gfarm(at: &GfarmPath) -> Result<Opened, OpenError> {
    let path = path_of(&at.path, &at)?;
    let store = Gfarm::connect(at.server.clone())?;
    let name = format!("gfarm://{}", store.server());
    Ok(one(name, (Arc::new(store), Root::OfAll), (path, at.ending)))
}

/// A location with one store.
fn one(
    name: String,
    (store, root): (Arc<dyn Store>, Root),
    (path, ending): (StorePath, Ending),
) -> Opened {
    Opened { holders: vec![Holder::new(name, store, root)], path, ending, has_all: HasAll::Yes }
}

/// The path of a location. It leads nowhere above the root.
fn path_of(path: &[u8], location: &dyn std::fmt::Display) -> Result<StorePath, OpenError> {
    let inner = path.strip_prefix(b"/").unwrap_or(path);
    let inner = inner.strip_suffix(b"/").unwrap_or(inner);
    StorePath::new(inner)
        .map_err(|source| OpenError::Path { location: location.to_string(), source })
}

#[cfg(test)]
mod tests;
