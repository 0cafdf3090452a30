//! Hosts behind ssh. hikyaku on the host serves its files; where it cannot be started, the host's SFTP server does.

use super::{Holder, OpenError};
use crate::host::{Host, HostBy, HostPlan, SFTP, commands, explained, is_the_way_out};
use crate::location::Remote;
use anyhow::{Context, Error, Result};
use hikyaku_console::Scope;
use hikyaku_fs::{Name, Shown};
use hikyaku_reach::daemon::{STORE, ask};
use hikyaku_reach::dial::Ending;
use hikyaku_reach::{Destination, FarSide, Reached, Way, WayPlan, settings};
use hikyaku_remote::{Client, FILES, RemoteStore};
use hikyaku_sftp::Request;
use hikyaku_store::{ErrorKind, Last, Root, Store, StorePath};
use hikyaku_store_sftp::Sftp;
use hikyaku_units::DataSize;
use std::any::Any;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// How hosts behind ssh are reached.
#[derive(Clone)]
pub struct HostOptions {
    /// The options of ssh and of the transport.
    pub way: WayPlan,
    /// The carrier. Default: hikyaku on the host, else ssh's subsystem.
    pub by: HostBy,
    /// Memory that this process may take: a quarter of it may contain data in flight. Default: 256 MiB.
    pub memory: DataSize,
    /// Ends ssh while it logs in.
    pub scope: Scope,
    /// Called before ssh's subsystem is used in place of hikyaku.
    pub fallback: Option<Fallback>,
}

/// Gets the error of hikyaku. If it fails, ssh's subsystem is not used.
pub type Fallback = Arc<dyn Fn(&Error) -> Result<()> + Send + Sync>;

impl Default for HostOptions {
    fn default() -> Self {
        Self {
            way: WayPlan::default(),
            by: HostBy::Auto,
            memory: DataSize::from_bytes(256 << 20),
            scope: Scope::default(),
            fallback: None,
        }
    }
}

/// A session with a host, which has all its files. Clones share it; it ends with the last one.
#[derive(Clone)]
pub(super) enum Session {
    /// hikyaku on the host serves them.
    Files(RemoteStore, Arc<Far>),
    /// An SFTP server does.
    Sftp(Sftp, Arc<Host>),
}

/// The far side that serves files.
pub(super) struct Far {
    client: Client,
    advice: Option<String>,
    /// Dropped behind the end of the connection.
    _side: Mutex<FarSide>,
}

/// Time within which the far side answers the request for its service.
const PATIENCE: Duration = Duration::from_secs(60);
/// Time for the last messages of a session to a far side behind a pipe.
const LAST_WORD: Duration = Duration::from_secs(1);

impl Drop for Far {
    fn drop(&mut self) {
        let connection = self.client.connection();
        connection.close(hikyaku_net::code::DONE, "");
        connection.flush(LAST_WORD);
    }
}

/// Opens a session with a host.
pub(super) fn connect(login: &Destination, options: &HostOptions) -> Result<Session, OpenError> {
    session(login, options).map_err(OpenError::Host)
}

fn session(login: &Destination, options: &HostOptions) -> Result<Session> {
    let (settings, asked) = (settings::of_user()?, (FILES, options.memory));
    let mut way = options.way.way((&login.host, &settings), asked, options.scope.clone())?;
    way.offer.otherwise = "go through ssh, which is slower";
    // The caller limits the rate: two limits in a row let less pass than either.
    way.tuning.rate = None;
    let failed = match options.by {
        HostBy::Sftp => None,
        HostBy::Auto | HostBy::Native => match files(&way, login) {
            Err(error) if is_the_way_out(&error) => Some(error),
            opened => return opened,
        },
    };
    let way = &Way { service: SFTP, ..way };
    let plan = HostPlan { login, way, by: options.by, subsystem: None };
    let fallback = |error: &Error| options.fallback.as_ref().map_or(Ok(()), |check| check(error));
    let host = match failed {
        Some(error) if commands(&error).is_some() && options.by == HostBy::Auto => {
            Host::in_its_place(plan, &error, fallback)?
        }
        Some(error) if commands(&error).is_some() => return Err(error),
        // An older hikyaku serves no files by itself, and starts an SFTP server.
        Some(_) | None => Host::connect(plan, fallback)?,
    };
    let store = Sftp::of_dir(host.client().clone(), b"/");
    let store = store.map_err(|error| Error::msg(format!("{login}: {}", error.kind)))?;
    Ok(Session::Sftp(store, Arc::new(host)))
}

