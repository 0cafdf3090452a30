//! Settings of endpoints, listeners and connections.

use crate::paths::Memory;
use hikyaku_crypto::{ClientCredentials, Secret, ServerCredentials, Trust, preferred_ciphers};
use hikyaku_proto::Config;
use hikyaku_udp::SocketOptions;
use hikyaku_units::DataSize;
use std::time::Duration;

/// Settings of an endpoint.
#[derive(Clone, Debug)]
pub struct EndpointConfig {
    /// The socket. The default asks for 32 MB of receive buffer, 25 ms at 10 Gbit/s.
    pub socket: SocketOptions,
    /// Where paths are remembered, so that the next connection starts at the rate of the last.
    /// Default: the user's cache folder. Costs one small file; reveals to who can read it where
    /// the user connected to.
    pub memory: Memory,
    /// How long a dropped endpoint waits for finished streams to be delivered. Default 10 s.
    pub linger: Duration,
    /// How long connections may repeat, after all that was finished is delivered, that they are closed.
    /// Default 1 s, of which each takes three round trips. Who takes less leaves a peer that missed the
    /// only word to its idle time-out.
    pub closing: Duration,
}

impl Default for EndpointConfig {
    fn default() -> Self {
        let socket = SocketOptions {
            recv_buffer: DataSize::from_bytes(32 << 20),
            ..SocketOptions::default()
        };
        Self {
            socket,
            memory: Memory::of_user(),
            linger: Duration::from_secs(10),
            closing: Duration::from_secs(1),
        }
    }
}

/// Settings of a connection to be made.
#[derive(Clone)]
pub struct ConnectConfig {
    /// Whom to trust.
    pub credentials: ClientCredentials,
    /// The transport. The sizes that follow from the route, `max_datagram` and `ip_overhead`, are
    /// set for each address; without a `hint` the endpoint's memory is asked for one.
    pub transport: Config,
    /// The name under which the server is known, if it is not the host connected to.
    pub server_name: Option<String>,
    /// What a listener with a secret wants to see in the first packet.
    pub secret: Option<Secret>,
}

impl ConnectConfig {
    /// Trusts as `trust` says, all else by default.
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
#[derive(Clone)]
pub struct ListenerConfig {
    /// Who the listener is.
    pub credentials: ServerCredentials,
    /// The transport of its connections; sizes and hint as in [`ConnectConfig`].
    pub transport: Config,
    /// The endpoint below.
    pub endpoint: EndpointConfig,
    /// With so many handshakes under way, a client must prove its address with one more round
    /// trip. Default 16: few honest clients come in the same round trip, and a flood of forged ones
    /// costs no more than as many signatures and 0.6 MB.
    pub prove_from: usize,
    /// With a secret, nothing but a first packet that was made with it draws an answer. Default:
    /// none.
    pub secret: Option<Secret>,
}

impl ListenerConfig {
    /// A listener with these credentials, all else by default.
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
