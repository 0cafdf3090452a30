//! Opening a location: the store that holds it, and the path in the store.

mod daemons;
mod error;
mod ftp;
mod holder;
mod host;
#[cfg(not(feature = "s3"))]
mod no_s3;
#[cfg(feature = "s3")]
mod s3;
mod web;

pub use error::{OpenError, code_of};
pub use holder::{Directories, Holder};
pub use host::{Fallback, HostOptions};

use crate::location::{FtpPath, GfarmPath, Location, S3Path};
use crate::union::Union;
use ftp::FtpServer;
use hikyaku_console::{Noise, Tone, say};
use hikyaku_fs::Shown;
use hikyaku_http::Cookies;
use hikyaku_reach::Family;
use hikyaku_reach::dial::{Ending, Servers};
use hikyaku_session::ClientConfig;
use hikyaku_store::{ErrorKind, Root, StorePath};
use hikyaku_store_gfarm::{Dial, Gfarm};
use hikyaku_store_local::{Local, NewModes};
use hikyaku_transfer::Depth;
#[cfg(not(feature = "s3"))]
use no_s3 as s3;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// How locations are opened.
#[derive(Clone)]
pub struct Opening {
    /// The client of daemons. Default: the user's, with any carrier.
    pub client: Option<ClientConfig>,
    /// The service that has the buckets, as a URL. Default: what the user's settings for S3 name.
    pub endpoint: Option<String>,
    /// How hosts behind ssh are reached.
    pub hosts: HostOptions,
    /// Requests that may be under way to a bucket at once, 1 to 256. Default: [`Opening::CONNECTIONS`].
    pub connections: u32,
    /// How long a server may be silent. Default: 60 s with FTP, 30 s with Gfarm and the web, and with buckets 60 s until an answer
    /// begins and 30 s in it.
    pub silence: Option<Duration>,
    /// The family of the addresses that are dialled. Default: both.
    pub family: Option<Family>,
    /// The folder in which unfinished files are noted, so that a later process removes those of a killed one. Default: none.
    pub recorded: Option<PathBuf>,
    /// Whether a name without a slash may be a directory of a bucket that has an object of the name. Default: it is the object.
    pub depth: Depth,
    /// The times of files in a bucket. Default: those of the uploads.
    pub times: Times,
    /// The cookies for web servers. Default: none. Those of answers are added while the storage is open.
    pub cookies: Cookies,
}

/// Which times the files of a bucket have.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Times {
    /// Those of their uploads, which a listing has.
    #[default]
    Written,
    /// Those of the files that were copied into the bucket, as far as the writer has noted them. Each file costs a request.
    Noted,
}

impl Opening {
    /// Connections to a storage that carries a file over several ones. On a path of 100 ms one TCP connection carries some 100 to
    /// 500 Mbit/s, so that sixteen fill a few Gbit/s.
    pub const CONNECTIONS: u32 = 16;
}

impl Default for Opening {
    fn default() -> Self {
        Self {
            client: None,
            endpoint: None,
            hosts: HostOptions::default(),
            connections: Self::CONNECTIONS,
            silence: None,
            family: None,
            recorded: None,
            depth: Depth::File,
            times: Times::Written,
            cookies: Cookies::default(),
        }
    }
}

/// A storage that is connected. Locations in it are opened without another connection. Clones share it.
#[derive(Clone)]
pub struct Storage(Connected);

#[derive(Clone)]
enum Connected {
    Here,
    Daemons(Vec<Holder>, HasAll),
    Gfarm(Arc<Gfarm>),
    Bucket(s3::Bucket),
    Ftp(FtpServer),
    Host(host::Session),
    Web(web::Web),
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

impl Opened {
    /// One store of all that may hold the path, which can only be read if they are several; `None` if there is none.
    pub fn together(mut self) -> Option<Holder> {
        match self.holders.len() {
            0 | 1 => self.holders.pop(),
            _ => {
                let names: Vec<&str> = self.holders.iter().map(|one| &*one.name).collect();
                let name = names.join(",");
                Some(Holder::new(name, Arc::new(Union(self.holders)), Root::Somewhere))
            }
        }
    }
}

/// Whether all servers of a location can be used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HasAll {
    /// They can.
    Yes,
    /// At least one cannot.
    No,
}

/// Opens a location. Prints the key of each new daemon, and an error for each of several daemons that cannot be used.
///
/// # Errors
///
/// No store that may hold the location can be used.
pub fn open(location: &Location, opening: &Opening) -> Result<Opened, OpenError> {
    Storage::connect(location, opening)?.at(location)
}

