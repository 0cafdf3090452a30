//! One end as the user named it, opened: a path of this machine, of a host behind ssh, or of another storage.

use super::{Found, Links};
use crate::side::Side;
use anyhow::{Error, Result, ensure};
use hikyaku_console::{ExitCode, Scope, Tone, Way, misuse, say};
use hikyaku_copy::By;
use hikyaku_fs::{FsError, Shown, umask};
use hikyaku_reach::WayPlan;
use hikyaku_reach::tcp::Pipes;
use hikyaku_session::{ClientConfig, ConnectArgs};
use hikyaku_sftp::{Attributes, Failed, Kind, Request, Status};
use hikyaku_shell::{By as LinkBy, Link, Opening as LinkOpening};
use hikyaku_store::{Clock, ErrorKind as StoreErrorKind, Last, StoreError, StorePath};
use hikyaku_stores::{
    Ending, HasAll, Holder, HostBy, HostOptions, Location, OpenError, Opening, Remote, Storage,
    code_of,
};
use hikyaku_units::DataSize;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;
use std::sync::Arc;

/// How ends are opened.
pub(crate) struct Reaching<'a> {
    /// How hosts behind ssh are reached.
    pub(crate) way: &'a WayPlan,
    /// The carrier of the data.
    pub(crate) by: By,
    /// Whether hosts behind ssh are opened by SFTP, or as storages.
    pub(crate) hosts: Hosts,
    /// The service that has buckets.
    pub(crate) endpoint: Option<String>,
    /// Memory that this process may use.
    pub(crate) memory: DataSize,
    /// Ends ssh while it logs in.
    pub(crate) scope: Scope,
}

/// How a host behind ssh is opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Hosts {
    /// By a session of SFTP, whose names are copied by both programs.
    BySftp,
    /// As a storage: the other end is one.
    AsStorages,
}

impl Hosts {
    /// How hosts among these ends are opened.
    pub(crate) fn of(ends: [&Location; 2]) -> Self {
        let is_storage = |end: &Location| !matches!(end, Location::Remote(_) | Location::Local(_));
        if ends.into_iter().any(is_storage) { Self::AsStorages } else { Self::BySftp }
    }
}

/// One end.
pub(crate) struct End {
    location: Location,
    ground: Ground,
    memory: DataSize,
}

/// The machine or the storage that has the files of an end.
enum Ground {
    /// This machine.
    Here,
    /// A session with another one.
    Host(Box<Link>),
    /// Another storage, and the path in it as the user wrote it.
    Storage(Arc<Holder>, Vec<u8>),
}

impl End {
    /// Connects.
    ///
    /// # Errors
    ///
    /// The machine or the storage cannot be reached, or one of several cannot.
    pub(crate) fn open(location: Location, reaching: &Reaching<'_>) -> Result<Self> {
        let ground = match &location {
            Location::Local(_) => Ground::Here,
            Location::Remote(remote) if reaching.hosts == Hosts::BySftp => {
                let mut opening = LinkOpening::new(remote.login.clone(), reaching.way.clone());
                opening.by = match reaching.by.of_host() {
                    HostBy::Auto => LinkBy::Auto,
                    HostBy::Native => LinkBy::Native,
                    HostBy::Sftp => LinkBy::Sftp,
                };
                let link = Link::connect(&opening, reaching.memory, &reaching.scope)?;
                link.advice().iter().for_each(|advice| say(Tone::Note, advice));
                Ground::Host(Box::new(link))
            }
            storage => Self::storage(storage, reaching)?,
        };
        Ok(Self { location, ground, memory: reaching.memory })
    }

    fn storage(location: &Location, reaching: &Reaching<'_>) -> Result<Ground> {
        let silence = reaching.way.typed.timeout;
        let client = match location {
            Location::Servers(servers) => {
                let (way, udp) = (reaching.way, reaching.way.typed.udp);
                let args = ConnectArgs { no_udp: udp == Some(false), ..ConnectArgs::default() };
                let client = args.client(&servers.servers)?;
                let via = match reaching.by {
                    // The settings of the servers may leave UDP out.
                    By::Auto => client.via,
                    by => by.of_daemon(udp)?,
                };
                let (pipes, family) = (way.pipes, way.ssh.family);
                Some(ClientConfig { via, pipes, family, silence, ..client })
            }
            _ => None,
        };
        let endpoint = reaching.endpoint.clone();
        let (way, memory, scope) = (reaching.way.clone(), reaching.memory, reaching.scope.clone());
        let by = reaching.by.of_host();
        let hosts = HostOptions { way, by, memory, scope, ..HostOptions::default() };
        let connections = match reaching.way.pipes {
            Pipes::Fixed(count) => count,
            Pipes::Auto => Opening::CONNECTIONS,
        };
        let family = reaching.way.ssh.family;
        let opening =
            Opening { client, endpoint, hosts, connections, silence, family, ..Opening::default() };
        let storage = Storage::connect(location, &opening).map_err(OpenError::explained)?;
        storage.announce();
        let opened = storage.at(location).map_err(OpenError::explained)?;
        let slash: &[u8] = if opened.ending == Ending::Name { b"" } else { b"/" };
        let path = match opened.path.as_bytes() {
            b"" => Vec::new(),
            path => [path, slash].concat(),
        };
        // Names of a server that does not answer would look as if they were removed.
        ensure!(
            opened.has_all == HasAll::Yes,
            ExitCode::MayPass.error(format!("{location}: not all servers can be used"))
        );
        let holder = opened
            .together()
            .ok_or_else(|| Error::msg(format!("{location}: it has no storage")))?;
        Ok(Ground::Storage(Arc::new(holder), path))
    }