/// Starts hikyaku on the host, which serves files.
fn files(way: &Way, login: &Destination) -> Result<Session> {
    let Reached { connection, advice, side, .. } = way.open(login).map_err(explained)?;
    let agreed = ask(&connection, &STORE, PATIENCE).with_context(|| login.to_string())?;
    let client = Client::new(connection).with_context(|| login.to_string())?;
    let client = client.with_features(agreed.features);
    let store = RemoteStore::new(client.clone());
    Ok(Session::Files(store, Arc::new(Far { client, advice, _side: Mutex::new(side) })))
}

impl Session {
    /// A change that would make it faster, for the user.
    pub(super) fn advice(&self) -> Option<&str> {
        match self {
            Self::Files(_, far) => far.advice.as_deref(),
            Self::Sftp(_, host) => host.advice(),
        }
    }

    /// Ends its requests.
    pub(super) fn stop(&self) {
        match self {
            Self::Files(_, far) => {
                far.client.connection().close(hikyaku_net::code::DONE, "stopped by the user");
            }
            Self::Sftp(_, host) => host.client().abandon(),
        }
    }

    /// Whether the host does not answer any more.
    pub(super) fn is_lost(&self) -> bool {
        let store: &dyn Store = match self {
            Self::Files(store, _) => store,
            Self::Sftp(store, _) => store,
        };
        store.look(&StorePath::ROOT).is_err_and(|error| error.kind == ErrorKind::Unreachable)
    }

    /// The store of all files.
    pub(super) fn holder(&self, name: String) -> Holder {
        let (store, session): (Arc<dyn Store>, Arc<dyn Any + Send + Sync>) = match self {
            Self::Files(store, far) => (Arc::new(store.clone()), far.clone()),
            Self::Sftp(store, host) => (Arc::new(store.clone()), host.clone()),
        };
        Holder::new(name, store, Root::OfAll).within(session)
    }

    /// The directory in which relative paths begin: that of the user.
    fn home(&self) -> Result<Vec<u8>> {
        Ok(match self {
            Self::Files(_, far) => far.client.home()?,
            Self::Sftp(_, host) => host.client().name(&Request::RealPath(b"."))?,
        })
    }

    /// The path of a location from the root of the host on. A relative one begins at the user's home directory. Links before `..`
    /// are followed, as the host's kernel follows them.
    pub(super) fn path_of(
        &self,
        holder: &Holder,
        at: &Remote,
    ) -> Result<(StorePath, Ending), OpenError> {
        let (path, ending) = Ending::split(&at.path);
        let path = match path.strip_prefix(b"~") {
            None => path,
            Some(rest) if matches!(rest.first(), None | Some(b'/')) => {
                rest.strip_prefix(b"/").unwrap_or(rest)
            }
            Some(_) => return Err(OpenError::OtherHome(at.to_string())),
        };
        let full = match path.starts_with(b"/") {
            true => path.to_vec(),
            false => {
                let context = || format!("{}: {}", at.login, Shown::new(path));
                let home = self.home().with_context(context).map_err(OpenError::Host)?;
                [&home, &b"/"[..], path].concat()
            }
        };
        let names = full.split(|&byte| byte == b'/');
        let mut path = StorePath::ROOT;
        for name in names.filter(|name| !matches!(*name, b"" | b".")) {
            path = match name {
                b".." => {
                    let failed = |kind| OpenError::Store { location: at.to_string(), kind };
                    let led = holder.lead(&path, Last::Followed);
                    let led = led.map_err(|error| failed(error.kind))?;
                    led.path.split().map_or(StorePath::ROOT, |(dir, _)| dir)
                }
                name => Name::new(name)
                    .and_then(|name| path.join(&name))
                    .map_err(|source| OpenError::Path { location: at.to_string(), source })?,
            };
        }
        Ok((path, ending))
    }
}
