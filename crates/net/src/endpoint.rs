//! Sockets and their driver threads, for connecting.

use crate::command::Command;
use crate::config::{ConnectConfig, Drivers, EndpointConfig, OnDrop};
use crate::connect;
use crate::connection::Connection;
use crate::crew::Crew;
use crate::driver::Door;
use crate::error::{ConnectError, EndpointError};
use crate::ids::{Aim, Ids};
use crate::paths::Memory;
use crate::target::Target;
use hikyaku_udp::{Granted, UdpSocket};
use std::fmt;
use std::net::SocketAddr;

/// UDP sockets, and the threads that drive all connections made over them: [`EndpointConfig::drivers`] at most. Each
/// connection stays with one thread. Another thread is started for a connection if all have one.
///
/// [`Endpoint::shutdown`] and dropping the endpoint end its connections. A connection without
/// handles first delivers what was finished, for at most [`EndpointConfig::linger`]. Every other
/// connection is closed at once. Close packets are sent to the peers for at most
/// [`EndpointConfig::closing`]; then the threads end. A drop waits for them only with
/// [`OnDrop::Wait`] in [`EndpointConfig::on_drop`].
pub struct Endpoint {
    crew: Crew,
    pub(crate) context: Context,
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
    /// Of the driver that gets the connection.
    pub(crate) ids: Ids,
    pub(crate) aim: Aim,
}

impl Endpoint {
    /// Binds to `address` and starts a driver thread. `[::]:0` is an ephemeral port for both IPv4
    /// and IPv6. With another port than 0 there is one driver.
    pub fn bind(address: SocketAddr, config: EndpointConfig) -> Result<Self, EndpointError> {
        let socket = UdpSocket::bind(address, &config.socket)?;
        let drivers = if address.port() == 0 { config.drivers } else { Drivers::ONE };
        let (granted, local) = (socket.granted(), socket.local_addr());
        let crew = Crew::of_ports((socket, address), drivers, &config)?;
        Ok(Self::new(crew, (granted, local), config))
    }

    /// Starts a driver thread for each of the sockets of one port.
    pub(crate) fn listen(
        sockets: Vec<UdpSocket>,
        config: EndpointConfig,
        door: &Door,
    ) -> Result<Self, EndpointError> {
        let (granted, local) = (sockets[0].granted(), sockets[0].local_addr());
        let crew = Crew::of_port(sockets, door, &config)?;
        Ok(Self::new(crew, (granted, local), config))
    }

    fn new(crew: Crew, (granted, local): (Granted, SocketAddr), config: EndpointConfig) -> Self {
        let context = Context {
            local,
            memory: config.memory,
            device: config.socket.bind_device.clone(),
            ids: Ids::ALONE,
            aim: Aim::random(),
        };
        let advice =
            granted.recv_advice(&config.socket).or_else(|| granted.send_advice(&config.socket));
        Self { crew, context, on_drop: config.on_drop, advice, granted }
    }

    /// Sends a command to all drivers.
    pub(crate) fn tell(&self, command: impl Fn() -> Command) {
        self.crew.tell(command);
    }

    #[cfg(test)]
    pub(crate) const fn crew(&self) -> &Crew {
        &self.crew
    }

    /// The address that the socket is bound to: that of the first driver, if there are several.
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
        let chosen = self.crew.choose();
        let context =
            Context { ids: chosen.ids, aim: chosen.aim(self.context.aim), ..self.context.clone() };
        connect::connect(&chosen.mailbox, context, target.into(), config).await
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
        self.tell(|| Command::Stop);
        self.crew.ended().await;
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
        self.tell(|| Command::Stop);
        if self.on_drop == OnDrop::Wait {
            self.crew.join();
        }
    }
}