    /// Whether its times have nanoseconds.
    pub(crate) fn has_nanoseconds(&self) -> bool {
        match &self.ground {
            Ground::Here => true,
            Ground::Host(_) => false,
            Ground::Storage(holder, _) => holder.store.abilities().clock == Clock::Nanoseconds,
        }
    }

    /// The session with the host behind ssh, if it is one.
    pub(crate) fn link(&self) -> Option<&Link> {
        match &self.ground {
            Ground::Host(link) => Some(link),
            Ground::Here | Ground::Storage(..) => None,
        }
    }

    /// How names are reached.
    pub(crate) fn way(&self) -> Way {
        self.link().map_or(Way::Here, Link::way)
    }

    /// Whether it is a path of this machine.
    pub(crate) const fn is_here(&self) -> bool {
        matches!(self.ground, Ground::Here)
    }

    /// Whether it is a storage that is neither this machine nor a host behind ssh.
    pub(crate) const fn is_storage(&self) -> bool {
        matches!(self.ground, Ground::Storage(..))
    }

    /// The path that the user wrote. That of another machine is one for its SFTP server, whose home directory is where
    /// relative ones begin; that of a storage is below its root.
    pub(super) fn path(&self) -> Vec<u8> {
        match (&self.location, &self.ground) {
            (_, Ground::Storage(_, path)) => path.clone(),
            (Location::Remote(remote), Ground::Host(_)) => match &remote.path[..] {
                b"" | b"~" | b"~/" => b"./".to_vec(),
                path => path.strip_prefix(b"~/").unwrap_or(path).to_vec(),
            },
            (Location::Local(path), _) => path.as_os_str().as_bytes().to_vec(),
            _ => Vec::new(),
        }
    }

    /// A directory of the end, or a name in it if that is not empty.
    pub(super) fn location(&self, root: &[u8], name: &[u8]) -> Location {
        let slash = if name.is_empty() || root.ends_with(b"/") { &b""[..] } else { b"/" };
        let path = [root, slash, name].concat();
        match (&self.location, &self.ground) {
            (location, Ground::Storage(..)) => {
                let ending = if name.is_empty() { Ending::Slash } else { Ending::Name };
                location.with_path(inner(&path), ending)
            }
            (Location::Remote(Remote { login, .. }), _) => {
                Location::Remote(Remote { login: login.clone(), path })
            }
            _ if path.starts_with(b"/") => Location::Local(OsString::from_vec(path).into()),
            _ => Location::Local(OsString::from_vec([b"./", &path[..]].concat()).into()),
        }
    }

    /// A directory of the end as a side.
    pub(super) fn side(&self, root: &[u8]) -> Result<Side> {
        Ok(match &self.ground {
            Ground::Here => Side::here(Path::new(OsStr::from_bytes(root)))?,
            Ground::Host(link) => Side::of_server(link.client().clone(), root, self.memory)?,
            Ground::Storage(holder, _) => {
                let at = self.store_path(root)?;
                let at = holder.resolve(&at, Last::Followed);
                let at = at.map_err(|error| self.unfit(root, &error))?;
                Side::of_holder(holder.clone(), at, self.memory)
            }
        })
    }

