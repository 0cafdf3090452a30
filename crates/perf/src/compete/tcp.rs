//! TCP connections of competing flows, and how the server recognizes them.
//!
//! The server listens only from the announcement until all expected connections have arrived. Every
//! connection has to begin with the token of the test, which was sent over the encrypted
//! connection. All others are closed without an answer.

use super::{Compete, Kind};
use crate::message::Plain;
use crate::wait::Stop;
use anyhow::{Context, Error, Result, bail};
use hikyaku_crypto::random_array;
use hikyaku_tcp::{ControlError, Options};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

/// The server's TCP port, and the token that admits a connection.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct Meet {
    /// `None` if there are no competing TCP flows.
    pub(crate) port: Option<u16>,
    /// The first bytes that every connection has to send.
    pub(crate) token: String,
    /// The competing flows. If the server sends, its congestion controls are filled in.
    pub(crate) compete: Compete,
}

/// A TCP listener that waits for the competing connections of one test.
pub(crate) struct Meeting {
    listener: TcpListener,
    token: String,
    unverified: VecDeque<Unverified>,
}

/// A connection that has not sent its whole token yet.
struct Unverified {
    stream: TcpStream,
    said: Vec<u8>,
    since: Instant,
}

/// Length of the token as hexadecimal text, in bytes.
const TOKEN_BYTES: usize = 64;
/// Length of the token and the number of the connection, in bytes.
const PREFACE_BYTES: usize = TOKEN_BYTES + 2;
/// How long a connection may take to send its token.
const TOKEN_TIMEOUT: Duration = Duration::from_secs(3);
/// Limit on connections without a token. Beyond it the oldest is closed.
const UNVERIFIED_MAX: usize = 64;
/// Interval at which the listener and its connections are polled.
const POLL_INTERVAL: Duration = Duration::from_millis(5);
/// How long a client's connection attempt may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

impl Meeting {
    /// Listens on the first address for which a socket can be bound. It prefers the given port, so
    /// that a firewall that admits the UDP port needs the same number only; if that is taken for
    /// TCP, it uses any free port.
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
        let token = random_array::<{ TOKEN_BYTES / 2 }>();
        let token = token.iter().map(|byte| format!("{byte:02x}")).collect();
        Ok(Self { listener, token, unverified: VecDeque::new() })
    }

    pub(crate) fn port(&self) -> io::Result<u16> {
        Ok(self.listener.local_addr()?.port())
    }

    pub(crate) fn token(&self) -> &str {
        &self.token
    }

    /// Waits for all `count` connections. Returns them in the order of their numbers.
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
            for (number, stream) in self.take_verified() {
                // A second connection with the same number does not replace the first.
                if let Some(place) = found.get_mut(usize::from(number)).filter(|p| p.is_none()) {
                    stream.set_nonblocking(false)?;
                    *place = Some(stream);
                }
            }
            stop.sleep(POLL_INTERVAL);
        }
        Ok(found.into_iter().flatten().collect())
    }

    fn accept(&mut self) {
        while let Ok((stream, _)) = self.listener.accept() {
            if stream.set_nonblocking(true).is_err() {
                continue;
            }
            if self.unverified.len() >= UNVERIFIED_MAX {
                self.unverified.pop_front();
            }
            let said = Vec::with_capacity(PREFACE_BYTES);
            self.unverified.push_back(Unverified { stream, said, since: Instant::now() });
        }
    }

    /// Reads from all waiting connections. Returns those that have sent the token, with their
    /// numbers, and drops those that failed or were too slow.
    fn take_verified(&mut self) -> Vec<(u16, TcpStream)> {
        let mut known = Vec::new();
        let mut waiting = VecDeque::new();
        for mut unverified_one in std::mem::take(&mut self.unverified) {
            match unverified_one.read_token() {
                TokenRead::All => known.extend(unverified_one.verified(&self.token)),
                TokenRead::Some if unverified_one.since.elapsed() < TOKEN_TIMEOUT => {
                    waiting.push_back(unverified_one);
                }
                TokenRead::Some | TokenRead::Gone => {}
            }
        }
        self.unverified = waiting;
        known
    }
}

