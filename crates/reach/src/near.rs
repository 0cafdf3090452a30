//! The near side: starts the far side through ssh and connects to it.

mod addresses;
mod carrier;
mod error;

pub use error::{Commands, ReachError};

use crate::bootstrap::{Delivery, Offer};
use crate::carrier::Connection;
use crate::destination::Destination;
use crate::hello::{Hello, SWITCH};
use crate::local::Neighbour;
use crate::meet::{Door, DoorConfig};
use crate::race::Met;
use crate::service::{Loss, Service};
use crate::sftp_server::SftpServer;
use crate::speaks::Agreed;
use crate::ssh::{Configuration, Output, Ssh, SshOptions};
use crate::start::Started;
use crate::tcp::{Decisions, Pipes};
use crate::tuning::Tuning;
use crate::watch::{Fate, Gone, watch, watch_pipe};
use hikyaku_console::{Scope, Tone, say};
use hikyaku_net::{Endpoint, Side};
use hikyaku_pipes::Pipe;
use hikyaku_units::DataSize;
use std::io::{self, BufReader, Write};
use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::thread;
use std::time::{Duration, Instant};

/// Settings for starting and connecting to a far side.
#[derive(Clone, Debug)]
pub struct Way {
    /// The requested service.
    pub service: Service,
    /// Options of `ssh`.
    pub ssh: SshOptions,
    /// Path of the program on the far side; `None` searches `hikyaku` in PATH, ~/.local/bin and ~/.cargo/bin.
    pub remote_path: Option<String>,
    /// The offer to a far side without hikyaku. Programs that may have been sent before are searched there, too.
    pub offer: Offer,
    /// UDP ports of which each side takes one.
    pub ports: RangeInclusive<u16>,
    /// The allowed carriers.
    pub carriers: Carriers,
    /// Typed options that hold for data over UDP only, for the error without it.
    pub only_udp: Vec<&'static str>,
    /// How many TCP connections carry it, if TCP does.
    pub pipes: Pipes,
    /// Receives the decisions on their number.
    pub decisions: Decisions,
    /// The user's settings of the transport.
    pub tuning: Tuning,
    /// Memory that this process may take: a quarter of it may contain data in flight.
    pub memory: DataSize,
    /// Ends `ssh` when it is stopped while `ssh` logs in.
    pub scope: Scope,
}

/// The allowed carriers of a session.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Carriers {
    /// The transport over UDP; if UDP is blocked, TCP connections to the far side's port; if they fail as well, the channel
    /// of ssh.
    Auto,
    /// TCP connections; if they fail, the channel of ssh.
    NoUdp,
    /// The transport over UDP only.
    Udp,
    /// TCP connections only.
    Tcp,
    /// The channel of ssh only.
    Ssh,
}

impl Carriers {
    /// Whether UDP is one of them.
    pub const fn has_udp(self) -> bool {
        matches!(self, Self::Auto | Self::Udp)
    }
}

/// A session with a far side.
pub struct Reached {
    /// Streams and objects to and from it. The near side opens the first stream.
    pub connection: Connection,
    /// The common protocol version and features.
    pub agreed: Agreed,
    /// Why the far side has ended, once the connection ends.
    pub fate: Fate,
    /// Advice for the user that would make the session faster.
    pub advice: Option<String>,
    /// Keeps it running.
    pub side: FarSide,
}

/// The far side, started and connected. Dropping it ends ssh, or waits for the thread that is the far side.
pub struct FarSide {
    // Dropped in this order.
    door: Option<Box<Door>>,
    _end: FarEnd,
    /// The SFTP server whose login `_end` shares, if a program was sent by it.
    _login: Option<SftpServer>,
}

/// The process or thread that runs the far side.
enum FarEnd {
    There { _ssh: Ssh },
    Here { _thread: Neighbour },
}

impl FarSide {
    /// A far side on this machine.
    pub(crate) const fn here(thread: Neighbour) -> Self {
        Self { door: None, _end: FarEnd::Here { _thread: thread }, _login: None }
    }

