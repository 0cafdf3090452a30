//! Listeners of the far gateway (`-R`): flows that come in here go to the near gateway, which connects them.

use super::Gateway;
use crate::front::Front;
use crate::relay::{Begin, Relay};
use crate::socket::{self, Socket};
use crate::unix::UnixPort;
use bytes::Bytes;
use hikyaku_forward::{AllowList, Arrived, At, Host, Listen, Listening, framed};
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::sleep;

/// Where a near gateway may let this one listen.
pub(crate) enum Listens {
    /// At Unix sockets and on loopback: the user has logged in to this machine.
    OfUser,
    /// At ports of these addresses.
    Listed(AllowList),
}

/// Listeners of a near gateway at once.
pub(super) const LISTENERS_MAX: usize = 64;
/// After an error of `accept`, such as too many open files, the next attempt is made after this long.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// What is listened on.
enum Bound {
    Ports(Vec<TcpListener>),
    Socket(UnixPort),
}

impl Listens {
    /// Whether this gateway may listen there; why not, if it may not.
    fn check(&self, at: &At) -> Result<(), String> {
        let addresses = at.addresses();
        let is_allowed = match self {
            Self::OfUser => addresses.iter().all(|address| address.ip().is_loopback()),
            Self::Listed(list) => {
                let permits = |address: &SocketAddr| {
                    list.permits(&Host::Address(address.ip()), address.ip(), address.port())
                };
                !addresses.is_empty() && addresses.iter().all(permits)
            }
        };
        match (is_allowed, self) {
            (true, _) => Ok(()),
            (false, Self::OfUser) => Err("the far side listens on loopback only".to_owned()),
            (false, Self::Listed(_)) => {
                Err("the daemon does not listen at this port for this key (listen=)".to_owned())
            }
        }
    }
}

/// Listens for the near gateway, until the future is dropped.
pub(super) async fn run(gateway: Arc<Gateway>, asked: Listen, say: mpsc::Sender<Listening>) {
    let Listen { listener, at } = asked;
    let bound = match gateway.listens.check(&at) {
        Ok(()) => bind(&at).await.map_err(|error| error.to_string()),
        Err(why) => Err(why),
    };
    let (result, bound) = match bound {
        Ok(bound) => (Ok(bound.port()), Some(bound)),
        Err(why) => (Err(why), None),
    };
    // A near gateway that is gone needs no listener.
    let is_told = say.send(Listening { listener, result }).await.is_ok();
    if let Some(bound) = bound.filter(|_| is_told) {
        serve(&gateway, listener, bound).await;
    }
}

async fn bind(at: &At) -> io::Result<Bound> {
    let mut ports = Vec::new();
    let asked = match at {
        At::Socket(path) => return UnixPort::bind(path).map(Bound::Socket),
        At::Port { port, .. } => *port,
    };
    for mut address in at.addresses() {
        // Both families have the same port.
        if let Some(first) = ports.first().map(TcpListener::local_addr) {
            address.set_port(first?.port());
        }
        match TcpListener::bind(address).await {
            Ok(listener) => ports.push(listener),
            Err(error) if ports.is_empty() => return Err(error),
            Err(error) if error.kind() == ErrorKind::AddrInUse && asked != 0 => return Err(error),
            // A machine without IPv6 has only the first, or the port that the system has chosen is taken there.
            Err(_) => {}
        }
    }
    Ok(Bound::Ports(ports))
}

impl Bound {
    fn port(&self) -> u16 {
        match self {
            Self::Ports(ports) => {
                let first = ports.first().and_then(|port| port.local_addr().ok());
                first.map_or(0, |address| address.port())
            }
            Self::Socket(_) => 0,
        }
    }

    async fn accept(&self) -> io::Result<(Socket, Option<SocketAddr>)> {
        let of_port = async |port: Option<&TcpListener>| match port {
            Some(port) => port.accept().await,
            None => std::future::pending().await,
        };
        let (socket, program) = match self {
            Self::Socket(port) => return Ok((port.accept().await?.into(), None)),
            Self::Ports(ports) => tokio::select! {
                accepted = of_port(ports.first()) => accepted?,
                accepted = of_port(ports.get(1)) => accepted?,
            },
        };
        socket::prepare(&socket)?;
        Ok((socket.into(), Some(program)))
    }
}

async fn serve(gateway: &Arc<Gateway>, listener: u32, bound: Bound) {
    // Flows that are left at the end are dropped, which resets their sockets.
    let mut flows = JoinSet::new();
    loop {
        tokio::select! {
            accepted = bound.accept() => match accepted {
                Ok((socket, program)) => {
                    let arrived = Arrived { listener, program };
                    flows.spawn(carry(gateway.clone(), socket, arrived));
                }
                Err(_) => sleep(ACCEPT_PAUSE).await,
            },
            Some(_) = flows.join_next(), if !flows.is_empty() => {}
        }
    }
}

/// Hands a connection to the near gateway. One that the near gateway does not connect is reset.
async fn carry(gateway: Arc<Gateway>, socket: Socket, arrived: Arrived) {
    let Ok(_room) = gateway.room() else { return };
    let Ok(stream) = gateway.connection.open_stream().await else { return };
    let (mut send, receive) = stream.split();
    if send.write_chunk(Bytes::from(framed(&arrived.encode()))).await.is_err() {
        return;
    }
    let place = gateway.reports.enter(send.id().0);
    let relay = Relay::new(socket, (send, receive), Begin::Answer(Front::Plain), place.meters());
    relay.run().await;
}

#[cfg(test)]
mod tests {
    use super::*;
    use hikyaku_forward::SocketPath;

    #[test]
    fn a_gateway_listens_only_where_it_may() {
        let socket = || At::Socket(SocketPath::parse("/tmp/a.sock").unwrap());
        let port = |address: &str, port| {
            let address = (!address.is_empty()).then(|| address.parse().unwrap());
            At::Port { address, port }
        };
        let list = |patterns: &[&str]| {
            Listens::Listed(patterns.iter().map(|text| text.parse().unwrap()).collect())
        };
        for (listens, at, is_allowed) in [
            (Listens::OfUser, socket(), true),
            (Listens::OfUser, port("", 0), true),
            (Listens::OfUser, port("127.0.0.1", 80), true),
            (Listens::OfUser, port("0.0.0.0", 80), false),
            (Listens::OfUser, port("::", 80), false),
            (Listens::OfUser, port("10.0.0.1", 80), false),
            (list(&[]), port("", 80), false),
            (list(&["*:*"]), socket(), false),
            (list(&["*:*"]), port("127.0.0.1", 80), false),
            (list(&["127.0.0.1:8000-8009"]), port("127.0.0.1", 8000), true),
            (list(&["127.0.0.1:8000-8009"]), port("127.0.0.1", 0), false),
            (list(&["127.0.0.1:8000-8009"]), port("127.0.0.1", 8010), false),
            (list(&["127.0.0.1:8000-8009"]), port("", 8000), false),
            (list(&["localhost:*", "127.0.0.1:*", "[::1]:*"]), port("", 8000), true),
            (list(&["0.0.0.0:8000"]), port("0.0.0.0", 8000), true),
            (list(&["10.0.0.1:8000"]), port("0.0.0.0", 8000), false),
        ] {
            assert_eq!(listens.check(&at).is_ok(), is_allowed, "{at:?}");
        }
    }
}
