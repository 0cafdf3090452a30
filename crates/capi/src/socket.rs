//! Sockets without C.

use bytes::Bytes;
use hikyaku_console::{Folder, NoFolder};
use hikyaku_crypto::{Identity, KnownPeers, LoadIdentity};
use hikyaku_net::blocking::{Cut, Stop, block_on, wait};
use hikyaku_net::{
    AcceptError, ConnectConfig, ConnectError, Connection, Endpoint, EndpointConfig, EndpointError,
    Fingerprint, ListenerConfig, OpenError, ReceiveHalf, SendHalf, ServerCredentials, Target,
    Trust,
};
use hikyaku_units::Rate;
use std::future::poll_fn;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;
use std::pin::Pin;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, ReadBuf};

/// Why a socket cannot do what it is asked for.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SocketError {
    #[error(transparent)]
    Endpoint(#[from] EndpointError),
    #[error(transparent)]
    Connect(#[from] ConnectError),
    #[error(transparent)]
    Accept(#[from] AcceptError),
    #[error(transparent)]
    Open(#[from] OpenError),
    #[error(transparent)]
    Identity(#[from] LoadIdentity),
    #[error(transparent)]
    Folder(#[from] NoFolder),
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error("nothing within {} ms", .0.as_millis())]
    TooLate(Duration),
    #[error("nothing can be sent behind the end")]
    Finished,
}

/// A port that accepts sockets.
pub(crate) struct Listener {
    listener: hikyaku_net::Listener,
    fingerprint: Fingerprint,
}

/// A connection with a stream in each direction.
pub(crate) struct Socket {
    connection: Connection,
    sending: Mutex<Sending>,
    receiving: Mutex<Receiving>,
    /// Of the connecting end, which has a socket of the system of its own.
    endpoint: Option<Endpoint>,
}

/// The direction to the peer.
enum Sending {
    /// Nothing was sent yet.
    Unopened,
    Open(SendHalf),
    Finished(SendHalf),
}

/// The direction from the peer.
enum Receiving {
    /// The peer has sent nothing that was read.
    Unopened,
    Open(ReceiveHalf),
}

/// Bytes that are handed to the transport at a time.
const CHUNK_BYTES: usize = 256 << 10;
/// How long the end of a socket may take to reach the peer.
const LAST_WORD: Duration = Duration::from_secs(10);

impl Listener {
    /// Listens at `address`. The key is in `key`, which is made if it does not exist.
    pub(crate) fn bind(address: SocketAddr, key: &Path) -> Result<Self, SocketError> {
        let identity = Identity::load_or_create(key)?;
        let mut config = ListenerConfig::new(ServerCredentials::new(&identity));
        // One stream in each direction: it may have the whole window.
        config.transport.stream_window = config.transport.initial_window;
        let listener = hikyaku_net::Listener::bind(address, config)?;
        Ok(Self { listener, fingerprint: identity.fingerprint() })
    }

    pub(crate) const fn local_addr(&self) -> SocketAddr {
        self.listener.local_addr()
    }

    pub(crate) const fn fingerprint(&self) -> Fingerprint {
        self.fingerprint
    }

    /// The next socket, within `patience` if that is given.
    pub(crate) fn accept(&self, patience: Option<Duration>) -> Result<Socket, SocketError> {
        let until = patience.map(|patience| Instant::now() + patience);
        match wait(self.listener.accept(), &Stop::default(), until) {
            Ok(connection) => Ok(Socket::new(connection?, None)),
            Err(Cut::TooLate | Cut::Stopped) => {
                Err(SocketError::TooLate(patience.unwrap_or_default()))
            }
        }
    }
}

impl Socket {
    fn new(connection: Connection, endpoint: Option<Endpoint>) -> Self {
        let (sending, receiving) = (Mutex::new(Sending::Unopened), Mutex::new(Receiving::Unopened));
        Self { connection, sending, receiving, endpoint }
    }

    /// Connects to the listener whose key has this fingerprint; without one, the key of the first use is remembered.
    pub(crate) fn connect(
        target: Target,
        key: Option<Fingerprint>,
        patience: Option<Duration>,
    ) -> Result<Self, SocketError> {
        let trust = match key {
            Some(key) => Trust::Pinned(key),
            None => {
                let state = Folder::State.of_user()?;
                Trust::FirstUse(KnownPeers::at(state.join(KnownPeers::FILE_NAME)))
            }
        };
        let mut config = ConnectConfig::new(trust);
        config.transport.stream_window = config.transport.initial_window;
        if let Some(patience) = patience {
            config.transport.connect_timeout = patience;
        }
        // A machine without IPv6 has no socket for it.
        let endpoint = Endpoint::bind((Ipv6Addr::UNSPECIFIED, 0).into(), EndpointConfig::default())
            .or_else(|_| {
                Endpoint::bind((Ipv4Addr::UNSPECIFIED, 0).into(), EndpointConfig::default())
            })?;
        let connection = block_on(endpoint.connect(target, config))?;
        Ok(Self::new(connection, Some(endpoint)))
    }

    /// Sends all of `bytes`: returns when the transport has taken them.
    pub(crate) fn send(&self, bytes: &[u8]) -> Result<(), SocketError> {
        let mut sending = self.sending.lock().unwrap_or_else(PoisonError::into_inner);
        let half = self.opened(&mut sending)?;
        for chunk in bytes.chunks(CHUNK_BYTES) {
            block_on(half.write_chunk(Bytes::copy_from_slice(chunk))).map_err(io::Error::from)?;
        }
        Ok(())
    }

    fn opened<'a>(&self, sending: &'a mut Sending) -> Result<&'a mut SendHalf, SocketError> {
        if matches!(sending, Sending::Unopened) {
            // The direction back is not used: the peer sends on a stream of its own.
            let (send, _) = block_on(self.connection.open_stream())?.split();
            *sending = Sending::Open(send);
        }
        match sending {
            Sending::Open(send) => Ok(send),
            Sending::Finished(_) | Sending::Unopened => Err(SocketError::Finished),
        }
    }

    /// Reads at least one byte; 0 at the peer's end.
    pub(crate) fn receive(&self, out: &mut [u8]) -> Result<usize, SocketError> {
        let mut receiving = self.receiving.lock().unwrap_or_else(PoisonError::into_inner);
        if matches!(*receiving, Receiving::Unopened) {
            let (mut unused, receive) = block_on(self.connection.accept_stream())?.split();
            unused.finish();
            *receiving = Receiving::Open(receive);
        }
        let Receiving::Open(half) = &mut *receiving else { return Err(SocketError::Finished) };
        let mut out = ReadBuf::new(out);
        block_on(poll_fn(|context| Pin::new(&mut *half).poll_read(context, &mut out)))?;
        Ok(out.filled().len())
    }

    /// Tells the peer that nothing more comes, and waits until it has everything.
    pub(crate) fn finish(&self) -> Result<(), SocketError> {
        let mut sending = self.sending.lock().unwrap_or_else(PoisonError::into_inner);
        if !matches!(*sending, Sending::Finished(_)) {
            self.opened(&mut sending)?.finish();
            *sending = match std::mem::replace(&mut *sending, Sending::Unopened) {
                Sending::Open(half) => Sending::Finished(half),
                other => other,
            };
        }
        match &mut *sending {
            Sending::Finished(half) => {
                block_on(half.delivered()).map_err(io::Error::from)?;
                Ok(())
            }
            Sending::Open(_) | Sending::Unopened => Err(SocketError::Finished),
        }
    }

    /// Sends at most at this rate; `None` for no limit.
    pub(crate) fn set_rate(&self, rate: Option<Rate>) {
        self.connection.set_payload_rate(rate);
    }

    /// Ends the connection. What was sent and not finished may be lost.
    pub(crate) fn close(self) {
        self.connection.close(hikyaku_net::AppCode::DONE, "");
        if let Some(endpoint) = self.endpoint {
            let until = Some(Instant::now() + LAST_WORD);
            // Who is not told within that has gone.
            let _ = wait(endpoint.shutdown(), &Stop::default(), until);
        }
    }
}