    /// The UDP socket of this end; `None` within one machine.
    pub fn endpoint(&self) -> Option<&Endpoint> {
        self.door.as_ref().map(|door| door.endpoint())
    }
}

/// Time without an answer after which UDP counts as blocked.
const UDP_PATIENCE: Duration = Duration::from_millis(2500);
/// Time of silence after which a connection over UDP may be blocked: three times the interval of keep-alive packets.
const UDP_SILENCE: Duration = Duration::from_secs(6);
/// Time for sending queued data at the end of a session.
const LAST_WORD: Duration = Duration::from_millis(20);

impl Way {
    /// Starts the far side at `destination` and connects to it. A host that has no hikyaku, or one that uses another
    /// protocol, gets one if the user wants that.
    pub fn open(&self, destination: &Destination) -> Result<Reached, ReachError> {
        let lacked = match self.open_once(destination) {
            Err(error) if error.lacks_hikyaku() => error,
            opened => return opened,
        };
        match self.offer.deliver((&self.ssh, destination), &self.scope) {
            Delivery::Done { path, server } => {
                let ssh = server.ssh(&self.ssh);
                let way = Self { remote_path: Some(path), ssh, ..self.clone() };
                let mut reached = way.open_once(destination)?;
                reached.side._login = Some(server);
                Ok(reached)
            }
            Delivery::NotAllowed => Err(lacked),
            Delivery::Failed(why) => {
                Err(ReachError::NotDelivered { lacked: Box::new(lacked), why: Box::new(why) })
            }
        }
    }

    /// Opens a session with a program that the far side has.
    fn open_once(&self, destination: &Destination) -> Result<Reached, ReachError> {
        let begin = Instant::now();
        let door = Door::open(&DoorConfig {
            ports: &self.ports,
            tuning: &self.tuning,
            service: &self.service,
            memory: self.memory,
            // The far side has received the reason, or notices the end of ssh.
            closing: LAST_WORD,
        })?;
        let host = &destination.host;
        let Started { mut ssh, output, hello, agreed, configuration } =
            self.start(destination, &door)?;
        let addresses = self.addresses(&hello, &configuration)?;
        let shown = addresses.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        if self.carriers.has_udp() {
            let port = door.invitation().port;
            say(Tone::Detail, format_args!("dialling {shown} by UDP, and waiting at port {port}"));
        }
        let (fate, why) = (Fate::default(), ssh.why(format!("hikyaku on {host}")));
        let call = self.call(host, &door, &hello, &addresses, &fate)?;
        let met = match self.carriers {
            Carriers::Ssh => None,
            Carriers::Tcp | Carriers::NoUdp => self.by_tcp(call.clone()),
            Carriers::Auto | Carriers::Udp => {
                let met = door.meet(host, &hello.door, addresses.clone(), UDP_PATIENCE);
                self.by_udp_or_tcp(met, &call, &addresses)?
            }
        };
        let took = begin.elapsed().as_millis();
        let (connection, advice) = match met {
            Some(Met::Udp(connection)) => {
                let remote = connection.remote_addr();
                say(Tone::Detail, format_args!("connected to {remote} by UDP after {took} ms"));
                let connection = Connection::from(connection);
                let (watched, of_udp) = (connection.clone(), fate.clone());
                if self.carriers == Carriers::Auto && self.service.loss == Loss::BeginsAnew {
                    self.watch_udp(&connection, call, &addresses, fate.clone())?;
                }
                spawn("reach-ssh", move || watch(output, &watched, &of_udp, why))?;
                (connection, door.endpoint().advice().map(str::to_owned))
            }
            Some(Met::Tcp(called)) => {
                let remote = called.peer;
                say(Tone::Detail, format_args!("connected to {remote} by TCP after {took} ms"));
                let (watched, of_tcp) = (called.connection.clone(), fate.clone());
                spawn("reach-ssh", move || watch(output, &watched, &of_tcp, why))?;
                let how = "over several TCP connections";
                (called.connection, self.without_udp(destination, &addresses, how))
            }
            None if self.carriers == Carriers::Udp => {
                return Err(ReachError::NoUdp {
                    host: host.clone(),
                    tried: tried(&addresses),
                    ports: self.ports.clone(),
                    only: self.only_udp.join(" and "),
                });
            }
            None if self.carriers == Carriers::Tcp => {
                return Err(ReachError::NoTcp {
                    host: host.clone(),
                    tried: tried(&addresses),
                    ports: self.ports.clone(),
                });
            }
            None => {
                let watch = (fate.clone(), why);
                let connection = self.through_ssh((&mut ssh, output), watch)?;
                say(Tone::Detail, format_args!("the data go through ssh"));
                (connection, self.without_udp(destination, &addresses, "through ssh"))
            }
        };
        connection.set_payload_rate(self.tuning.payload_rate());
        let end = FarEnd::There { _ssh: ssh };
        let side = FarSide { door: Some(Box::new(door)), _end: end, _login: None };
        Ok(Reached { connection, agreed, fate, advice, side })
    }

