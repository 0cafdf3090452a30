//! Settings of endpoints, listeners and connections.
//!
//! A later version may add fields, so a program begins with the defaults and sets fields:
//!
//! ```
//! use hikyaku_net::{EndpointConfig, Memory};
//!
//! let mut config = EndpointConfig::default();
//! config.memory = Memory::of_user();
//! ```

use crate::paths::Memory;
use hikyaku_crypto::{ClientCredentials, Secret, ServerCredentials, Trust, preferred_ciphers};
use hikyaku_proto::Config;
use hikyaku_udp::SocketOptions;
use hikyaku_units::DataSize;
use std::num::NonZeroU8;
use std::thread::available_parallelism;
use std::time::Duration;

/// Settings of an endpoint: its sockets and its driver threads.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct EndpointConfig {
    /// The socket. The default asks for a receive buffer of 32 MB: 25 ms at 10 Gbit/s.
    pub socket: SocketOptions,
    /// The number of driver threads, each with a socket. Default: [`Drivers::Auto`].
    pub drivers: Drivers,
    /// Where the rates of paths are remembered, so that the next connection on a path starts at the
    /// rate of the last. Default: [`Memory::Off`], so that the library reads and writes no file that
    /// the application did not name. With [`Memory::of_user`], every reader of the file learns the
    /// networks to which the user connected.
    pub memory: Memory,
    /// The longest time that an endpoint that ends waits until finished streams are delivered.
    /// Default: 10 s.
    pub linger: Duration,
    /// The longest time that connections repeat their close to the peer, after `linger` or the last
    /// delivery. Default: 1 s; each connection needs three round trips of it. With a shorter time, a
    /// peer that misses the only close waits for its idle time-out.
    pub closing: Duration,
    /// The effect of dropping the endpoint. Default: [`OnDrop::Detach`].
    pub on_drop: OnDrop,
}

/// The number of driver threads of an endpoint or a listener.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Drivers {
    /// One for every two processors that the process may use, and [`Drivers::MOST`] at most: a processor encrypts 15 to 20
    /// Gbit/s, and the application needs as many. A connecting endpoint starts a second one for its second connection.
    #[default]
    Auto,
    /// This number.
    Fixed(NonZeroU8),
}

impl Drivers {
    /// One driver.
    pub const ONE: Self = Self::Fixed(NonZeroU8::MIN);
    /// The largest number that [`Drivers::Auto`] stands for: 8, which carry 100 Gbit/s.
    pub const MOST: u8 = 8;

    /// The number.
    pub fn number(self) -> NonZeroU8 {
        match self {
            Self::Auto => {
                let processors = available_parallelism().map_or(1, usize::from);
                let half = u8::try_from(processors / 2).unwrap_or(u8::MAX).min(Self::MOST);
                NonZeroU8::new(half).unwrap_or(NonZeroU8::MIN)
            }
            Self::Fixed(number) => number,
        }
    }
}

/// Whether dropping an [`Endpoint`](crate::Endpoint) or [`Listener`](crate::Listener) waits until
/// its driver thread has ended. `shutdown` does not depend on it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum OnDrop {
    /// The drop returns at once. The driver thread delivers what was finished, sends the closes and
    /// ends on its own. A process that exits before then takes the thread with it: the peer may miss
    /// data that was finished and the close.
    #[default]
    Detach,
    /// The drop blocks the calling thread until the driver thread has ended: at most `linger` and
    /// `closing` together. For programs that do not run on an executor.
    Wait,
}

impl Default for EndpointConfig {
    fn default() -> Self {
        let socket = SocketOptions {
            recv_buffer: DataSize::from_bytes(32 << 20),
            ..SocketOptions::default()
        };
        Self {
            socket,
            drivers: Drivers::default(),
            memory: Memory::Off,
            linger: Duration::from_secs(10),
            closing: Duration::from_secs(1),
            on_drop: OnDrop::default(),
        }
    }
}

/// Settings of a connection that the caller makes.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ConnectConfig {
    /// Which servers are trusted, and the client's own key, if it has one.
    pub credentials: ClientCredentials,
    /// The transport. `max_datagram` and `ip_overhead` are overwritten for each address, from the MTU
    /// of the route. If `hint` is `None`, the endpoint's memory supplies it.
    pub transport: Config,
    /// The name of the server in the list of known servers. Default: the host connected to.
    pub server_name: Option<String>,
    /// The secret of the listener, which the first packet proves to know. Default: none, for a
    /// listener without a secret.
    pub secret: Option<Secret>,
}

impl ConnectConfig {
    /// The settings of a client without a key that trusts the servers of `trust`. Everything else has
    /// its default.
    pub fn new(trust: Trust) -> Self {
        Self {
            credentials: ClientCredentials::new(trust),
            transport: default_transport(),
            server_name: None,
            secret: None,
        }
    }
}

/// Settings of a listener.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ListenerConfig {
    /// The identity of the listener, and whether clients must show a key.
    pub credentials: ServerCredentials,
    /// The transport of its connections; see [`ConnectConfig::transport`].
    pub transport: Config,
    /// The socket and the driver thread.
    pub endpoint: EndpointConfig,
    /// While this many handshakes are under way, a client must prove its address, which costs one
    /// round trip more. Default: 16. Few honest clients arrive in the same round trip, and a flood of
    /// forged first packets costs at most this many signatures and 0.6 MB.
    pub prove_from: usize,
    /// With a secret, the listener answers only first packets that were made with it. Default: none.
    pub secret: Option<Secret>,
}

impl ListenerConfig {
    /// The settings of a listener with these credentials. Everything else has its default.
    pub fn new(credentials: ServerCredentials) -> Self {
        Self {
            credentials,
            transport: default_transport(),
            endpoint: EndpointConfig::default(),
            prove_from: 16,
            secret: None,
        }
    }
}

fn default_transport() -> Config {
    Config { ciphers: preferred_ciphers(), ..Config::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_file_is_written_unless_the_application_names_one() {
        assert_eq!(EndpointConfig::default().memory, Memory::Off);
    }
}
