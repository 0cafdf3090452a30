//! Transparent mode: connections of other hosts that pass through this one are taken in, without their knowing; or those of
//! a command that the gateway starts.
//!
//! The first packet of a connection (SYN) is held. The far gateway is asked to connect to its server. If it does, the
//! packet is given back to the kernel, which completes the handshake with the client and gives the connection to the
//! listener here. If it does not, the client gets what the server, or a router on the way to it, would have sent: a reset,
//! or an ICMP message. So a client is told "connected" only if the server has said so.

mod cgroup;
mod packet;
mod rules;
mod script;
mod taken;

pub(crate) use cgroup::Cgroup;
pub(crate) use rules::{Rules, Taking};
pub(crate) use taken::{Clients, Interface, Network, Taken};

use crate::board::{Asking, Ends, Place};
use crate::control::Messages;
use crate::limits::{CONNECT_TIMEOUT, PENDING_MAX};
use crate::near::Gateway;
use crate::relay::{Begin, Outcome, Relay};
use crate::switch::{Mode, Route};
use anyhow::{Context, Result};
use bytes::Bytes;
use hikyaku_forward::{Answer, Host, Loopback, Open, Target, Verdict, framed};
use hikyaku_net::Run;
use hikyaku_reach::{ReceiveHalf, SendHalf};
use hikyaku_tun::{Header, Tun};
use packet::{Syn, Unreachable};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use script::Source;
use std::collections::{HashMap, HashSet};
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{interval, timeout};

/// A way into this gateway for connections that pass through the host.
pub(crate) struct Transparent {
    label: String,
    // Dropped in this order.
    rules: Arc<Rules>,
    device: Tun,
    listener: TcpListener,
    /// That of the command whose connections are taken in.
    cgroup: Option<Arc<Cgroup>>,
}

/// A client and its server.
type Key = (SocketAddr, SocketAddr);

/// A flow that the far gateway has connected, before the kernel has the client's connection.
struct Connected {
    send: SendHalf,
    receive: ReceiveHalf,
    rest: Option<Run>,
    place: Place,
}

/// What became of a held packet.
struct Decided {
    syn: Syn,
    /// The packet as it was read, with its header.
    packet: Vec<u8>,
    /// `None` if nothing is said to the client.
    answer: Option<Result<Connected, Answer>>,
}

/// The client completes the handshake within this, or has given up.
const HANDSHAKE: Duration = Duration::from_secs(10);
const TICK: Duration = Duration::from_secs(1);
/// Packets that were read and not taken.
const PACKETS_MAX: usize = 256;
/// How often it is looked whether anybody takes them.
const LOOK: Duration = Duration::from_millis(200);
/// The far gateway answers within its own time and that of the path.
const PATIENCE: Duration = CONNECT_TIMEOUT.saturating_add(Duration::from_secs(5));

/// What transparent mode needs of this machine, before anything is taken in.
pub(crate) struct Prepared {
    name: String,
    device: Tun,
    listener: TcpListener,
    cgroup: Option<Arc<Cgroup>>,
}

impl Prepared {
    /// Makes the device and the control group. Needs `CAP_NET_ADMIN`. It comes before the login at the far side, which may
    /// take long and ask for a password.
    pub(crate) fn open(taken: &Taken) -> Result<Self> {
        let name = format!("hk{}", std::process::id());
        let device = Tun::create(Path::new("/proc/self/ns/net"), &name).context("no device")?;
        // A socket of IPv6 takes IPv4 as well (ipv6(7)), unless the host has no IPv6.
        let listener = TcpListener::bind((Ipv6Addr::UNSPECIFIED, 0))
            .or_else(|_| TcpListener::bind((Ipv4Addr::UNSPECIFIED, 0)))
            .context("no port")?;
        hikyaku_tcp::set_transparent(&listener).context("no transparent port")?;
        let cgroup = match taken.from {
            Clients::At(_) => None,
            Clients::OfCommand => Some(Arc::new(Cgroup::make()?)),
        };
        Ok(Self { name, device, listener, cgroup })
    }

