//! Two ends without a link between them: a test delivers, drops or changes each datagram.

use crate::session::SimSession;
use hikyaku_proto::{
    ClientIds, Config, Connection, ConnectionId, Datagrams, Event, KeyPair, Session, Side,
};
use hikyaku_units::Instant;
use hikyaku_wire::{
    Frame, KeyPhase, PacketKind, Params, SHORT_HEADER_LEN, ShortHeader, TAG_LEN, Trailer,
};
use std::net::SocketAddr;
use std::time::Duration;

/// A client, a server, and their common clock.
pub struct Duo {
    /// The present time.
    pub now: Instant,
    ends: [Connection; 2],
}

/// The destination id of the client's first packet.
pub const FIRST: ConnectionId = ConnectionId(7);

impl Duo {
    /// Two ends before the handshake.
    pub fn apart(client: &Config, server: &Config) -> Self {
        Self::over(client, server, |side, params| {
            Box::new(SimSession::new(side, params.encode())) as Box<dyn Session>
        })
    }

    /// The same with sessions of the test's choice, which are given their side and its transport
    /// parameters.
    pub fn over(
        client: &Config,
        server: &Config,
        mut session: impl FnMut(Side, Params) -> Box<dyn Session>,
    ) -> Self {
        let now = Instant::from_millis(1000);
        let ends = [(Side::Client, client), (Side::Server, server)].map(|(side, config)| {
            let ids = ClientIds { local: id(side), destination: FIRST, seed: 5 };
            let params = Connection::local_params(config, ids.local, FIRST);
            let session = session(side, params);
            let begin = match side {
                Side::Client => Connection::client,
                Side::Server => Connection::server,
            };
            begin(now, config.clone(), session, address(other(side)), ids)
        });
        Self { now, ends }
    }

    /// Two ends with these settings after the handshake, with nothing more to send, over a path of
    /// the one-way delay `half`.
    pub fn met(client: &Config, server: &Config, half: Duration) -> Self {
        let mut duo = Self::apart(client, server);
        duo.meet(half);
        duo
    }

    /// Completes the handshake and lets both ends send all they have to send.
    pub fn meet(&mut self, half: Duration) {
        (0..40).for_each(|_| self.exchange(half));
        assert!(!self.ends[0].is_handshaking() && !self.ends[1].is_handshaking());
    }

    /// The end `side`.
    pub fn end(&mut self, side: Side) -> &mut Connection {
        &mut self.ends[index(side)]
    }

    /// The packets that `from` sends now.
    pub fn take(&mut self, from: Side) -> Vec<Vec<u8>> {
        self.take_addressed(from).into_iter().map(|(_, packet)| packet).collect()
    }

    /// The packets that `from` sends now, with their destinations.
    pub fn take_addressed(&mut self, from: Side) -> Vec<(SocketAddr, Vec<u8>)> {
        let now = self.now;
        let end = self.end(from);
        if end.poll_timeout().is_some_and(|(due, _)| due <= now) {
            end.handle_timeout(now);
        }
        let (mut packets, mut out) = (Vec::new(), Vec::new());
        while let Some(transmit) = end.poll_transmit(now, &mut out) {
            let segments = out[..transmit.len].chunks(transmit.segment);
            packets.extend(segments.map(|segment| (transmit.destination, segment.to_vec())));
        }
        packets
    }

    /// Delivers packets to `to`.
    pub fn give(&mut self, to: Side, packets: impl IntoIterator<Item = Vec<u8>>) {
        for bytes in packets {
            let stride = bytes.len();
            self.give_many(to, bytes, stride, Mark::None);
        }
    }

    /// Delivers packets of `stride` bytes in one buffer, which a router may have marked.
    pub fn give_many(&mut self, to: Side, bytes: Vec<u8>, stride: usize, mark: Mark) {
        self.give_from(address(other(to)), to, (bytes, stride), mark);
    }

    /// The same, from a source address of the test's choice.
    pub fn give_from(
        &mut self,
        source: SocketAddr,
        to: Side,
        (bytes, stride): (Vec<u8>, usize),
        mark: Mark,
    ) {
        let now = self.now;
        let one = Datagrams::one(source, now, bytes);
        let congestion_experienced = mark == Mark::Congestion;
        let batch = Datagrams { stride, congestion_experienced, ..one };
        self.end(to).handle_datagrams(now, batch);
    }

