//! A socket and its driver thread, for connecting.

use crate::command::Command;
use crate::config::{ConnectConfig, EndpointConfig, OnDrop};
use crate::connect;
use crate::connection::Connection;
use crate::driver::{Door, Driver, Setup};
use crate::error::{ConnectError, EndpointError};
use crate::mailbox::Mailbox;
use crate::paths::Memory;
use crate::reply::{Question, ask};
use crate::target::Target;
use hikyaku_udp::{Granted, Poller, UdpSocket};
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

/// A UDP socket, and the thread that drives all connections made over it.
///
/// [`Endpoint::shutdown`] and dropping the endpoint end its connections. A connection without
/// handles first delivers what was finished, for at most [`EndpointConfig::linger`]. Every other
/// connection is closed at once. Close packets are sent to the peers for at most
/// [`EndpointConfig::closing`]; then the thread ends. A drop waits for it only with
/// [`OnDrop::Wait`] in [`EndpointConfig::on_drop`].
pub struct Endpoint {
    pub(crate) mailbox: Arc<Mailbox>,
    pub(crate) context: Context,
    thread: Option<JoinHandle<()>>,
    /// Resolves when the driver has closed its socket.
    ended: Question<()>,
    on_drop: OnDrop,
    advice: Option<String>,
    granted: Granted,
}

/// The parts of the endpoint that an attempt to connect needs.
#[derive(Clone)]
pub(crate) struct Context {
    pub(crate) local: SocketAddr,
    pub(crate) memory: Memory,
    pub(crate) device: Option<String>,
}

impl Endpoint {
    /// Binds to `address` and starts the driver thread. `[::]:0` is an ephemeral port for both IPv4
    /// and IPv6.
    pub fn bind(address: SocketAddr, config: EndpointConfig) -> Result<Self, EndpointError> {
        Self::start(UdpSocket::bind(address, &config.socket)?, config, None)
    }

    pub(crate) fn start(
        socket: UdpSocket,
        config: EndpointConfig,
        door: Option<Door>,
    ) -> Result<Self, EndpointError> {
        let poller = Poller::new().map_err(EndpointError::Thread)?;
        let mailbox = Arc::new(Mailbox::new(poller.waker()));
        let granted = socket.granted();
        let context = Context {
            local: socket.local_addr(),
            memory: config.memory.clone(),
            device: config.socket.bind_device.clone(),
        };
        let (ending, ended) = ask();
        let driver = Driver::new(Setup {
            socket,
            poller,
            mailbox: mailbox.clone(),
            door,
            memory: config.memory,
            device: context.device.clone(),
            linger: config.linger,
            closing: config.closing,
            ending,
        });
        let thread = thread::Builder::new()
            .name("hikyaku-driver".to_owned())
            .spawn(move || driver.run())
            .map_err(EndpointError::Thread)?;
        let advice =
            granted.recv_advice(&config.socket).or_else(|| granted.send_advice(&config.socket));
        let on_drop = config.on_drop;
        Ok(Self { mailbox, context, thread: Some(thread), ended, on_drop, advice, granted })
    }

    /// The address that the socket is bound to.
    pub const fn local_addr(&self) -> SocketAddr {
        self.context.local
    }

    /// A command with which an administrator lets the kernel grant the buffer sizes that were asked
    /// for. `None` if it granted them.
    pub fn advice(&self) -> Option<&str> {
        self.advice.as_deref()
    }

    /// Buffer sizes and offloads that the kernel granted.
    pub const fn granted(&self) -> Granted {
        self.granted
    }

    /// Connects to `target`. The addresses of a name are tried in order, each with a head start of
    /// 250 ms over the next (the idea of RFC 8305). The first that completes a handshake wins.
    pub async fn connect(
        &self,
        target: impl Into<Target>,
        config: ConnectConfig,
    ) -> Result<Connection, ConnectError> {
        connect::connect(&self.mailbox, self.context.clone(), target.into(), config).await
    }

    /// Ends the endpoint in good order, without blocking a thread.
    ///
    /// The future is ready when finished streams of connections without handles are delivered, the
    /// peers have acknowledged the closes (or [`EndpointConfig::linger`] and
    /// [`EndpointConfig::closing`] are over), and the socket is closed. Dropping the future has the
    /// effect of dropping the endpoint; the shutdown continues.
    ///
    /// ```
    /// # use hikyaku_net::blocking::block_on;
    /// # use hikyaku_net::{
    /// #     Bytes, ConnectConfig, Endpoint, EndpointConfig, Identity, Listener, ListenerConfig,
    /// #     ServerCredentials, Trust,
    /// # };
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let identity = Identity::generate()?;
    /// # let config = ListenerConfig::new(ServerCredentials::new(&identity));
    /// # let listener = Listener::bind("127.0.0.1:0".parse()?, config)?;
    /// # let endpoint = Endpoint::bind("127.0.0.1:0".parse()?, EndpointConfig::default())?;
    /// # let config = ConnectConfig::new(Trust::Pinned(identity.fingerprint()));
    /// # block_on(async {
    /// let connection = endpoint.connect(listener.local_addr(), config).await?;
    /// let mut stream = connection.open_stream().await?;
    /// stream.write_chunk(Bytes::from_static(b"all of this arrives")).await?;
    /// stream.finish();
    /// drop((stream, connection));
    /// endpoint.shutdown().await;
    /// # Ok(())
    /// # })
    /// # }
    /// ```
    pub async fn shutdown(mut self) {
        self.mailbox.send(Command::Stop);
        // `None`: the driver drops its end of the question after its socket.
        let _ = (&mut self.ended).await;
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Endpoint")
            .field("local_addr", &self.local_addr())
            .field("granted", &self.granted)
            .finish_non_exhaustive()
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        self.mailbox.send(Command::Stop);
        if let (OnDrop::Wait, Some(thread)) = (self.on_drop, self.thread.take()) {
            // An error is a panic of the driver, which the panic hook has reported.
            let _ = thread.join();
        }
    }
}