    /// Takes connections in from now on.
    pub(crate) fn take(self, taken: &Taken) -> Result<Transparent> {
        let Self { name, device, listener, cgroup } = self;
        let port = listener.local_addr().context("no port")?.port();
        let source = Source::of(&taken.from, cgroup.as_deref());
        let source = source.context("the command has no control group")?;
        let rules = Arc::new(Rules::set(taken, source, (&name, port))?);
        Ok(Transparent { label: taken.to_string(), rules, device, listener, cgroup })
    }
}

impl Transparent {
    /// What the kernel was told. The switch changes it.
    pub(crate) fn rules(&self) -> Arc<Rules> {
        self.rules.clone()
    }

    /// The control group for the command whose connections are taken in.
    pub(crate) fn cgroup(&self) -> Option<Arc<Cgroup>> {
        self.cgroup.clone()
    }

    /// What is taken in, in words.
    pub(crate) fn label(&self) -> String {
        self.label.clone()
    }

    /// Takes in connections until the gateway drains and the last of them is over.
    pub(crate) async fn serve(self, gateway: Arc<Gateway>) -> Result<()> {
        let Self { rules: _rules, device, listener, cgroup: _cgroup, .. } = self;
        listener.set_nonblocking(true)?;
        let listener = tokio::net::TcpListener::from_std(listener)?;
        let device = Arc::new(device);
        let mut packets = read(device.clone())?;
        let (mut held, mut waiting) = (HashSet::<Key>::new(), HashMap::new());
        let (mut asked, mut flows) = (JoinSet::new(), JoinSet::new());
        let mut ticks = interval(TICK);
        loop {
            let is_empty = asked.is_empty() && flows.is_empty() && waiting.is_empty();
            if is_empty && gateway.switch.position().mode == Mode::Draining {
                return Ok(());
            }
            tokio::select! {
                packet = packets.recv() => {
                    let packet = packet.context("the device is gone")?;
                    let syn = packet.get(Header::LEN..).and_then(Syn::read);
                    // A packet that the client has sent again is held already.
                    let is_new = |syn: &Syn| held.len() < PENDING_MAX && held.insert(syn.key());
                    if let Some(syn) = syn.filter(is_new) {
                        asked.spawn(ask(gateway.clone(), syn, packet));
                    }
                }
                Some(Ok(decided)) = asked.join_next(), if !asked.is_empty() => {
                    held.remove(&decided.syn.key());
                    decide(&device, decided, &mut waiting);
                }
                accepted = listener.accept() => {
                    let Ok((socket, client)) = accepted else { continue };
                    // One that came to the port itself is nobody's, and is reset.
                    let Ok(server) = socket.local_addr() else { continue };
                    let key = (canonical(client), canonical(server));
                    let prepared = crate::socket::prepare(&socket).is_ok();
                    if let Some((_, connected)) = waiting.remove(&key).filter(|_| prepared) {
                        flows.spawn(carry(gateway.clone(), socket, connected));
                    }
                }
                _ = ticks.tick() => waiting.retain(|_, (since, _): &mut (Instant, Connected)| since.elapsed() < HANDSHAKE),
                Some(_) = flows.join_next(), if !flows.is_empty() => {}
            }
        }
    }
}

/// An address of IPv4 as one, though a socket of IPv6 has it.
fn canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

/// Reads the packets of a device on a thread of its own. It ends when nobody takes them.
fn read(device: Arc<Tun>) -> io::Result<mpsc::Receiver<Vec<u8>>> {
    let (give, packets) = mpsc::channel(PACKETS_MAX);
    let look = Timespec::try_from(LOOK).ok();
    let run = move || {
        let mut buffer = vec![0; Tun::LARGEST];
        while !give.is_closed() {
            match device.read(&mut buffer) {
                // What nobody takes in time is lost, as in a link that is full: clients send it again.
                Ok(Some(length)) => drop(give.try_send(buffer[..length].to_vec())),
                Ok(None) => drop(poll(&mut [PollFd::new(&*device, PollFlags::IN)], look.as_ref())),
                Err(_) => return,
            }
        }
    };
    thread::Builder::new().name("proxy-device".to_owned()).spawn(run)?;
    Ok(packets)
}