    /// Delivers everything that both ends send, once in each direction.
    pub fn exchange(&mut self, half: Duration) {
        for from in [Side::Client, Side::Server] {
            let packets = self.take(from);
            self.now += half;
            self.give(other(from), packets);
        }
    }

    /// The earliest timeout of the two ends.
    pub fn next_timeout(&self) -> Option<Instant> {
        self.ends.iter().filter_map(|end| end.poll_timeout()).map(|(due, _)| due).min()
    }

    /// The events of `side`.
    pub fn events(&mut self, side: Side) -> Vec<Event> {
        let end = self.end(side);
        std::iter::from_fn(|| end.poll_event()).collect()
    }
}

/// Whether a router marked a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mark {
    /// Not marked.
    None,
    /// Marked with congestion experienced (CE).
    Congestion,
}

/// The content of a packet of a malicious peer that has the data keys.
#[derive(Clone, PartialEq, Debug)]
pub enum Words {
    /// Frames, or arbitrary bytes in their place.
    Control(Vec<u8>),
    /// Payload of a stream at an offset.
    Data(Trailer, Vec<u8>),
}

impl Words {
    /// These frames.
    pub fn frames(frames: &[Frame]) -> Self {
        let mut bytes = Vec::new();
        frames.iter().for_each(|frame| frame.encode(&mut bytes));
        Self::Control(bytes)
    }

    /// A packet with this content from `from`, sealed with its keys of `generation` (0 is the
    /// first).
    pub fn packet(&self, from: Side, packet_number: u64, generation: u64) -> Vec<u8> {
        let kind = match self {
            Self::Control(_) => PacketKind::Control,
            Self::Data(..) => PacketKind::Data,
        };
        let phase = if generation.is_multiple_of(2) { KeyPhase::Even } else { KeyPhase::Odd };
        let destination = id(other(from));
        let header = ShortHeader { kind, phase, ack_now: true, packet_number, destination };
        let mut packet = header.encode().to_vec();
        match self {
            Self::Control(bytes) => packet.extend_from_slice(bytes),
            Self::Data(trailer, payload) => {
                packet.extend_from_slice(payload);
                packet.extend_from_slice(&trailer.encode());
            }
        }
        packet.resize(packet.len() + TAG_LEN, 0);
        let (head, body) = packet.split_at_mut(SHORT_HEADER_LEN);
        keys(from, generation).seal.seal(packet_number, head, body);
        packet
    }
}

/// Decrypts a packet under data keys. The keys of the simulator are public.
pub fn overhear(packet: &[u8]) -> Option<Overheard> {
    let header = ShortHeader::decode(packet).ok().filter(|_| !hikyaku_wire::is_long(packet))?;
    let opened = packet.get(SHORT_HEADER_LEN..packet.len().checked_sub(TAG_LEN)?)?;
    if header.kind == PacketKind::Data {
        let (payload, trailer) = Trailer::split(opened).ok()?;
        return Some(Overheard::Data { trailer, len: payload.len() as u64 });
    }
    let mut reader = hikyaku_wire::Reader::new(opened);
    let frames = std::iter::from_fn(|| Frame::decode(&mut reader).ok().flatten());
    Some(Overheard::Control(frames.collect()))
}

/// The content of a packet.
#[derive(Clone, PartialEq, Debug)]
pub enum Overheard {
    /// Frames of a control packet.
    Control(Vec<Frame>),
    /// Stream data.
    Data {
        /// Its stream and offset.
        trailer: Trailer,
        /// Its length in bytes.
        len: u64,
    },
}

fn keys(side: Side, generation: u64) -> KeyPair {
    SimSession::data_pair(side, generation)
}

/// The opposite end.
pub const fn other(side: Side) -> Side {
    match side {
        Side::Client => Side::Server,
        Side::Server => Side::Client,
    }
}

/// The connection id in packets for this end.
pub const fn id(side: Side) -> ConnectionId {
    ConnectionId(index(side) as u64 + 1)
}

pub(crate) const fn index(side: Side) -> usize {
    match side {
        Side::Client => 0,
        Side::Server => 1,
    }
}

/// The address of this end.
pub fn address(side: Side) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, 1 + index(side) as u8], 5000))
}
