//! A socket and its driver thread, for connecting.

use crate::command::Command;
use crate::config::{ConnectConfig, EndpointConfig};
use crate::connect;
use crate::connection::Connection;
use crate::driver::{Door, Driver, Setup};
use crate::error::{ConnectError, EndpointError};
use crate::mailbox::Mailbox;
use crate::paths::Memory;
use crate::target::Target;
use hikyaku_udp::{Granted, Poller, UdpSocket};
use std::net::SocketAddr;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

/// A UDP socket, and the thread that drives all connections made over it.
///
/// Dropping it ends what it carries: connections without handles may first deliver what was
/// finished (see [`EndpointConfig::linger`]), all others are closed at once. The drop returns when
/// the thread has ended.
pub struct Endpoint {
    pub(crate) mailbox: Arc<Mailbox>,
    pub(crate) context: Context,
    thread: Option<JoinHandle<()>>,
    advice: Option<String>,
    granted: Granted,
}

/// What connecting needs to know of the endpoint.
#[derive(Clone)]
pub(crate) struct Context {
    pub(crate) local: SocketAddr,
    pub(crate) memory: Memory,
    pub(crate) device: Option<String>,
}

impl Endpoint {
    /// Binds to `address`. `[::]:0` is any port of both IPv4 and IPv6.
    pub fn bind(address: SocketAddr, config: EndpointConfig) -> Result<Self, EndpointError> {
        Self::start(address, config, None)
    }

    pub(crate) fn start(
        address: SocketAddr,
        config: EndpointConfig,
        door: Option<Door>,
    ) -> Result<Self, EndpointError> {
        let socket = UdpSocket::bind(address, &config.socket)?;
        let poller = Poller::new().map_err(EndpointError::Thread)?;
        let mailbox = Arc::new(Mailbox::new(poller.waker()));
        let granted = socket.granted();
        let context = Context {
            local: socket.local_addr(),
            memory: config.memory.clone(),
            device: config.socket.bind_device.clone(),
        };
        let driver = Driver::new(Setup {
            socket,
            poller,
            mailbox: mailbox.clone(),
            door,
            memory: config.memory,
            device: context.device.clone(),
            linger: config.linger,
            closing: config.closing,
        });
        let thread = thread::Builder::new()
            .name("hikyaku-driver".to_owned())
            .spawn(move || driver.run())
            .map_err(EndpointError::Thread)?;
        let advice =
            granted.recv_advice(&config.socket).or_else(|| granted.send_advice(&config.socket));
        Ok(Self { mailbox, context, thread: Some(thread), advice, granted })
    }

    /// The address bound to.
    pub const fn local_addr(&self) -> SocketAddr {
        self.context.local
    }

    /// A command for the administrator that would make the endpoint faster, if there is one: the
    /// kernel granted smaller buffers than were asked for.
    pub fn advice(&self) -> Option<&str> {
        self.advice.as_deref()
    }

    /// What the kernel granted.
    pub const fn granted(&self) -> Granted {
        self.granted
    }

    /// Connects to `target`. A name's addresses are tried in order, each with a head start of
    /// 250 ms over the next; the first that answers wins.
    pub async fn connect(
        &self,
        target: impl Into<Target>,
        config: ConnectConfig,
    ) -> Result<Connection, ConnectError> {
        connect::connect(&self.mailbox, self.context.clone(), target.into(), config).await
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        self.mailbox.send(Command::Stop);
        if let Some(thread) = self.thread.take() {
            // It ended one way or the other.
            let _ = thread.join();
        }
    }
}
