//! Middleboxes that change headers: an address translator (NAT), and routers that handle ECN
//! wrongly.

use crate::meddler::Meddler;
use hikyaku_proto::Marking;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

/// How the path between client and server changes headers. Default: not at all.
#[derive(Clone, Copy, Debug, Default)]
pub struct Middlebox {
    /// The client's address changes at regular intervals.
    pub rebinds: Option<Rebinds>,
    /// The handling of ECN-capable packets.
    pub marks: Marks,
}

/// Middleboxes and attackers between the two ends.
#[derive(Default)]
pub(crate) struct OnTheWay {
    pub(crate) middle: Middlebox,
    /// An attacker.
    pub(crate) meddler: Option<Box<dyn Meddler>>,
}

/// How an address translator replaces its mapping.
#[derive(Clone, Copy, Debug)]
pub struct Rebinds {
    /// The interval after which it uses a new mapping. Packets to the old one are dropped.
    pub every: Duration,
    /// Whether the client changes networks and gets a new host address.
    pub host: NewHost,
}

/// Whether a new mapping has another host address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NewHost {
    /// Only the port changes.
    No,
    /// The address changes as well.
    Yes,
}

/// The handling of ECN-capable packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Marks {
    /// They pass unchanged.
    #[default]
    Passed,
    /// They are dropped.
    Dropped,
    /// All are marked.
    All,
}

/// The headers of a datagram as it left the host or the translator, encoded as three bytes before
/// its payload.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Envelope {
    /// The number of the client's mapping.
    pub(crate) mapping: u16,
    /// Whether it is ECN-capable.
    pub(crate) is_capable: bool,
    pub(crate) is_marked: bool,
}

impl Middlebox {
    /// The client's mapping at a time since the start.
    pub(crate) fn mapping(&self, elapsed: Duration) -> u16 {
        let count = |rebinds: Rebinds| elapsed.as_nanos() / rebinds.every.as_nanos().max(1);
        self.rebinds.map_or(0, |rebinds| count(rebinds) as u16)
    }

    /// The client's address with this mapping, as the server sees it.
    pub(crate) fn address(&self, mapping: u16) -> SocketAddr {
        let moves = self.rebinds.is_some_and(|rebinds| rebinds.host == NewHost::Yes);
        let host = if moves { mapping.to_be_bytes() } else { [0, 0] };
        let address = Ipv4Addr::new(10, host[0], host[1], 1);
        SocketAddr::new(IpAddr::V4(address), 5000 + mapping)
    }

    /// The mapping of an address.
    pub(crate) const fn mapping_of(address: SocketAddr) -> u16 {
        address.port().wrapping_sub(5000)
    }

    /// The client's own address at which datagrams for this mapping arrive.
    pub(crate) fn local(&self, mapping: u16) -> Option<IpAddr> {
        let own = self.rebinds.is_some_and(|rebinds| rebinds.host == NewHost::Yes);
        own.then(|| self.address(mapping).ip())
    }

    /// The headers of a datagram sent with `marking`, or `None` if it is dropped.
    pub(crate) fn send(&self, marking: Marking, mapping: u16) -> Option<Envelope> {
        let is_marked = match (marking, self.marks) {
            (Marking::NotEct, _) | (_, Marks::Passed) => false,
            (Marking::Ect0, Marks::Dropped) => return None,
            (Marking::Ect0, Marks::All) => true,
        };
        Some(Envelope { mapping, is_capable: marking == Marking::Ect0, is_marked })
    }
}

impl Envelope {
    const LEN: usize = 3;

    pub(crate) fn wrap(self, payload: &[u8]) -> Vec<u8> {
        let [a, b] = self.mapping.to_le_bytes();
        let flags = u8::from(self.is_capable) | u8::from(self.is_marked) << 1;
        let mut bytes = vec![a, b, flags];
        bytes.extend_from_slice(payload);
        bytes
    }

    /// Whether the wrapped packet is ECN-capable.
    pub(crate) fn is_capable(wrapped: &[u8]) -> bool {
        wrapped.get(2).is_some_and(|flags| flags & 1 != 0)
    }

    /// Removes the headers. Returns `None` if they are corrupted.
    pub(crate) fn unwrap(mut bytes: Vec<u8>) -> Option<(Self, Vec<u8>)> {
        let &[a, b, flags] = bytes.first_chunk::<{ Self::LEN }>()?;
        let mapping = u16::from_le_bytes([a, b]);
        if flags > 3 {
            return None;
        }
        bytes.drain(..Self::LEN);
        let (is_capable, is_marked) = (flags & 1 != 0, flags & 2 != 0);
        Some((Self { mapping, is_capable, is_marked }, bytes))
    }
}
