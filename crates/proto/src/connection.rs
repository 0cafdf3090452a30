//! A connection: handshake, recovery, receipts, streams, flow control and path-MTU search, composed.

mod api;
mod build;
mod closing;
mod data;
mod early;
mod input;
mod meeting;
mod moving;
mod outcome;
mod output;
mod stats;

pub use output::TimerReason;
pub use stats::{Stats, StreamTotals};

use crate::address::PeerAddress;
use crate::config::{Config, Side};
use crate::crypto::Session;
use crate::datagrams::{Datagrams, Transmit};
use crate::ecn::EcnValidation;
use crate::error::CloseReason;
use crate::flow::{ReceiveFlow, SendFlow};
use crate::handshake::Handshake;
use crate::keys::DataKeys;
use crate::mtu::MtuSearch;
use crate::receive::Receipts;
use crate::recovery::Recovery;
use crate::streams::{Incoming, Outgoing};
use alloc::boxed::Box;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;
use core::net::{IpAddr, SocketAddr};
use core::time::Duration;
use hikyaku_cc::{Controller, ControllerConfig, Pacer};
use hikyaku_units::Instant;
use hikyaku_wire::{CipherId, ConnectionId, Frame, Params, StreamId};

/// Something the application should know.
#[derive(Clone, PartialEq, Debug)]
pub enum Event {
    /// The handshake is complete: streams may be opened.
    Connected,
    /// The peer opened a stream.
    Opened(StreamId),
    /// A stream has ended and all of it has been taken.
    Ended(StreamId),
    /// All that was written to a stream, and its end, has arrived.
    Delivered(StreamId),
    /// The peer gave up sending, with this code.
    Reset(StreamId, u64),
    /// The peer wants no more of a stream, with this code.
    Stopped(StreamId, u64),
    /// The connection is over.
    Closed(CloseReason),
}

/// One connection, without I/O, clocks or randomness of its own.
///
/// The owner feeds it with [`Connection::handle_datagrams`] and [`Connection::handle_timeout`] and
/// with the application's calls; after any of them it drains [`Connection::poll_transmit`] until
/// `None`, then [`Connection::poll_event`] and [`Connection::poll_delivery`], and sleeps until
/// [`Connection::poll_timeout`].
pub struct Connection {
    config: Config,
    side: Side,
    state: State,
    peer: PeerAddress,
    /// Which of this host's addresses the peer sends to.
    local: Option<IpAddr>,
    /// What a challenge asks.
    tokens: fastrand::Rng,
    local_id: ConnectionId,
    handshake: Option<Handshake>,
    handshake_out: VecDeque<Vec<u8>>,
    transport: Option<Box<Transport>>,
    recovery: Recovery,
    ecn: EcnValidation,
    receipts: Receipts,
    /// Packets that came before the keys to open them.
    early: Vec<Datagrams>,
    mtu: MtuSearch,
    pacers: Pacers,
    streams: Streams,
    receive_flow: ReceiveFlow,
    send_flow: SendFlow,
    control: VecDeque<Frame>,
    events: VecDeque<Event>,
    timing: Timing,
    tally: Tally,
    scratch: input::Scratch,
}

/// What exists once both ends hold data keys.
struct Transport {
    keys: DataKeys,
    cipher: CipherId,
    remote_id: ConnectionId,
    peer: Params,
}

#[derive(Clone, PartialEq, Debug)]
enum State {
    Handshaking,
    Established,
    /// CLOSE is repeated to whoever still talks, until the time given.
    Closing {
        until: Instant,
        /// When to say so again.
        again: Option<Instant>,
        code: u64,
        reason: Vec<u8>,
        to_send: bool,
    },
    Closed,
}

struct Pacers {
    /// The controller's rate.
    path: Pacer,
    /// The controller left no room for data when it was last asked (or never was).
    no_room: bool,
    /// The user's limit on the wire.
    wire: Pacer,
    /// The user's limit on payload.
    payload: Pacer,
}

struct Streams {
    outgoing: BTreeMap<StreamId, Outgoing>,
    incoming: BTreeMap<StreamId, Incoming>,
    /// The stream that was served last, so that all get their turn.
    cursor: StreamId,
    next_index: [u32; 2],
    /// How many streams of each kind the peer has opened.
    peer_opened: [u32; 2],
    /// How many of those are over, however they ended.
    peer_ended: [u32; 2],
    /// The limits that the peer was told last.
    peer_told: [u32; 2],
    peer_allows: [u32; 2],
    readable: VecDeque<StreamId>,
    /// FINs under way, and the packets that carry them.
    fins: Vec<(u64, StreamId)>,
}

