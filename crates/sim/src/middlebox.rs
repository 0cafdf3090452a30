//! What stands on the way and touches headers: an address translator, a router that takes marks ill.

use crate::meddler::Meddler;
use hikyaku_proto::Marking;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

/// What the way between client and server does to headers. By default nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Middlebox {
    /// The client is seen at another address after each such time.
    pub rebinds: Option<Rebinds>,
    /// What becomes of packets that understand congestion marks.
    pub marks: Marks,
}

/// Others than the two ends.
#[derive(Default)]
pub(crate) struct OnTheWay {
    pub(crate) middle: Middlebox,
    /// Who has a hand in what is on the way.
    pub(crate) meddler: Option<Box<dyn Meddler>>,
}

/// How a translator forgets.
#[derive(Clone, Copy, Debug)]
pub struct Rebinds {
    /// After this long it takes a new mapping; what comes for the old one is dropped.
    pub every: Duration,
    /// Whether the client itself gets a new address: it is on another network.
    pub host: NewHost,
}

/// Whether a new mapping is of another address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NewHost {
    /// Only the port changes.
    No,
    /// The address as well.
    Yes,
}

/// What becomes of packets that say that they understand congestion marks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Marks {
    /// They pass as they are.
    #[default]
    Passed,
    /// They are dropped.
    Dropped,
    /// They are all marked.
    All,
}

/// The headers of a datagram, as it left the host or the translator: three bytes before its payload.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Envelope {
    /// The client's mapping.
    pub(crate) mapping: u16,
    /// Its sender understands marks of congestion.
    pub(crate) is_capable: bool,
    pub(crate) is_marked: bool,
}

impl Middlebox {
    /// The client's mapping at a time since the begin.
    pub(crate) fn mapping(&self, elapsed: Duration) -> u16 {
        let count = |rebinds: Rebinds| elapsed.as_nanos() / rebinds.every.as_nanos().max(1);
        self.rebinds.map_or(0, |rebinds| count(rebinds) as u16)
    }

    /// Where the server sees the client with this mapping.
    pub(crate) fn address(&self, mapping: u16) -> SocketAddr {
        let moves = self.rebinds.is_some_and(|rebinds| rebinds.host == NewHost::Yes);
        let host = if moves { mapping.to_be_bytes() } else { [0, 0] };
        let address = Ipv4Addr::new(10, host[0], host[1], 1);
        SocketAddr::new(IpAddr::V4(address), 5000 + mapping)
    }

    /// The mapping that an address stands for.
    pub(crate) const fn mapping_of(address: SocketAddr) -> u16 {
        address.port().wrapping_sub(5000)
    }

    /// Of the client's own addresses the one that datagrams for this mapping come to.
    pub(crate) fn local(&self, mapping: u16) -> Option<IpAddr> {
        let own = self.rebinds.is_some_and(|rebinds| rebinds.host == NewHost::Yes);
        own.then(|| self.address(mapping).ip())
    }

    /// What comes of a datagram sent with `marking`: dropped, or in an envelope.
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

    /// Whether the sender of what was wrapped understands marks.
    pub(crate) fn is_capable(wrapped: &[u8]) -> bool {
        wrapped.get(2).is_some_and(|flags| flags & 1 != 0)
    }

    /// Takes the headers off; a damaged one leads nowhere.
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
