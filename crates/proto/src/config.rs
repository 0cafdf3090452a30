//! The settings of a connection, with the reason for each default.

use core::time::Duration;
use hikyaku_cc::{PathHint, Policy};
use hikyaku_units::{DataSize, Rate};
use hikyaku_wire::CipherId;

/// Settings of one connection.
#[derive(Clone, Debug)]
pub struct Config {
    /// Ciphers for data packets, in order of preference. Default: AEGIS-128L, AES-128-GCM,
    /// ChaCha20-Poly1305. The caller removes those that are slow on its hardware.
    pub ciphers: alloc::vec::Vec<CipherId>,
    /// How the connection shares the path with other flows. Default: fair.
    pub policy: Policy,
    /// Maximum payload rate in bytes a second, without retransmissions. Default: no limit.
    pub payload_rate: Option<Rate>,
    /// Maximum rate on the wire in bytes a second, including IP and UDP headers and
    /// retransmissions. Default: no limit.
    pub wire_rate: Option<Rate>,
    /// What an earlier connection measured of this path. Default: nothing.
    pub hint: Option<PathHint>,
    /// The largest UDP payload, in bytes, that path-MTU discovery tries, derived from the route's
    /// MTU. Default: 1472 (1500 less the IPv4 and UDP headers).
    pub max_datagram: u16,
    /// Bytes of IP and UDP headers on this path: 28 for IPv4, 48 for IPv6. Default: 28.
    pub ip_overhead: u16,
    /// Maximum bytes held for the application in all streams together, received or in flight.
    /// Default: 512 MB. That is eight times the bandwidth-delay product of 1 Gbit/s and 500 ms,
    /// enough for ordered delivery at 10 % loss.
    pub receive_window: DataSize,
    /// The initial receive window of the connection; the window then follows the measured
    /// bandwidth-delay product. Default: 64 MB, so that 1 Gbit/s at a round-trip time of 500 ms is
    /// not limited at the start.
    pub initial_window: DataSize,
    /// The initial receive window of each stream; it grows while the application reads the stream.
    /// Default: 4 MB, because unread streams can occupy their whole window: 128 of them fill the
    /// default receive window. An application that reads all its streams may set it to
    /// `initial_window`. Then every stream has the connection's window, and a new stream reaches
    /// the full rate at once.
    pub stream_window: DataSize,
    /// Maximum bytes that wait for their first transmission, in all streams together, as written by
    /// applications. The transport holds up to the same amount again ready for sending, and up to
    /// twice the amount when sending stops suddenly. One piece of each stream is not counted.
    /// Default: 64 MB, which is 50 ms at 10 Gbit/s, or 64 kB for each of a thousand streams that
    /// are blocked.
    pub send_buffer: DataSize,
    /// How streams are treated whose unread bytes fill the receive window. Default: they wait.
    pub stalled: StalledStreams,
    /// Maximum number of streams of each kind that the peer may have open. Default: 1024.
    pub max_streams: u32,
    /// The connection ends after this long without a received packet (RFC 9000, section 10.1). It
    /// survives outages shorter than this. Default: 30 s.
    pub idle_timeout: Duration,
    /// Maximum time between two sent packets, so that address translators (NAT) keep the mapping.
    /// Default: 10 s, because common ones remove a UDP mapping after 30 s although RFC 4787
    /// requires 120 s.
    pub keep_alive: Duration,
    /// Connecting fails after this long without an answer. Default: 10 s.
    pub connect_timeout: Duration,
    /// Packets after which a data key is replaced; a lower limit of the cipher takes precedence.
    /// Default: 2^26.
    pub key_packets: u64,
    /// The connection ends after this many packets that failed authentication. Default: 2^36, the
    /// integrity limit of ChaCha20-Poly1305, the lowest of the supported ciphers (RFC 9001, section
    /// 6.6).
    pub key_forgeries: u64,
}

impl Config {
    /// The flow-control credit that the peer has at the start: for the connection, and for each
    /// stream.
    pub(crate) fn first_windows(&self) -> [u64; 2] {
        let all = self.initial_window.min(self.receive_window);
        [all.bytes(), self.stream_window.min(all).bytes()]
    }
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
            stream_window: DataSize::from_bytes(4_000_000),
            send_buffer: DataSize::from_bytes(64_000_000),
            stalled: StalledStreams::Wait,
            max_streams: 1024,
            idle_timeout: Duration::from_secs(30),
            keep_alive: Duration::from_secs(10),
            connect_timeout: Duration::from_secs(10),
            key_packets: 1 << 26,
            key_forgeries: 1 << 36,
        }
    }
}

/// How streams are treated whose unread bytes fill the receive window.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum StalledStreams {
    /// They wait. Once they fill the receive window, all streams of the connection wait. This suits
    /// connections whose streams are all read by one application.
    #[default]
    Wait,
    /// When unread streams hold three quarters of the receive window, the one unread for longest is
    /// stopped with [`crate::code::NOT_READ`]. This suits streams of different users, as in a
    /// proxy.
    Stop,
}

/// Which end of the connection this is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Side {
    /// The end that sent the first packet.
    Client,
    /// The end that answered it.
    Server,
}
