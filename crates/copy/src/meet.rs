//! How the two ends find each other: each listens at a port and dials the other's from it, and the
//! first connection that comes about is the one. So one open way is enough, whichever it is, and an
//! address translator that keeps ports is opened by our own first packet.
//!
//! Each end knows the other by its key, whoever dials: the token of a first packet can be repeated by
//! everybody who has seen it.

use crate::memory;
use crate::session::MOST_OBJECTS;
use crate::watch::KEEP_ALIVE;
use anyhow::{Context as _, Error, Result, bail};
use hikyaku_crypto::{Fingerprint, Identity, Secret, ServerCredentials, Trust, parse_cipher};
use hikyaku_net::{
    AppCode, ConnectConfig, ConnectError, Connection, Listener, ListenerConfig, Memory, OnDrop,
    Stream, Target,
};
use hikyaku_units::{DataSize, Rate};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::future::poll_fn;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::ops::RangeInclusive;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

/// What an end says of its door. It goes through ssh, and is as secret and as true as that.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Invitation {
    /// The UDP port.
    pub port: u16,
    /// The fingerprint of the key that is shown there.
    pub key: String,
    /// What a first packet must prove to know, in hexadecimal digits.
    pub secret: String,
    /// How much of what it has sent this end can hold until it is acknowledged, in bytes.
    pub window: u64,
}

/// Without the secret: what is printed ends in logs (T15).
impl fmt::Debug for Invitation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { port, key, window, .. } = self;
        write!(f, "Invitation {{ port: {port}, key: {key:?}, window: {window}, .. }}")
    }
}

/// A port that is listened at, and dialled from.
pub(crate) struct Door {
    listener: Listener,
    identity: Identity,
    invitation: Invitation,
    config: ListenerConfig,
}

/// What users may set of the transport; for both ends.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Tuning {
    /// The only cipher.
    pub cipher: Option<String>,
    /// The most that an end sends of files, in bits a second.
    pub rate: Option<u64>,
    /// The most memory for data under way, in bytes.
    pub window: Option<u64>,
    /// What the kernel is asked for to hold datagrams that have arrived, in bytes.
    pub buffer: Option<u64>,
    /// `fair`, `scavenger` or `fixed:RATE`.
    pub policy: Option<String>,
    /// The longest silence that is sat out, in seconds.
    pub timeout: Option<u64>,
}

impl Tuning {
    /// After so long without a sign of the other end a connection is given up.
    pub(crate) fn silence(&self) -> Duration {
        self.timeout.map_or(SILENCE, Duration::from_secs)
    }

    /// The same for a connection through a pipe.
    pub(crate) fn of_pipes(&self) -> hikyaku_pipes::Config {
        let usual = hikyaku_pipes::Config::default();
        hikyaku_pipes::Config {
            window: self.window.unwrap_or(usual.window),
            rate: self.rate.map(Rate::from_bits_per_sec),
            streams_max: MOST_OBJECTS as usize,
            ..usual
        }
    }

    fn apply(&self, config: &mut ListenerConfig) -> Result<()> {
        let transport = &mut config.transport;
        transport.max_streams = MOST_OBJECTS;
        transport.keep_alive = KEEP_ALIVE;
        transport.idle_timeout = self.silence();
        transport.payload_rate = self.rate.map(Rate::from_bits_per_sec);
        if let Some(cipher) = &self.cipher {
            transport.ciphers = vec![parse_cipher(cipher)?];
        }
        if let Some(policy) = &self.policy {
            transport.policy = policy.parse()?;
        }
        let room = memory::available();
        let window = self.window.unwrap_or_else(|| transport.receive_window.bytes());
        transport.receive_window =
            DataSize::from_bytes(window.min(room / WINDOW_SHARE).max(LEAST_WINDOW));
        transport.initial_window = transport.initial_window.min(transport.receive_window);
        // One application reads all streams.
        transport.stream_window = transport.initial_window;
        let socket = &mut config.endpoint.socket;
        let buffer = self.buffer.unwrap_or_else(|| socket.recv_buffer.bytes());
        socket.recv_buffer = DataSize::from_bytes(buffer.min(room / BUFFER_SHARE));
        Ok(())
    }
}

