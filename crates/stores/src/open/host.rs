//! Hosts behind ssh.

use super::OpenError;
use crate::host::{Host, HostBy, HostPlan, SFTP};
use crate::location::Remote;
use anyhow::{Error, Result};
use hikyaku_console::Scope;
use hikyaku_fs::Shown;
use hikyaku_reach::dial::Ending;
use hikyaku_reach::{Destination, WayPlan, settings};
use hikyaku_sftp::{Client, Request};
use hikyaku_store::StorePath;
use hikyaku_store_sftp::Sftp;
use hikyaku_units::DataSize;
use std::sync::Arc;

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

/// Opens a session with a host. The store has all its files.
pub(super) fn connect(
    login: &Destination,
    options: &HostOptions,
) -> Result<(Arc<Host>, Sftp), OpenError> {
    let host = session(login, options).map_err(OpenError::Host)?;
    let store = Sftp::of_dir(host.client().clone(), b"/")
        .map_err(|error| OpenError::Store { location: login.to_string(), kind: error.kind })?;
    Ok((Arc::new(host), store))
}

fn session(login: &Destination, options: &HostOptions) -> Result<Host> {
    let (settings, asked) = (settings::of_user()?, (SFTP, options.memory));
    let mut way = options.way.way((&login.host, &settings), asked, options.scope.clone())?;
    way.offer.otherwise = "go through ssh, which is slower";
    // The caller limits the rate: two limits in a row let less pass than either.
    way.tuning.rate = None;
    let plan = HostPlan { login, way: &way, by: options.by, subsystem: None };
    Host::connect(plan, |error| options.fallback.as_ref().map_or(Ok(()), |check| check(error)))
}

/// The path of a location from the root of the host on. A relative one begins at the user's home directory.
pub(super) fn path_of(client: &Client, at: &Remote) -> Result<(StorePath, Ending), OpenError> {
    let (path, ending) = Ending::split(&at.path);
    let path = match path.strip_prefix(b"~") {
        None => path,
        Some(rest) if matches!(rest.first(), None | Some(b'/')) => {
            rest.strip_prefix(b"/").unwrap_or(rest)
        }
        Some(_) => return Err(OpenError::OtherHome(at.to_string())),
    };
    let asked = |path: &[u8]| {
        let answer = client.name(&Request::RealPath(path));
        answer.map_err(|error| {
            OpenError::Host(Error::new(error).context(format!(
                "{}: {}",
                at.login,
                Shown::new(path)
            )))
        })
    };
    let mut full = match path.starts_with(b"/") {
        true => path.to_vec(),
        false => [&asked(b".")?, &b"/"[..], path].concat(),
    };
    if full.split(|&byte| byte == b'/').any(|name| name == b"..") {
        full = asked(&full)?;
    }
    let names = full.split(|&byte| byte == b'/').filter(|name| !matches!(*name, b"" | b"."));
    let full = names.collect::<Vec<_>>().join(&b'/');
    let path = StorePath::new(&full)
        .map_err(|source| OpenError::Path { location: at.to_string(), source })?;
    Ok((path, ending))
}