impl Storage {
    /// Connects to the storage of a location. Prints the key of each new daemon, and an error for each of several daemons that
    /// cannot be used.
    ///
    /// # Errors
    ///
    /// No store that may hold the location can be used.
    pub fn connect(location: &Location, opening: &Opening) -> Result<Self, OpenError> {
        if let Location::Servers(Servers { path, .. })
        | Location::Gfarm(GfarmPath { path, .. })
        | Location::S3(S3Path { path, .. })
        | Location::Ftp(FtpPath { path, .. }) = location
        {
            // An impossible path is refused before anything is contacted.
            path_of(path, location)?;
        }
        Ok(Self(match location {
            Location::Local(_) => Connected::Here,
            Location::Servers(servers) => {
                let (holders, has_all) = daemons::connect(servers, opening)?;
                Connected::Daemons(holders, has_all)
            }
            Location::Gfarm(at) => {
                let dial = Dial { family: opening.family, silence: opening.silence };
                let store = Gfarm::connect(at.server.clone(), dial)?;
                let store = store.recorded(opening.recorded.clone());
                Connected::Gfarm(Arc::new(store))
            }
            Location::S3(at) => Connected::Bucket(s3::Bucket::connect(at, opening)?),
            Location::Ftp(at) => Connected::Ftp(FtpServer::connect(at, opening)?),
            Location::Remote(at) => Connected::Host(host::connect(&at.login, &opening.hosts)?),
            Location::Web(url) => Connected::Web(web::Web::new(url, opening)?),
        }))
    }

    /// A location in this storage ([`Location::is_beside`] the one that it was connected for).
    ///
    /// # Errors
    ///
    /// The location has a path that the storage cannot have, its store cannot be used, or it is in another storage.
    pub fn at(&self, location: &Location) -> Result<Opened, OpenError> {
        match (&self.0, location) {
            (Connected::Here, Location::Local(path)) => local(path),
            (Connected::Daemons(holders, has_all), Location::Servers(servers)) => {
                let path = path_of(&servers.path, servers)?;
                let (holders, ending, has_all) = (holders.clone(), servers.ending, *has_all);
                Ok(Opened { holders, path, ending, has_all })
            }
            (Connected::Gfarm(store), Location::Gfarm(at)) => gfarm(store, at),
            (Connected::Bucket(bucket), Location::S3(at)) => {
                let path = path_of(&at.path, at)?;
                Ok(one(bucket.holder(&path, at.ending)?, (path, at.ending)))
            }
            (Connected::Ftp(server), Location::Ftp(at)) => {
                Ok(one(server.holder(), (path_of(&at.path, at)?, at.ending)))
            }
            (Connected::Host(session), Location::Remote(at)) => {
                let holder = session.holder(at.login.to_string());
                let place = session.path_of(&holder, at)?;
                Ok(one(holder, place))
            }
            (Connected::Web(web), Location::Web(url)) => {
                let (holder, path) = web.open(url)?;
                Ok(one(holder, (path, Ending::Name)))
            }
            _ => Err(OpenError::Elsewhere(location.to_string())),
        }
    }

    /// The Gfarm file system, if it is one: its nodes send files themselves.
    pub const fn gfarm(&self) -> Option<&Arc<Gfarm>> {
        match &self.0 {
            Connected::Gfarm(gfarm) => Some(gfarm),
            _ => None,
        }
    }

    /// Prints how it is reached, a setting that would make it faster, and a danger on the way to it.
    pub fn announce(&self) {
        let (detail, advice, warning) = match &self.0 {
            Connected::Host(session) => (None, session.advice().map(str::to_owned), None),
            Connected::Bucket(bucket) => (Some(bucket.detail()), None, bucket.warning()),
            Connected::Ftp(server) => (Some(server.name.clone()), None, server.warning()),
            Connected::Gfarm(gfarm) => (Some(format!("gfarm://{}", gfarm.server())), None, None),
            Connected::Here | Connected::Daemons(..) | Connected::Web(_) => return,
        };
        detail.iter().for_each(|how| say(Tone::Detail, format_args!("connected to {how}")));
        advice.iter().for_each(|advice| say(Tone::Note, advice));
        let warning = warning.filter(|_| Noise::chosen() != Noise::Quiet);
        warning.iter().for_each(|warning| say(Tone::Warning, warning));
    }

    /// A slowness that shows when files have been read.
    pub fn remark(&self) -> Option<String> {
        match &self.0 {
            Connected::Bucket(bucket) => bucket.remark(),
            _ => None,
        }
    }

    /// Whether the connection to a host behind ssh is lost. Asks the host.
    pub fn is_lost(&self) -> bool {
        match &self.0 {
            Connected::Host(session) => session.is_lost(),
            _ => false,
        }
    }

    /// Ends its requests, also those that other threads wait for. It cannot be used any more.
    pub fn stop(&self) {
        match &self.0 {
            Connected::Here => {}
            Connected::Daemons(holders, _) => holders.iter().for_each(Holder::close),
            Connected::Gfarm(gfarm) => gfarm.stop(),
            Connected::Bucket(bucket) => bucket.stop(),
            Connected::Ftp(server) => server.stop(),
            Connected::Host(session) => session.stop(),
            Connected::Web(web) => web.stop(),
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
    Ok(one(Holder::new(shown, Arc::new(store), Root::Somewhere), (name, ending)))
}

fn gfarm(store: &Arc<Gfarm>, at: &GfarmPath) -> Result<Opened, OpenError> {
    let (path, name) = (path_of(&at.path, at)?, format!("gfarm://{}", store.server()));
    Ok(one(Holder::new(name, store.clone(), Root::OfAll), (path, at.ending)))
}

/// A location with one store.
fn one(holder: Holder, (path, ending): (StorePath, Ending)) -> Opened {
    Opened { holders: vec![holder], path, ending, has_all: HasAll::Yes }
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