/// An outage shorter than this is sat out, unless users say otherwise. A copy is not watched: whoever is at the terminal sees
/// that nothing arrives, and both ends learn of a killed one from ssh.
const SILENCE: Duration = Duration::from_secs(180);

/// Of the memory that there is, a quarter may hold data under way and a sixteenth what is in the
/// socket: the rest is for segments, names, and the kernel's copy of what is written.
const WINDOW_SHARE: u64 = 4;
const BUFFER_SHARE: u64 = 16;

/// With less nothing moves: no end has so little memory, whatever it says.
const LEAST_WINDOW: u64 = 1 << 20;

/// Ports that are tried before giving up.
const TRIES: u32 = 64;

impl Door {
    /// Opens one at a port of `ports`; what is left to say when it is closed is said within
    /// `closing`.
    pub(crate) fn open(
        ports: &RangeInclusive<u16>,
        tuning: &Tuning,
        closing: Duration,
    ) -> Result<Self> {
        let (identity, secret) = (Identity::generate()?, Secret::generate());
        let mut config = ListenerConfig::new(ServerCredentials::mutual(&identity));
        config.secret = Some(secret.clone());
        config.endpoint.closing = closing;
        // The next copy on the same path starts at the rate of this one.
        config.endpoint.memory = Memory::of_user();
        // The process exits right after the door is dropped.
        config.endpoint.on_drop = OnDrop::Wait;
        tuning.apply(&mut config)?;
        let listener = listen(&config, ports)?;
        let invitation = Invitation {
            port: listener.local_addr().port(),
            key: identity.fingerprint().to_string(),
            secret: secret.to_hex().to_string(),
            window: config.transport.receive_window.bytes(),
        };
        Ok(Self { listener, identity, invitation, config })
    }

    /// What to tell the other end of it.
    pub(crate) const fn invitation(&self) -> &Invitation {
        &self.invitation
    }

    /// A command that would make it faster, if there is one.
    pub(crate) fn advice(&self) -> Option<&str> {
        self.listener.advice()
    }

    /// Dials the other end's door, at these of its addresses.
    async fn dial(
        &self,
        host: &str,
        invitation: &Invitation,
        addresses: Vec<SocketAddr>,
        patience: Duration,
    ) -> Result<Connection> {
        let mut config = ConnectConfig::new(Trust::Pinned(invitation.key.parse()?));
        config.credentials = config.credentials.with_identity(&self.identity);
        config.secret = Some(invitation.secret.parse()?);
        config.transport = self.config.transport.clone();
        config.transport.connect_timeout = patience;
        // Who has little memory cannot send much either.
        let window = DataSize::from_bytes(invitation.window.max(LEAST_WINDOW));
        config.transport.receive_window = config.transport.receive_window.min(window);
        config.transport.initial_window = config.transport.initial_window.min(window);
        config.transport.stream_window = config.transport.initial_window;
        let target = Target::at(host, addresses);
        Ok(self.listener.endpoint().connect(target, config).await?)
    }

    /// The connection that comes about first, by dialling or by being dialled; for the end that says
    /// what is to be done. Where nothing comes back it goes on waiting to be dialled.
    pub(crate) async fn meet(
        &self,
        host: &str,
        invitation: &Invitation,
        addresses: Vec<SocketAddr>,
        patience: Duration,
    ) -> Result<Connection> {
        let mut is_dialling = !addresses.is_empty();
        let mut dialled = std::pin::pin!(self.dial(host, invitation, addresses, patience));
        let mut came = std::pin::pin!(invited(&self.listener, invitation.key.parse()?));
        poll_fn(|context| {
            if let Poll::Ready(accepted) = came.as_mut().poll(context) {
                return Poll::Ready(accepted);
            }
            if is_dialling && let Poll::Ready(answer) = dialled.as_mut().poll(context) {
                match answer {
                    // The other end may still get through to us.
                    Err(error) if is_silence(&error) => is_dialling = false,
                    answer => return Poll::Ready(answer),
                }
            }
            Poll::Pending
        })
        .await
    }