impl Syn {
    fn key(&self) -> Key {
        (self.client, self.server)
    }
}

/// Asks the far gateway for the connection.
async fn ask(gateway: Arc<Gateway>, syn: Syn, packet: Vec<u8>) -> Decided {
    let ends = Ends { program: syn.client, gateway: syn.server };
    let asking = Asking { ends: Some(ends), target: syn.server.to_string() };
    let place = gateway.board.enter(asking, Instant::now());
    let answer = timeout(PATIENCE, connect(&gateway, &syn, place)).await.ok().flatten();
    Decided { syn, packet, answer }
}

/// `None` if the connection to the far gateway is lost, or if new connections go direct by now: then the client's next
/// packet does.
async fn connect(
    gateway: &Gateway,
    syn: &Syn,
    mut place: Place,
) -> Option<Result<Connected, Answer>> {
    let connection = match gateway.uplink.connection().await {
        Ok(connection) => connection,
        Err(_) if gateway.switch.route() == Route::Direct => return None,
        Err(answer) => return Some(Err(answer)),
    };
    let (mut send, receive) = connection.open_stream().await.ok()?.split();
    let host = Host::Address(syn.server.ip());
    let target = Target { host, port: syn.server.port() };
    let open = Open { target: target.into(), loopback: Loopback::Refused };
    send.write_chunk(Bytes::from(framed(&open.encode()))).await.ok()?;
    let mut messages = Messages::new(receive);
    let answer = Answer::decode(&messages.next().await.ok()?).ok()?;
    if answer.verdict != Verdict::Connected {
        place.set_end(answer.to_string());
        return Some(Err(answer));
    }
    place.set_stream(Route::Carried, send.id().0);
    let (receive, rest) = messages.into_rest();
    Some(Ok(Connected { send, receive, rest, place }))
}

/// Gives a held packet back, or refuses the connection.
fn decide(device: &Tun, decided: Decided, waiting: &mut HashMap<Key, (Instant, Connected)>) {
    let Decided { syn, packet, answer } = decided;
    let written = match answer {
        None => return,
        Some(Ok(connected)) => {
            waiting.insert(syn.key(), (Instant::now(), connected));
            device.write(&packet, &[])
        }
        Some(Err(answer)) => refuse(device, &syn, answer.verdict),
    };
    // A device that takes no packet is like a link that loses it: the client sends its packet again.
    let _: io::Result<()> = written;
}

/// Tells the client why there is no connection, as the server or a router would.
fn refuse(device: &Tun, syn: &Syn, verdict: Verdict) -> io::Result<()> {
    let packet = match verdict {
        Verdict::NetworkUnreachable => syn.unreachable(Unreachable::Network),
        Verdict::HostUnreachable | Verdict::TimedOut | Verdict::NameNotFound => {
            syn.unreachable(Unreachable::Host)
        }
        Verdict::NotAllowed => syn.unreachable(Unreachable::Prohibited),
        Verdict::Connected
        | Verdict::Refused
        | Verdict::OutOfResources
        | Verdict::NotUnderstood => syn.reset(),
    };
    device.write(&Header::default().to_bytes(), &packet)
}

/// Carries the flow of a connection.
async fn carry(gateway: Arc<Gateway>, socket: TcpStream, connected: Connected) {
    let Connected { send, receive, rest, mut place } = connected;
    let Ok(_permit) = gateway.flows.try_acquire() else { return };
    let relay = Relay::new(socket.into(), (send, receive), Begin::Bytes(rest), place.meters());
    if let Outcome::Over(end) = relay.run().await {
        place.set_end(end.to_string());
    }
}