    /// Messages if UDP is not the carrier: that the session is slower, unless the user chose that, and options without effect.
    fn without_udp(
        &self,
        destination: &Destination,
        addresses: &[SocketAddr],
        how: &str,
    ) -> Option<String> {
        let idle = self.tuning.idle_without_udp();
        if self.carriers != Carriers::Auto {
            return idle.map(|idle| format!("the data go {how}: {idle}"));
        }
        Some(format!(
            "no UDP gets through to {} ({}): the data go {how}, which is slower{}\n\
             try: let UDP ports {} to {} through to it, or name others: --udp-ports",
            destination.host,
            tried(addresses),
            idle.map_or_else(String::new, |idle| format!("; {idle}")),
            self.ports.start(),
            self.ports.end(),
        ))
    }

    /// Addresses at which the far side may listen.
    fn addresses(
        &self,
        hello: &Hello,
        configuration: &Configuration,
    ) -> Result<Vec<SocketAddr>, ReachError> {
        let port = hello.door.port;
        if !self.ports.contains(&port) {
            return Err(ReachError::OtherPort { port, ports: self.ports.clone() });
        }
        let all = addresses::candidates(&configuration.addresses(), &hello.addresses);
        Ok(all.into_iter().map(|ip| SocketAddr::new(ip, port)).collect())
    }

    /// Uses the channel of ssh itself. The near side sends [`SWITCH`] for it.
    fn through_ssh(
        &self,
        (ssh, output): (&mut Ssh, BufReader<Output>),
        (fate, why): (Fate, impl FnOnce() -> Gone + Send + 'static),
    ) -> Result<Connection, ReachError> {
        let ended = || io::Error::from(io::ErrorKind::BrokenPipe);
        let mut input = ssh.take_input().ok_or_else(ended).map_err(ReachError::Channel)?;
        input.write_all(SWITCH).and_then(|()| input.flush()).map_err(ReachError::Channel)?;
        let pipe = Pipe::new(output, input);
        let config = self.tuning.of_pipes(&self.service);
        let pipes = hikyaku_pipes::Connection::new(vec![pipe], Side::Client, config);
        let pipes = pipes.map_err(ReachError::Thread)?;
        let (connection, watched) = (Connection::from(pipes.clone()), Connection::from(pipes));
        let silence = self.tuning.silence();
        spawn("reach-ssh", move || watch_pipe(&watched, silence, &fate, why))?;
        Ok(connection)
    }
}

fn tried(addresses: &[SocketAddr]) -> String {
    let tried: Vec<String> = addresses.iter().map(ToString::to_string).collect();
    if tried.is_empty() { "no address is known".into() } else { tried.join(", ") }
}

fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> Result<(), ReachError> {
    let thread = thread::Builder::new().name(name.to_owned()).spawn(work);
    thread.map(drop).map_err(ReachError::Thread)
}
