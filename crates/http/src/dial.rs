//! TCP connections to the hosts of a client: first to the address that has answered before, and a little later to the others.

use crate::client::Settings;
use crate::fault::Fault;
use crate::url::Origin;
use crate::wire::Stop;
use hikyaku_tcp::{Won, addresses, connect_first, in_turn};
use std::collections::BTreeMap;
use std::io;
use std::net::{SocketAddr, TcpStream};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Addresses of a host that are tried.
const ADDRESSES_MAX: usize = 8;
/// Hosts whose addresses are remembered.
const HOSTS_MAX: usize = 256;

/// The addresses that have answered, by host and port. If one family does not get through, only the first connection to a host
/// waits for it.
#[derive(Default)]
pub(crate) struct Dial(Mutex<BTreeMap<(String, u16), SocketAddr>>);

impl Dial {
    /// Connects to a host. The time is that of the handshake.
    pub(crate) fn connect(
        &self,
        origin: &Origin,
        settings: &Settings,
        stop: &Stop,
    ) -> Result<(TcpStream, Duration), Fault> {
        let (host, port) = (origin.host.as_str(), origin.port);
        let no_address = |source: io::Error| Fault::NoAddress { host: host.to_owned(), source };
        let found = addresses(host, port, settings.tcp.family).map_err(no_address)?;
        let mut found = in_turn(&found, ADDRESSES_MAX);
        let key = (host.to_owned(), port);
        if let Some(answered) = self.lock().get(&key)
            && let Some(at) = found.iter().position(|address| address == answered)
        {
            found[..=at].rotate_right(1);
        }
        let goes_on = || !stop.is_set();
        let won = connect_first(&found, &settings.tcp, settings.connect_within, &goes_on);
        let Won { stream, address, handshake } = won.map_err(|source| match stop.check() {
            Err(stopped) => stopped,
            Ok(()) => Fault::NotReached { host: host.to_owned(), port, source },
        })?;
        let mut hosts = self.lock();
        if hosts.len() >= HOSTS_MAX {
            hosts.clear();
        }
        hosts.insert(key, address);
        drop(hosts);
        let ready = stream.set_nonblocking(true).and_then(|()| stream.set_nodelay(true));
        ready.map(|()| (stream, handshake)).map_err(Fault::Connection)
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<(String, u16), SocketAddr>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