    /// The kind of entry that a path names: a directory, another entry or nothing.
    pub(super) fn found(&self, path: &[u8], links: Links) -> Result<Found> {
        let of = |is_dir: bool| if is_dir { Found::Dir } else { Found::Other };
        match &self.ground {
            Ground::Here => {
                let here = OsStr::from_bytes(path);
                let found = match links {
                    Links::Followed => fs::metadata(here),
                    Links::Kept => fs::symlink_metadata(here),
                };
                match found {
                    Ok(found) => Ok(of(found.is_dir())),
                    Err(error) if error.kind() == ErrorKind::NotFound => Ok(Found::Nothing),
                    Err(error) => Err(FsError::io("look at", path, &error).into()),
                }
            }
            Ground::Host(link) => {
                let request = match links {
                    Links::Followed => Request::Stat(path),
                    Links::Kept => Request::LStat(path),
                };
                match link.client().attributes(&request) {
                    Ok(found) => Ok(of(found.kind() == Some(Kind::Dir))),
                    Err(error) if error.is_absent() => Ok(Found::Nothing),
                    Err(error) => Err(self.refused(&error, path)),
                }
            }
            Ground::Storage(holder, _) => {
                let last = match links {
                    Links::Followed => Last::Followed,
                    Links::Kept => Last::Kept,
                };
                let at = self.store_path(path)?;
                match holder.resolve(&at, last).and_then(|at| holder.store.look(&at)) {
                    Ok(found) => Ok(of(found.kind == hikyaku_store::Kind::Dir)),
                    Err(error) if error.kind == StoreErrorKind::NotFound => Ok(Found::Nothing),
                    Err(error) => Err(self.unfit(path, &error)),
                }
            }
        }
    }

    /// Makes a directory.
    pub(super) fn make_dir(&self, path: &[u8]) -> Result<()> {
        match &self.ground {
            Ground::Here => {
                let made = fs::create_dir(OsStr::from_bytes(path));
                made.map_err(|error| FsError::io("make the directory", path, &error).into())
            }
            Ground::Host(link) => {
                let attributes = Attributes { mode: Some(0o777), ..Attributes::default() };
                let made = link.client().done(&Request::MakeDir(path, attributes));
                made.map_err(|error| self.refused(&error, path))
            }
            Ground::Storage(holder, _) => {
                let at = self.store_path(path)?;
                let made = || {
                    let Some((dir, name)) = at.split() else { return Ok(()) };
                    let dir = holder.resolve(&dir, Last::Followed)?;
                    let bad = |_| StoreError::new("make", &dir, StoreErrorKind::BadName);
                    holder.store.make_dir(&dir.join(&name).map_err(bad)?, 0o777 & !umask())
                };
                made().map_err(|error| self.unfit(path, &error))
            }
        }
    }

    /// How the user makes a directory.
    pub(super) fn make_it(&self, path: &[u8]) -> String {
        match (&self.location, &self.ground) {
            (Location::Remote(remote), Ground::Host(_)) => {
                format!("try: ssh {} mkdir -p {}", remote.login, Shown::new(path))
            }
            (_, Ground::Storage(..)) => {
                format!("try: make the directory {} first", self.shown(path))
            }
            _ => format!("try: mkdir -p {}", Shown::new(path)),
        }
    }

    /// A path of the end, for messages: with the host, if it is another one.
    fn shown(&self, path: &[u8]) -> String {
        match (&self.location, &self.ground) {
            (Location::Remote(remote), Ground::Host(_)) => {
                format!("{}:{}", remote.login, Shown::new(path))
            }
            (location, Ground::Storage(..)) => {
                location.with_path(inner(path), Ending::Name).to_string()
            }
            _ => Shown::new(path).to_string(),
        }
    }

    /// A path in the storage.
    fn store_path(&self, path: &[u8]) -> Result<StorePath> {
        let text = |error| {
            misuse(format!("{}: {error}", self.shown(path)), "a path of names, without '..'")
        };
        StorePath::new(&inner(path)).map_err(text)
    }

    /// The error of a storage for a path.
    fn unfit(&self, path: &[u8], error: &StoreError) -> Error {
        code_of(error.kind).error(format!("{}: {}", self.shown(path), error.kind))
    }

    /// There is nothing of this name, or no directory.
    pub(super) fn missing(&self, path: &[u8], what: &str) -> Error {
        let text = format!("{}: {what}", self.shown(path));
        io::Error::new(ErrorKind::NotFound, text).into()
    }

    /// The error of the far side for a path, as the error that this machine would return.
    fn refused(&self, error: &Failed, path: &[u8]) -> Error {
        let kind = match error {
            Failed::Refused { status: Status::NoSuchFile, .. } => ErrorKind::NotFound,
            Failed::Refused { status: Status::Denied, .. } => ErrorKind::PermissionDenied,
            Failed::Refused { .. } => ErrorKind::Other,
            _ => ErrorKind::ConnectionAborted,
        };
        io::Error::new(kind, format!("{}: {error}", self.shown(path))).into()
    }
}

/// A path of a storage without what has no meaning there: the current directory, and slashes at its end.
fn inner(path: &[u8]) -> Vec<u8> {
    let path = path.strip_prefix(b"./").unwrap_or(path);
    path.strip_suffix(b"/").unwrap_or(path).to_vec()
}