enum TokenRead {
    All,
    Some,
    Gone,
}

impl Unverified {
    fn read_token(&mut self) -> TokenRead {
        let mut bytes = [0; PREFACE_BYTES];
        let missing = PREFACE_BYTES - self.said.len();
        match self.stream.read(&mut bytes[..missing]) {
            Ok(0) => TokenRead::Gone,
            Ok(n) => {
                self.said.extend_from_slice(&bytes[..n]);
                if n == missing { TokenRead::All } else { TokenRead::Some }
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => TokenRead::Some,
            Err(_) => TokenRead::Gone,
        }
    }

    fn verified(self, token: &str) -> Option<(u16, TcpStream)> {
        let (shown, number) = self.said.split_at_checked(TOKEN_BYTES)?;
        let number = u16::from_be_bytes(number.try_into().ok()?);
        is_same(shown, token.as_bytes()).then_some((number, self.stream))
    }
}

/// Compares in constant time, so that timing does not tell where the first difference is.
fn is_same(a: &[u8], b: &[u8]) -> bool {
    a.len() == b.len() && a.iter().zip(b).fold(0, |sum, (a, b)| sum | (a ^ b)) == 0
}

/// Connects all competing TCP flows to the server at `ip`, from address `local` if that is given.
pub(crate) fn connect(
    compete: &Compete,
    meet: &Meet,
    ip: IpAddr,
    local: Option<IpAddr>,
) -> Result<Vec<TcpStream>> {
    let Some(port) = meet.port else { return Ok(Vec::new()) };
    let address = SocketAddr::new(ip.to_canonical(), port);
    let options = Options { local, ..Options::default() };
    let connect = |number: u32| {
        let mut stream =
            hikyaku_tcp::connect(address, &options, CONNECT_TIMEOUT).with_context(|| {
                format!("cannot connect competing TCP flows to the server at {address}")
            })?;
        stream.write_all(meet.token.as_bytes())?;
        stream.write_all(&(number as u16).to_be_bytes())?;
        Ok(stream)
    };
    (0..compete.count(Kind::Tcp)).map(connect).collect::<Result<_>>().map_err(|error: Error| {
        let text = error.to_string();
        error
            .context(format!(
                "try: allow TCP port {port} in every firewall between this host and the server"
            ))
            .context(text)
    })
}

/// Fills in congestion controls that were left open: `policy` for hikyaku flows, the kernel's
/// default for TCP flows. Fails for names that the kernel does not have.
pub(crate) fn resolve(compete: &mut Compete, policy: &str) -> Result<()> {
    for group in &mut compete.groups {
        if group.kind == Kind::Hikyaku {
            group.manner.get_or_insert_with(|| Plain(policy.to_owned()));
            continue;
        }
        let name = match &group.manner {
            Some(Plain(name)) => {
                hikyaku_tcp::check_control(name).map_err(unavailable)?;
                name.clone()
            }
            None => hikyaku_tcp::default_control().context("cannot ask for TCP's settings")?,
        };
        group.manner = Some(Plain(name));
    }
    Ok(())
}

/// Sets the congestion control of `stream`.
pub(super) fn set_control(stream: &TcpStream, name: &str) -> Result<()> {
    hikyaku_tcp::set_control(stream, name).map_err(unavailable)
}

fn unavailable(error: ControlError) -> Error {
    let text = match error {
        ControlError::Unknown { name, available } => format!(
            "the kernel of the sending end has no TCP congestion control '{name}'; there are: {}",
            available.join(", ")
        ),
        ControlError::Forbidden { name, allowed } => format!(
            "the sending end allows the TCP congestion control '{name}' only for root; allowed for \
             all users: {}",
            allowed.join(", ")
        ),
        ControlError::Io { .. } => return error.into(),
    };
    Error::from(io::Error::new(ErrorKind::InvalidInput, text))
}
