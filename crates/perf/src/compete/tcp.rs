//! TCP connections between the two ends of a test, and how the ends know each other's.
//!
//! The server listens only between saying so and having all that it waits for. Who connects shows the
//! token of the test first, which went over the encrypted connection; anybody else is closed unheard.

use super::{Compete, Kind};
use crate::message::Plain;
use crate::wait::Stop;
use anyhow::{Context, Error, Result, anyhow, bail};
use hikyaku_crypto::random_array;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, socket_with, sockopt};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::fs;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

/// Where the server listens for TCP, and who may come.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct Meet {
    /// Nothing if no competitor is TCP's.
    pub(crate) port: Option<u16>,
    /// What each connection shows first.
    pub(crate) token: String,
    /// What competes, with the names of what is used if the server sends.
    pub(crate) compete: Compete,
}

/// A server that waits for the TCP connections of one test.
pub(crate) struct Meeting {
    listener: TcpListener,
    token: String,
    strangers: VecDeque<Stranger>,
}

/// A connection that has not shown all of its token.
struct Stranger {
    stream: TcpStream,
    said: Vec<u8>,
    since: Instant,
}

/// Bytes of the token as text.
const TOKEN: usize = 64;
/// The token and the number of the connection.
const PREFACE: usize = TOKEN + 2;
/// Who says nothing for so long goes.
const SPEAK_WITHIN: Duration = Duration::from_secs(3);
/// More do not wait at once: the oldest goes.
const MAX_STRANGERS: usize = 64;
const LOOK: Duration = Duration::from_millis(5);
/// How long a connection may take.
const CONNECT_WITHIN: Duration = Duration::from_secs(10);

impl Meeting {
    /// Listens at the first address that there is a socket for: at its port if that is free for TCP,
    /// which needs one hole in a firewall less, else at any.
    pub(crate) fn open(addresses: &[SocketAddr]) -> io::Result<Self> {
        let any_port = addresses.iter().map(|address| SocketAddr::new(address.ip(), 0));
        let mut result = Err(ErrorKind::AddrNotAvailable.into());
        for address in addresses.iter().copied().chain(any_port) {
            result = TcpListener::bind(address);
            if result.is_ok() {
                break;
            }
        }
        let listener = result?;
        listener.set_nonblocking(true)?;
        let token = random_array::<{ TOKEN / 2 }>();
        let token = token.iter().map(|byte| format!("{byte:02x}")).collect();
        Ok(Self { listener, token, strangers: VecDeque::new() })
    }

    pub(crate) fn port(&self) -> io::Result<u16> {
        Ok(self.listener.local_addr()?.port())
    }

    pub(crate) fn token(&self) -> &str {
        &self.token
    }

    /// All `count` connections, in the order of their numbers, if they come in time.
    pub(crate) fn gather(
        mut self,
        count: u32,
        within: Duration,
        stop: &Stop,
    ) -> Result<Vec<TcpStream>> {
        let until = Instant::now() + within;
        let mut found: Vec<Option<TcpStream>> = (0..count).map(|_| None).collect();
        while found.iter().any(Option::is_none) {
            if stop.is_set() || Instant::now() >= until {
                let came = found.iter().flatten().count();
                bail!("{came} of {count} competing TCP connections came");
            }
            self.accept();
            for (number, stream) in self.hear() {
                // Who comes twice with a number replaces nobody.
                if let Some(place) = found.get_mut(usize::from(number)).filter(|p| p.is_none()) {
                    stream.set_nonblocking(false)?;
                    *place = Some(stream);
                }
            }
            stop.sleep(LOOK);
        }
        Ok(found.into_iter().flatten().collect())
    }

    fn accept(&mut self) {
        while let Ok((stream, _)) = self.listener.accept() {
            if stream.set_nonblocking(true).is_err() {
                continue;
            }
            if self.strangers.len() >= MAX_STRANGERS {
                self.strangers.pop_front();
            }
            let said = Vec::with_capacity(PREFACE);
            self.strangers.push_back(Stranger { stream, said, since: Instant::now() });
        }
    }

    /// Those who have shown the token, with their numbers. Those who cannot are gone.
    fn hear(&mut self) -> Vec<(u16, TcpStream)> {
        let mut known = Vec::new();
        let mut waiting = VecDeque::new();
        for mut stranger in std::mem::take(&mut self.strangers) {
            match stranger.listen() {
                Heard::All => known.extend(stranger.introduced(&self.token)),
                Heard::Some if stranger.since.elapsed() < SPEAK_WITHIN => {
                    waiting.push_back(stranger);
                }
                Heard::Some | Heard::Gone => {}
            }
        }
        self.strangers = waiting;
        known
    }
}

enum Heard {
    All,
    Some,
    Gone,
}

