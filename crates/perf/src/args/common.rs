//! Settings that client and server have in common: addresses, windows and output.

use super::values::Local;
use super::{Format, Transport};
use hikyaku_net::{Config, EndpointConfig, NoPolicy, Policy};
use hikyaku_reach::Family;
use hikyaku_units::{DataSize, Rate};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

/// Settings that client and server have in common.
#[derive(Clone, Debug)]
pub(crate) struct Common {
    pub(crate) port: u16,
    pub(crate) bind: Option<Local>,
    pub(crate) family: Option<Family>,
    pub(crate) transport: Config,
    pub(crate) endpoint: EndpointConfig,
    pub(crate) cpu: Option<usize>,
    pub(crate) format: Format,
    pub(crate) logfile: Option<PathBuf>,
    pub(crate) title: String,
}

/// One connection's receive window may take this fraction (1/n) of a server's memory.
const WINDOW_MEMORY_DIVISOR: u64 = 4;
/// A new connection's initial receive window may take this fraction (1/n) of a server's memory.
const INITIAL_WINDOW_MEMORY_DIVISOR: u64 = 32;
/// With `--max-rate`, the receive window covers this time at that rate: a long round trip plus the
/// pauses by which the server's reader keeps to the rate.
const RATE_LIMITED_WINDOW: Duration = Duration::from_millis(500);
/// Smallest receive window that `--max-rate` leads to.
const RATE_LIMITED_WINDOW_MIN: DataSize = DataSize::from_bytes(1 << 20);

impl Common {
    /// Addresses to try to bind to, in order of preference.
    pub(crate) fn addresses(&self, port: u16) -> Vec<SocketAddr> {
        let v4 = SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), port);
        let v6 = SocketAddr::new(Ipv6Addr::UNSPECIFIED.into(), port);
        match (&self.bind, self.family) {
            (Some(Local { address: Some(address), .. }), _) => {
                vec![SocketAddr::new(*address, port)]
            }
            (_, Some(Family::V4)) => vec![v4],
            (_, Some(Family::V6)) => vec![v6],
            // IPv6 first, which also accepts IPv4. A machine without IPv6 has no such socket.
            (_, None) => vec![v6, v4],
        }
    }

    /// Those of a client whose user has chosen nothing, and who prints nothing.
    pub(crate) fn usual() -> Self {
        let transport = Transport::usual().config();
        Self { transport, ..Self::of_policy(Policy::Fair) }
    }

    /// Those of a server that ssh has started for one client, which has set this policy for both ends.
    pub(crate) fn of_far_side(policy: Option<&str>) -> Result<Self, NoPolicy> {
        policy.map_or(Ok(Policy::Fair), str::parse).map(Self::of_policy)
    }

    fn of_policy(policy: Policy) -> Self {
        Self {
            port: 0,
            bind: None,
            family: None,
            transport: Config { policy, ..Config::default() },
            endpoint: EndpointConfig::default(),
            cpu: None,
            format: Format::Text,
            logfile: None,
            title: String::new(),
        }
    }

    /// Limits the receive window to what a reader that keeps to `rate` needs.
    pub(super) fn limit_window_to_rate(&mut self, rate: Rate) {
        let window = rate
            .in_time(RATE_LIMITED_WINDOW)
            .max(RATE_LIMITED_WINDOW_MIN)
            .min(self.transport.receive_window);
        self.transport.receive_window = window;
        self.transport.initial_window = self.transport.initial_window.min(window);
    }

    /// Limits the receive window of one connection to its fraction of `memory`.
    pub(crate) fn limit_windows_to_memory(&mut self, memory: DataSize) {
        let part = |n: u64| DataSize::from_bytes(memory.bytes() / n);
        let transport = &mut self.transport;
        transport.receive_window = transport.receive_window.min(part(WINDOW_MEMORY_DIVISOR));
        transport.initial_window =
            transport.initial_window.min(part(INITIAL_WINDOW_MEMORY_DIVISOR));
    }

    /// The largest rate at which this end sends on the wire: its cap, or its fixed rate.
    pub(crate) fn wire_target(&self) -> Option<Rate> {
        let fixed = match self.transport.policy {
            Policy::Fixed(rate) => Some(rate),
            Policy::Fair | Policy::Scavenger => None,
        };
        [self.transport.wire_rate, fixed].into_iter().flatten().min()
    }

    /// The local address given by `-B`.
    pub(crate) fn local(&self) -> Option<IpAddr> {
        self.bind.as_ref().and_then(|local| local.address)
    }

    /// Whether `-B` names an interface.
    pub(crate) fn has_device(&self) -> bool {
        self.bind.as_ref().is_some_and(|local| local.device.is_some())
    }

    pub(crate) fn policy(&self) -> String {
        self.transport.policy.to_string()
    }
}
