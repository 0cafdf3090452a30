//! How the two ends find each other: each listens at a port and dials the other's from it, and the
//! first connection that comes about is the one. So one open way is enough, whichever it is, and an
//! address translator that keeps ports is opened by our own first packet.
//!
//! Each end knows the other by its key, whoever dials: the token of a first packet can be repeated by
//! everybody who has seen it.

use crate::service::{PathMemory, Service};
use crate::tuning::{LEAST_WINDOW, Tuning};
use hikyaku_crypto::{
    CreateIdentity, Fingerprint, Identity, NotAFingerprint, NotASecret, Secret, ServerCredentials,
    Trust, UnknownCipher,
};
use hikyaku_net::{
    AcceptError, AppCode, ConnectConfig, ConnectError, Connection, Endpoint, EndpointError,
    Listener, ListenerConfig, Memory, NoPolicy, OnDrop, OpenError, Stream, Target,
};
use hikyaku_units::DataSize;
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

/// Without the secret, because `Debug` output ends in logs.
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

/// What a door is opened for.
pub(crate) struct DoorConfig<'a> {
    /// Ports of which it takes one.
    pub(crate) ports: &'a RangeInclusive<u16>,
    pub(crate) tuning: &'a Tuning,
    pub(crate) service: &'a Service,
    /// What the process may take.
    pub(crate) memory: DataSize,
    /// When the door is closed, what is left to say is said within this time.
    pub(crate) closing: Duration,
}

/// Why no port could be opened.
#[derive(Debug, thiserror::Error)]
pub enum DoorError {
    /// No key could be made.
    #[error(transparent)]
    Identity(#[from] CreateIdentity),
    /// The cipher that the user wants is unknown here.
    #[error(transparent)]
    Cipher(#[from] UnknownCipher),
    /// The policy that the user wants is unknown here.
    #[error(transparent)]
    Policy(#[from] NoPolicy),
    /// None of the ports could be bound.
    #[error("no UDP port from {from} to {to} is free")]
    NoPort {
        /// The first port of the range.
        from: u16,
        /// The last one.
        to: u16,
        /// What was wrong with the one that was tried last.
        source: EndpointError,
    },
}

/// Why two ends that wait for each other did not meet.
#[derive(Debug, thiserror::Error)]
pub enum MeetError {
    /// The key that the other end announces is none.
    #[error(transparent)]
    Key(#[from] NotAFingerprint),
    /// The secret that the other end announces is none.
    #[error(transparent)]
    Secret(#[from] NotASecret),
    /// Dialling the other end failed.
    #[error("{0}")]
    Connect(#[from] ConnectError),
    /// This end's own port is closed.
    #[error(transparent)]
    Accept(#[from] AcceptError),
    /// The connection has ended before anything was said on it.
    #[error(transparent)]
    Open(#[from] OpenError),
}

/// Ports that are tried before giving up.
const TRIES: u32 = 64;

impl Door {
    /// Opens one.
    pub(crate) fn open(door: &DoorConfig<'_>) -> Result<Self, DoorError> {
        let (identity, secret) = (Identity::generate()?, Secret::generate());
        let mut config = ListenerConfig::new(ServerCredentials::mutual(&identity));
        config.secret = Some(secret.clone());
        config.endpoint.closing = door.closing;
        config.endpoint.memory = match door.service.path_memory {
            PathMemory::OfUser => Memory::of_user(),
            PathMemory::Off => Memory::Off,
        };
        // The process exits right after the door is dropped.
        config.endpoint.on_drop = OnDrop::Wait;
        door.tuning.apply(&mut config, door.service, door.memory)?;
        let listener = listen(&config, door.ports)?;
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

    /// The key by which the other end knows this one.
    pub(crate) const fn identity(&self) -> &Identity {
        &self.identity
    }

    /// The socket, for what is asked of it.
    pub(crate) const fn endpoint(&self) -> &Endpoint {
        self.listener.endpoint()
    }

    /// Dials the other end's door, at these of its addresses.
    async fn dial(
        &self,
        host: &str,
        invitation: &Invitation,
        addresses: Vec<SocketAddr>,
        patience: Duration,
    ) -> Result<Connection, MeetError> {
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
    ) -> Result<Connection, MeetError> {
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
    ) -> Result<(Connection, Stream), MeetError> {
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
type Begun<'a> = Pin<Box<dyn Future<Output = Result<(Connection, Stream), MeetError>> + 'a>>;

/// The next connection of a client that has proven to hold the key `key`; to others nothing is said.
// spec: hs-9
pub(crate) async fn invited(
    listener: &Listener,
    key: Fingerprint,
) -> Result<Connection, MeetError> {
    loop {
        let connection = listener.accept().await?;
        if connection.client_key() == Some(key) {
            return Ok(connection);
        }
        connection.close(AppCode::FIRST, "another one was invited");
    }
}

async fn spoken(connection: Connection) -> Result<(Connection, Stream), MeetError> {
    let stream = connection.accept_stream().await?;
    Ok((connection, stream))
}

/// Those that fail are forgotten.
fn first(
    all: &mut Vec<Begun<'_>>,
    context: &mut Context<'_>,
) -> Poll<Result<(Connection, Stream), MeetError>> {
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
const fn is_silence(error: &MeetError) -> bool {
    use ConnectError::{NoAnswer, Unreachable};
    matches!(error, MeetError::Connect(NoAnswer { .. } | Unreachable { .. }))
}

fn listen(config: &ListenerConfig, ports: &RangeInclusive<u16>) -> Result<Listener, DoorError> {
    let (from, to) = (*ports.start(), *ports.end());
    let span = u64::from(to.saturating_sub(from)) + 1;
    let mut tries = 0;
    loop {
        tries += 1;
        let port = from + (hikyaku_crypto::random_u64() % span) as u16;
        // A machine without IPv6 has no socket for it.
        for ip in [IpAddr::from(Ipv6Addr::UNSPECIFIED), IpAddr::from(Ipv4Addr::UNSPECIFIED)] {
            match Listener::bind(SocketAddr::new(ip, port), config.clone()) {
                Ok(listener) => return Ok(listener),
                Err(source) if tries >= TRIES && ip.is_ipv4() => {
                    return Err(DoorError::NoPort { from, to, source });
                }
                Err(_) => {}
            }
        }
    }
}

#[cfg(test)]
mod tests;