struct Timing {
    started: Instant,
    last_received: Instant,
    last_sent: Instant,
    next_floor: Instant,
    established: Option<Instant>,
}

#[derive(Default)]
struct Tally {
    received_payload: u64,
    sent_payload: u64,
    undecryptable: u64,
    moves: u64,
    host_drops: u64,
}

impl Connection {
    /// Begins connecting to `remote`. `ids` and `seed` are random and unpredictable.
    pub fn client(
        now: Instant,
        config: Config,
        session: Box<dyn Session>,
        remote: SocketAddr,
        ids: ClientIds,
    ) -> Self {
        let handshake = Handshake::new(Side::Client, session, ids.local, ids.destination);
        Self::new(now, config, Side::Client, handshake, remote, ids.seed)
    }

    /// Accepts a connection whose first packet was addressed to `ids.destination`.
    pub fn server(
        now: Instant,
        config: Config,
        session: Box<dyn Session>,
        remote: SocketAddr,
        ids: ClientIds,
    ) -> Self {
        let handshake = Handshake::new(Side::Server, session, ids.local, ids.destination);
        Self::new(now, config, Side::Server, handshake, remote, ids.seed)
    }

    fn new(
        now: Instant,
        config: Config,
        side: Side,
        handshake: Handshake,
        remote: SocketAddr,
        seed: u64,
    ) -> Self {
        let mtu = MtuSearch::new(config.max_datagram);
        let controller = Controller::new(ControllerConfig {
            policy: config.policy,
            datagram: u64::from(mtu.current()),
            hint: config.hint,
            target: config.wire_rate.or_else(|| config.payload_rate.map(|rate| rate.scaled(1.1))),
        });
        let receive_flow =
            ReceiveFlow::new(config.initial_window.bytes(), config.receive_window.bytes());
        Self {
            side,
            state: State::Handshaking,
            peer: PeerAddress::new(remote),
            local: None,
            tokens: fastrand::Rng::with_seed(!seed),
            local_id: handshake.local(),
            handshake: Some(handshake),
            handshake_out: VecDeque::new(),
            transport: None,
            recovery: Recovery::new(controller, seed),
            ecn: EcnValidation::default(),
            receipts: Receipts::new(),
            early: Vec::new(),
            mtu,
            pacers: Pacers {
                path: Pacer::new(None),
                no_room: true,
                wire: Pacer::new(config.wire_rate),
                payload: Pacer::new(config.payload_rate),
            },
            streams: Streams::new(config.max_streams),
            receive_flow,
            send_flow: SendFlow::default(),
            control: VecDeque::new(),
            events: VecDeque::new(),
            timing: Timing {
                started: now,
                last_received: now,
                last_sent: now,
                next_floor: now,
                established: None,
            },
            tally: Tally::default(),
            scratch: input::Scratch::default(),
            config,
        }
    }

    /// The parameters this end announces, for the session to carry.
    pub fn local_params(config: &Config, local: ConnectionId, original: ConnectionId) -> Params {
        Params {
            source_id: local.0,
            original_destination: original.0,
            ciphers: config.ciphers.clone(),
            max_datagram: u64::from(config.max_datagram.max(1200)),
            max_data: config.initial_window.bytes().min(config.receive_window.bytes()),
            max_stream_data: config.initial_window.bytes().min(config.receive_window.bytes()),
            max_streams: u64::from(config.max_streams),
            idle_timeout_ms: config.idle_timeout.as_millis() as u64,
        }
    }

    fn idle_timeout(&self) -> Duration {
        let peer = self.transport.as_ref().map(|t| t.peer.idle_timeout_ms).filter(|&ms| ms > 0);
        peer.map_or(self.config.idle_timeout, |ms| {
            self.config.idle_timeout.min(Duration::from_millis(ms))
        })
    }
}

/// The random values of a new connection.
#[derive(Clone, Copy, Debug)]
pub struct ClientIds {
    /// This end's connection id.
    pub local: ConnectionId,
    /// The destination id of the client's first packet.
    pub destination: ConnectionId,
    /// Seeds what need not be secret for ever: which packet numbers are left out.
    pub seed: u64,
}

impl Streams {
    const fn new(max_streams: u32) -> Self {
        Self {
            outgoing: BTreeMap::new(),
            incoming: BTreeMap::new(),
            cursor: StreamId(0),
            next_index: [0; 2],
            peer_opened: [0; 2],
            peer_ended: [0; 2],
            peer_told: [max_streams; 2],
            peer_allows: [0; 2],
            readable: VecDeque::new(),
            fins: Vec::new(),
        }
    }
}