    /// The connection on which the other end, whose key is `key`, begins to speak; for the end that is
    /// told what to do. It dials the other end's door, if it knows of one and where that may be.
    pub(crate) async fn be_met(
        &self,
        key: Fingerprint,
        door: Option<(Vec<SocketAddr>, Invitation)>,
        patience: Duration,
    ) -> Result<(Connection, Stream)> {
        let mut all: Vec<Begun<'_>> = Vec::new();
        if let Some((addresses, invitation)) = door.filter(|(addresses, _)| !addresses.is_empty()) {
            all.push(Box::pin(async move {
                let connection = self.dial("near", &invitation, addresses, patience).await?;
                spoken(connection).await
            }));
        }
        let mut came = Box::pin(invited(&self.listener, key));
        poll_fn(|context| {
            while let Poll::Ready(accepted) = came.as_mut().poll(context) {
                all.push(Box::pin(spoken(accepted?)));
                came = Box::pin(invited(&self.listener, key));
            }
            first(&mut all, context)
        })
        .await
    }
}

/// A connection that may be the one.
type Begun<'a> = Pin<Box<dyn Future<Output = Result<(Connection, Stream)>> + 'a>>;

/// The next connection of a client that has proven to hold the key `key`; to others nothing is said.
// spec: hs-9
pub(crate) async fn invited(listener: &Listener, key: Fingerprint) -> Result<Connection> {
    loop {
        let connection = listener.accept().await?;
        if connection.client_key() == Some(key) {
            return Ok(connection);
        }
        connection.close(AppCode::FIRST, "another one was invited");
    }
}

async fn spoken(connection: Connection) -> Result<(Connection, Stream)> {
    let stream = connection.accept_stream().await?;
    Ok((connection, stream))
}

/// Those that fail are forgotten.
fn first(
    all: &mut Vec<Begun<'_>>,
    context: &mut Context<'_>,
) -> Poll<Result<(Connection, Stream)>> {
    let mut at = 0;
    while let Some(begun) = all.get_mut(at) {
        match begun.as_mut().poll(context) {
            Poll::Ready(Ok(spoken)) => return Poll::Ready(Ok(spoken)),
            Poll::Ready(Err(_)) => drop(all.swap_remove(at)),
            Poll::Pending => at += 1,
        }
    }
    Poll::Pending
}

/// Whether nothing came back, which says nothing of the other way.
fn is_silence(error: &Error) -> bool {
    let silent = |error: &ConnectError| {
        matches!(error, ConnectError::NoAnswer { .. } | ConnectError::Unreachable { .. })
    };
    error.downcast_ref::<ConnectError>().is_some_and(silent)
}

fn listen(config: &ListenerConfig, ports: &RangeInclusive<u16>) -> Result<Listener> {
    let (from, to) = (*ports.start(), *ports.end());
    let span = u64::from(to.saturating_sub(from)) + 1;
    let mut last = None;
    for _ in 0..TRIES {
        let port = from + (hikyaku_crypto::random_u64() % span) as u16;
        // A machine without IPv6 has no socket for it.
        for ip in [IpAddr::from(Ipv6Addr::UNSPECIFIED), IpAddr::from(Ipv4Addr::UNSPECIFIED)] {
            match Listener::bind(SocketAddr::new(ip, port), config.clone()) {
                Ok(listener) => return Ok(listener),
                Err(error) => last = Some(error),
            }
        }
    }
    match last {
        Some(error) => Err(error).context(format!("no UDP port from {from} to {to} is free")),
        None => bail!("no UDP port from {from} to {to} is free"),
    }
}

#[cfg(test)]
mod tests;
