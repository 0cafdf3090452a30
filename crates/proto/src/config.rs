//! What a connection may be told, with the reason for each default.

use core::time::Duration;
use hikyaku_cc::{PathHint, Policy};
use hikyaku_units::{DataSize, Rate};
use hikyaku_wire::CipherId;

/// Settings of one connection.
#[derive(Clone, Debug)]
pub struct Config {
    /// Ciphers for the data, by preference. Default: AEGIS-128L, AES-128-GCM, ChaCha20-Poly1305;
    /// the owner removes what its hardware is slow at.
    pub ciphers: alloc::vec::Vec<CipherId>,
    /// How the path is shared. Default: fair.
    pub policy: Policy,
    /// Most bytes of payload a second, retransmissions not counted. Default: none.
    pub payload_rate: Option<Rate>,
    /// Most bytes on the wire a second, IP and UDP headers and retransmissions counted. Default:
    /// none.
    pub wire_rate: Option<Rate>,
    /// What is remembered of the path.
    pub hint: Option<PathHint>,
    /// Largest UDP payload to try, from the route's MTU. Default 1472 (1500 less IPv4 and UDP).
    pub max_datagram: u16,
    /// IP and UDP headers on this path: 28 for IPv4, 48 for IPv6.
    pub ip_overhead: u16,
    /// Most bytes held for the application, arrived or on their way, in all streams together.
    /// Default 512 MB: five times 1 Gbit/s x 500 ms, enough for order at 10 % loss.
    pub receive_window: DataSize,
    /// The window begins with this much and follows the measured bandwidth-delay product.
    /// Default 64 MB: a gigabit at 500 ms starts without being held.
    pub initial_window: DataSize,
    /// Streams of each kind that the peer may open. Default 1024.
    pub max_streams: u32,
    /// The connection dies after this long without a packet. Default 30 s; an outage shorter than
    /// this is survived.
    pub idle_timeout: Duration,
    /// Something is sent at least this often, so that address translators keep the path.
    /// Default 10 s: below the 30 s after which common ones forget (RFC 4787 asks for 120 s).
    pub keep_alive: Duration,
    /// Connecting fails after this long without an answer. Default 10 s.
    pub connect_timeout: Duration,
    /// A data key is replaced after this many packets, or sooner if its cipher demands it.
    pub key_packets: u64,
    /// The connection ends when so many packets did not open. Default 2^36, what the weakest cipher here
    /// bears (RFC 9001 section 6.6).
    pub key_forgeries: u64,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            ciphers: alloc::vec![
                CipherId::Aegis128L,
                CipherId::Aes128Gcm,
                CipherId::ChaCha20Poly1305
            ],
            policy: Policy::Fair,
            payload_rate: None,
            wire_rate: None,
            hint: None,
            max_datagram: 1472,
            ip_overhead: 28,
            receive_window: DataSize::from_bytes(512_000_000),
            initial_window: DataSize::from_bytes(64_000_000),
            max_streams: 1024,
            idle_timeout: Duration::from_secs(30),
            keep_alive: Duration::from_secs(10),
            connect_timeout: Duration::from_secs(10),
            key_packets: 1 << 26,
            key_forgeries: 1 << 36,
        }
    }
}

/// Which end of the connection this is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Side {
    /// It sent the first packet.
    Client,
    /// It answered.
    Server,
}