impl Stranger {
    fn listen(&mut self) -> Heard {
        let mut bytes = [0; PREFACE];
        let missing = PREFACE - self.said.len();
        match self.stream.read(&mut bytes[..missing]) {
            Ok(0) => Heard::Gone,
            Ok(n) => {
                self.said.extend_from_slice(&bytes[..n]);
                if n == missing { Heard::All } else { Heard::Some }
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => Heard::Some,
            Err(_) => Heard::Gone,
        }
    }

    fn introduced(self, token: &str) -> Option<(u16, TcpStream)> {
        let (shown, number) = self.said.split_at_checked(TOKEN)?;
        let number = u16::from_be_bytes(number.try_into().ok()?);
        is_same(shown, token.as_bytes()).then_some((number, self.stream))
    }
}

/// Compares in a time that does not tell where the first difference is.
fn is_same(a: &[u8], b: &[u8]) -> bool {
    a.len() == b.len() && a.iter().zip(b).fold(0, |sum, (a, b)| sum | (a ^ b)) == 0
}

/// Connects all TCP competitors to the server at `ip`. `local` is the address to come from.
pub(crate) fn connect(
    compete: &Compete,
    meet: &Meet,
    ip: IpAddr,
    local: Option<IpAddr>,
) -> Result<Vec<TcpStream>> {
    let Some(port) = meet.port else { return Ok(Vec::new()) };
    let address = SocketAddr::new(ip.to_canonical(), port);
    let connect = |number: u32| {
        let mut stream = connect_one(address, local).with_context(|| {
            format!("cannot connect competing TCP flows to {address}, where the server listens")
        })?;
        stream.write_all(meet.token.as_bytes())?;
        stream.write_all(&(number as u16).to_be_bytes())?;
        Ok(stream)
    };
    (0..compete.count(Kind::Tcp)).map(connect).collect::<Result<_>>().map_err(|error: Error| {
        let text = error.to_string();
        error.context(format!("try: let TCP port {port} through to the server")).context(text)
    })
}

fn connect_one(address: SocketAddr, local: Option<IpAddr>) -> io::Result<TcpStream> {
    let socket = socket(address.ip(), SocketFlags::NONBLOCK)?;
    if let Some(local) = local {
        bind(&socket, &SocketAddr::new(local, 0))?;
    }
    match rustix::net::connect(&socket, &address) {
        Ok(()) | Err(rustix::io::Errno::INPROGRESS) => {}
        Err(error) => return Err(error.into()),
    }
    let within = Timespec { tv_sec: CONNECT_WITHIN.as_secs() as i64, tv_nsec: 0 };
    if poll(&mut [PollFd::new(&socket, PollFlags::OUT)], Some(&within))? == 0 {
        return Err(ErrorKind::TimedOut.into());
    }
    sockopt::socket_error(&socket)??;
    let stream = TcpStream::from(socket);
    stream.set_nonblocking(false)?;
    Ok(stream)
}

fn socket(ip: IpAddr, flags: SocketFlags) -> rustix::io::Result<OwnedFd> {
    let family = if ip.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    socket_with(family, SocketType::STREAM, flags | SocketFlags::CLOEXEC, None)
}

/// Names what is left open: `policy`, and the congestion control that this system uses by itself.
/// Refuses what it does not have.
pub(crate) fn resolve(compete: &mut Compete, policy: &str) -> Result<()> {
    for group in &mut compete.groups {
        if group.kind == Kind::Hikyaku {
            group.manner.get_or_insert_with(|| Plain(policy.to_owned()));
            continue;
        }
        let socket = socket(IpAddr::from([127, 0, 0, 1]), SocketFlags::empty())
            .context("there is no TCP socket")?;
        if let Some(Plain(name)) = &group.manner {
            sockopt::set_tcp_congestion(&socket, name)
                .map_err(|error| unavailable(name, error.into()))?;
        }
        let name = sockopt::tcp_congestion(&socket).context("cannot ask for TCP's settings")?;
        group.manner = Some(Plain(name));
    }
    Ok(())
}

/// Has the sending end of `stream` use the congestion control of this name.
pub(super) fn set_control(stream: &TcpStream, name: &str) -> Result<()> {
    sockopt::set_tcp_congestion(stream, name).map_err(|error| unavailable(name, error.into()))
}

fn unavailable(name: &str, error: io::Error) -> Error {
    let read = |list: &str| {
        let path = format!("/proc/sys/net/ipv4/tcp_{list}_congestion_control");
        let names = fs::read_to_string(path).unwrap_or_default();
        names.split_whitespace().collect::<Vec<_>>().join(", ")
    };
    let text = match error.kind() {
        ErrorKind::NotFound => format!(
            "the kernel of the end that sends has no TCP congestion control '{name}'; there are: {}",
            read("available")
        ),
        ErrorKind::PermissionDenied => format!(
            "the TCP congestion control '{name}' is for root alone at the end that sends; allowed \
             are: {}",
            read("allowed")
        ),
        _ => return anyhow!(error).context(format!("cannot use '{name}'")),
    };
    Error::from(io::Error::new(ErrorKind::InvalidInput, text))
}

/// Ends a sender's connection at once: what it has not sent is not to follow.
pub(super) fn cut_off(stream: TcpStream) {
    // Should it fail, the connection ends a little later.
    let _ = sockopt::set_socket_linger(&stream, Some(Duration::ZERO));
    drop(stream);
}
