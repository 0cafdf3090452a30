//! A connection, composed of handshake, loss recovery, received packet numbers, streams, flow
//! control and path-MTU discovery.

mod api;
mod budget;
mod build;
mod closing;
mod data;
mod early;
mod establish;
mod floor;
mod input;
mod moving;
mod outcome;
mod output;
mod over;
mod readers;
mod stats;

pub use output::TimerReason;
pub use stats::{Holdings, Stats, StreamTotals};

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
use crate::streams::{Incoming, Outgoing, Schedule};
use alloc::boxed::Box;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;
use core::net::{IpAddr, SocketAddr};
use core::time::Duration;
use floor::Floors;
use hikyaku_cc::{Controller, ControllerConfig, Pacer};
use hikyaku_units::Instant;
use hikyaku_wire::{CipherId, ConnectionId, Frame, Params, StreamId};

/// Something that the application is informed of.
#[derive(Clone, PartialEq, Debug)]
pub enum Event {
    /// The handshake is complete, so streams can be opened.
    Connected,
    /// The peer opened a stream.
    Opened(StreamId),
    /// The application has taken all bytes of a stream up to its end.
    Ended(StreamId),
    /// The peer has acknowledged all bytes of a stream and its end.
    Delivered(StreamId),
    /// The peer reset its sending half of a stream, with this code.
    Reset(StreamId, u64),
    /// The peer asked this end to stop sending on a stream, with this code.
    Stopped(StreamId, u64),
    /// The connection is closed.
    Closed(CloseReason),
}

/// One connection, without I/O, clocks, or randomness other than from its seed.
///
/// The caller passes input to [`Connection::handle_datagrams`] and [`Connection::handle_timeout`]
/// and makes the application's calls. After any of them it calls [`Connection::poll_transmit`]
/// until that returns `None`, then [`Connection::poll_event`] and [`Connection::poll_delivery`],
/// and waits until the time of [`Connection::poll_timeout`].
pub struct Connection {
    config: Config,
    side: Side,
    state: State,
    peer: PeerAddress,
    /// The address of this host that the peer sends to.
    local: Option<IpAddr>,
    /// Source of the tokens of path challenges.
    tokens: fastrand::Rng,
    local_id: ConnectionId,
    handshake: Option<Handshake>,
    handshake_out: VecDeque<Vec<u8>>,
    transport: Option<Box<Transport>>,
    recovery: Recovery,
    ecn: EcnValidation,
    receipts: Receipts,
    /// Packets that arrived before the keys to open them.
    early: Vec<Datagrams>,
    mtu: MtuSearch,
    pacers: Pacers,
    streams: Streams,
    readers: readers::Readers,
    receive_flow: ReceiveFlow,
    send_flow: SendFlow,
    control: VecDeque<Frame>,
    events: VecDeque<Event>,
    timing: Timing,
    tally: Tally,
    scratch: input::Scratch,
}

/// What exists once both ends have data keys.
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
    /// CLOSE is sent again to a peer that still sends, until the given time.
    Closing {
        until: Instant,
        /// When CLOSE is sent again without a packet from the peer.
        again: Option<Instant>,
        code: u64,
        reason: Vec<u8>,
        to_send: bool,
    },
    Closed,
}

struct Pacers {
    /// The rate of congestion control.
    path: Pacer,
    /// Whether congestion control allowed no data when it was last asked. True at the start.
    no_room: bool,
    /// The user's limit of the rate on the wire.
    wire: Pacer,
    /// The user's limit of the payload rate.
    payload: Pacer,
}

struct Streams {
    outgoing: BTreeMap<StreamId, Outgoing>,
    incoming: BTreeMap<StreamId, Incoming>,
    /// Streams with bytes that may be sent.
    schedule: Schedule,
    /// Streams that have sent new bytes since the caller last asked. A stream may be listed several
    /// times.
    served: Vec<StreamId>,
    /// Bytes written to all streams and not sent.
    unsent: u64,
    next_index: [u32; 2],
    /// The number of streams of each kind that the peer has opened.
    peer_opened: [u32; 2],
    /// The number of those that have ended in any way.
    peer_ended: [u32; 2],
    /// The stream limits that were last announced to the peer.
    peer_limits: [u32; 2],
    peer_allows: [u32; 2],
    /// Streams with something for the application, each listed once.
    readable: VecDeque<StreamId>,
    /// The number of pieces that hold the bytes of incoming streams.
    pieces: usize,
}

struct Timing {
    started: Instant,
    /// The time of the caller's last call.
    now: Instant,
    last_received: Instant,
    last_sent: Instant,
    floors: Floors,
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
    /// Starts connecting to `remote`. The values in `ids` are random and unpredictable.
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
            readers: readers::Readers::new(),
            receive_flow,
            send_flow: SendFlow::default(),
            control: VecDeque::new(),
            events: VecDeque::new(),
            timing: Timing {
                started: now,
                now,
                last_received: now,
                last_sent: now,
                floors: Floors::new(now),
                established: None,
            },
            tally: Tally::default(),
            scratch: input::Scratch::default(),
            config,
        }
    }

    /// The transport parameters that this end announces in the handshake.
    pub fn local_params(config: &Config, local: ConnectionId, original: ConnectionId) -> Params {
        let [max_data, max_stream_data] = config.first_windows();
        Params {
            source_id: local.0,
            original_destination: original.0,
            ciphers: config.ciphers.clone(),
            max_datagram: u64::from(config.max_datagram.max(1200)),
            max_data,
            max_stream_data,
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
    /// The seed of random choices that need not stay secret for ever, such as the skipped packet
    /// numbers.
    pub seed: u64,
}

impl Streams {
    const fn new(max_streams: u32) -> Self {
        Self {
            outgoing: BTreeMap::new(),
            incoming: BTreeMap::new(),
            schedule: Schedule::new(),
            served: Vec::new(),
            unsent: 0,
            next_index: [0; 2],
            peer_opened: [0; 2],
            peer_ended: [0; 2],
            peer_limits: [max_streams; 2],
            peer_allows: [0; 2],
            readable: VecDeque::new(),
            pieces: 0,
        }
    }
}
