//! The handshake: TLS bytes in long-header packets, until both ends have data keys.
//!
//! Handshake packets are not acknowledged. An end that waits for an answer sends its flight again.
//! The next flight of the peer proves that the last one arrived.

use crate::config::Side;
use crate::crypto::{KeyChain, KeyPair, Level, Session};
use crate::error::{CloseReason, Violation, code};
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::vec::Vec;
use core::time::Duration;
use hikyaku_units::Instant;
use hikyaku_wire::{
    CipherId, ConnectionId, Frame, LongHeader, LongType, MIN_INITIAL_LEN, Params, Reader, TAG_LEN,
    Version,
};

// spec: hs-6
/// A client's first retransmission timeout, which doubles each time. A flight is two packets: at a
/// round-trip time of 500 ms about 15 kB are sent unnecessarily, at 1 ms a lost packet costs 4 ms.
const CLIENT_RESEND_FIRST: Duration = Duration::from_millis(4);
/// A server retransmits when the client does. This timeout is for a client that does not.
const SERVER_RESEND_FIRST: Duration = Duration::from_millis(50);
const RESEND_INTERVAL_MAX: Duration = Duration::from_secs(2);
/// Minimum time between two retransmissions, however short the round-trip time is.
const RESEND_INTERVAL_MIN: Duration = Duration::from_micros(500);
/// Maximum handshake bytes held out of order.
const BYTES_AHEAD_MAX: u64 = 65_536;
/// Maximum pieces held out of order. A flight is only a few packets.
const PIECES_AHEAD_MAX: usize = 256;
/// Maximum bytes of a Retry token that a client accepts. This project's tokens are much shorter,
/// and a longer one would leave no room for the TLS bytes.
const TOKEN_BYTES_MAX: usize = 256;
/// A server sends an unvalidated address at most this many times the bytes received from it (RFC
/// 9000, section 8.1).
// spec: hs-3
pub(crate) const AMPLIFICATION: u64 = 3;

/// The handshake of one connection.
pub(crate) struct Handshake {
    side: Side,
    session: Box<dyn Session>,
    levels: [LevelState; 2],
    initial_destination: ConnectionId,
    local: ConnectionId,
    remote: Option<ConnectionId>,
    token: Vec<u8>,
    resend_at: Option<Instant>,
    resend_after: Duration,
    to_send: bool,
    /// Whether the flight to send has not been sent before.
    is_new: bool,
    flight_sent: Option<Instant>,
    first_sent: Option<Instant>,
    /// The time from the first flight to the first answer: the round-trip time, or more if a flight
    /// was retransmitted.
    first_answer: Option<Duration>,
    /// The time from the last flight before that answer: the round-trip time, or less.
    least_answer: Option<Duration>,
    next_pn: u32,
    received: u64,
    sent: u64,
    validated: bool,
    peer_params: Option<Params>,
}

/// The origin of a long-header packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Origin {
    /// Unknown: the packet was not authentic.
    Unknown,
    /// Anyone who has seen the first packet: the peer, or an attacker who repeats its packets.
    Observer,
    /// The peer.
    Peer,
}

/// Whether a flight is a retransmission.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Flight {
    New,
    Again,
}

#[derive(Default)]
struct LevelState {
    keys: Option<KeyPair>,
    outgoing: Vec<u8>,
    ahead: BTreeMap<u64, Vec<u8>>,
    read: u64,
    done: bool,
}

impl Handshake {
    pub(crate) fn new(
        side: Side,
        session: Box<dyn Session>,
        local: ConnectionId,
        initial_destination: ConnectionId,
    ) -> Self {
        let mut levels = [LevelState::default(), LevelState::default()];
        levels[0].keys = Some(session.initial_keys(initial_destination));
        let mut handshake = Self {
            side,
            session,
            levels,
            initial_destination,
            local,
            remote: None,
            token: Vec::new(),
            resend_at: None,
            resend_after: match side {
                Side::Client => CLIENT_RESEND_FIRST,
                Side::Server => SERVER_RESEND_FIRST,
            },
            to_send: false,
            is_new: false,
            flight_sent: None,
            first_sent: None,
            first_answer: None,
            least_answer: None,
            next_pn: 0,
            received: 0,
            sent: 0,
            validated: side == Side::Client,
            peer_params: None,
        };
        if side == Side::Client {
            handshake.pull();
        }
        handshake
    }

    /// Collects the bytes that TLS wants to send.
    fn pull(&mut self) {
        loop {
            let level = if self.levels[1].keys.is_some() { 1 } else { 0 };
            let before = self.levels[level].outgoing.len();
            let change = self.session.write(&mut self.levels[level].outgoing);
            let grown = self.levels[level].outgoing.len() > before;
            self.to_send |= grown;
            self.is_new |= grown;
            match change {
                Some(keys) => self.levels[1].keys = Some(keys),
                None if !grown => return,
                None => {}
            }
        }
    }

    /// Handles one long-header packet. Packets that are not authentic are ignored.
    pub(crate) fn handle(&mut self, now: Instant, datagram: &[u8]) -> Result<Origin, CloseReason> {
        self.received += datagram.len() as u64;
        let Ok((header, header_len)) = LongHeader::decode(datagram) else {
            return Ok(Origin::Unknown);
        };
        let level = match header.kind {
            LongType::Initial => Level::Initial,
            LongType::Handshake => Level::Handshake,
            LongType::Retry => return self.on_retry(&header),
            LongType::VersionNegotiation => {
                return self.on_versions(&header, &datagram[header_len..]);
            }
        };
        let Some(keys) = &self.levels[level.index()].keys else { return Ok(Origin::Unknown) };
        let (aad, sealed) = datagram.split_at(header_len);
        let mut opened = sealed.to_vec();
        let Some(len) = keys.open.open(u64::from(header.packet_number), aad, &mut opened) else {
            return Ok(Origin::Unknown);
        };
        if *self.remote.get_or_insert(header.source) != header.source {
            return Ok(Origin::Unknown);
        }
        // Anyone who sees the first packet can compute the Initial keys. Once the handshake keys
        // exist, a packet under the Initial keys no longer counts as the peer's.
        // spec: hs-8
        let is_weak = level == Level::Initial && self.levels[1].keys.is_some();
        self.validated |= level == Level::Handshake;
        // A retransmission of the client's first flight does not answer the server's.
        if self.side == Side::Client || level == Level::Handshake {
            self.note_answer(now);
        }
        let read = self.read_frames(now, level, &opened[..len]);
        if is_weak { Ok(Origin::Observer) } else { read.map(|()| Origin::Peer) }
    }

    /// Measures the round-trip time by the first answer. If the client has received only a part of
    /// the server's flight, the rest is either about to arrive or lost, so the client retransmits
    /// soon.
    fn note_answer(&mut self, now: Instant) {
        let (Some(first), Some(last)) = (self.first_sent, self.flight_sent) else { return };
        if self.first_answer.is_some() {
            return;
        }
        let took = now - first;
        self.first_answer = Some(took);
        self.least_answer = Some(now - last);
        if self.side == Side::Client {
            let soon = now + (took / 4).max(RESEND_INTERVAL_MIN);
            self.resend_at = self.resend_at.map(|at| at.min(soon));
            self.resend_after = (took * 5 / 8).clamp(RESEND_INTERVAL_MIN, RESEND_INTERVAL_MAX);
        }
    }

    // fuzz: handshake
    fn read_frames(&mut self, now: Instant, level: Level, bytes: &[u8]) -> Result<(), CloseReason> {
        let mut reader = Reader::new(bytes);
        let mut repeated = false;
        loop {
            match Frame::decode(&mut reader) {
                Ok(None) => break,
                Ok(Some(Frame::Padding(_) | Frame::Ping)) => {}
                Ok(Some(Frame::Crypto { offset, data })) => {
                    repeated |= !self.read_crypto(level, offset, data)?;
                }
                Ok(Some(Frame::Close { code, reason })) => {
                    return Err(CloseReason::of_peer(code, &reason));
                }
                Ok(Some(_)) | Err(_) => {
                    return Err(CloseReason::Violation("a handshake packet is malformed".into()));
                }
            }
        }
        self.pull();
        // A client that has sent its last flight need not retransmit its first one.
        if self.side == Side::Client && !self.levels[1].outgoing.is_empty() {
            self.levels[0].done = true;
        }
        // The peer retransmits, so it has not received this end's flight.
        if repeated && self.flight_sent.is_some_and(|at| now - at > CLIENT_RESEND_FIRST / 2) {
            self.to_send |= self.has_flight();
        }
        Ok(())
    }

    /// Handles handshake bytes. Returns false if all of them were known.
    fn read_crypto(
        &mut self,
        level: Level,
        offset: u64,
        data: Vec<u8>,
    ) -> Result<bool, CloseReason> {
        // Later bytes under the Initial keys can only be a retransmission or a forgery, because TLS
        // switched to the handshake keys. They are not passed to TLS.
        if level == Level::Initial && self.levels[1].keys.is_some() {
            return Ok(false);
        }
        let state = &mut self.levels[level.index()];
        let end = offset + data.len() as u64;
        if end > state.read + BYTES_AHEAD_MAX {
            return Err(CloseReason::Violation("too many handshake bytes".into()));
        }
        let held: usize = state.ahead.values().map(Vec::len).sum();
        let is_too_much =
            held + data.len() > BYTES_AHEAD_MAX as usize || state.ahead.len() >= PIECES_AHEAD_MAX;
        // The peer retransmits bytes that are dropped here.
        if end <= state.read || (offset > state.read && is_too_much) {
            return Ok(false);
        }
        state.ahead.insert(offset, data);
        while let Some(entry) = state.ahead.first_entry() {
            if *entry.key() > state.read {
                break;
            }
            let (offset, data) = entry.remove_entry();
            let known = (state.read - offset) as usize;
            if known < data.len() {
                state.read = offset + data.len() as u64;
                self.session
                    .read(&data[known..])
                    .map_err(|error| CloseReason::Handshake(error.0))?;
            }
        }
        if self.peer_params.is_none()
            && let Some(bytes) = self.session.peer_params()
        {
            let params = Params::decode(&bytes).map_err(|error| {
                CloseReason::Handshake(format!("transport parameters: {error}"))
            })?;
            self.peer_params = Some(params);
        }
        Ok(true)
    }

    /// Whether an unprotected packet is the first answer to the client's first packet, whose ids
    /// only a host that has seen that packet knows. None is accepted once TLS bytes have arrived.
    // spec: hs-2
    fn is_first_answer(&self, header: &LongHeader) -> bool {
        self.side == Side::Client
            && self.levels[0].read == 0
            && header.destination == self.local
            && header.source == self.initial_destination
    }

    // spec: hs-4
    fn on_retry(&mut self, header: &LongHeader) -> Result<Origin, CloseReason> {
        let fresh = self.is_first_answer(header)
            && self.token.is_empty()
            && (1..=TOKEN_BYTES_MAX).contains(&header.token.len());
        if fresh {
            self.token.clone_from(&header.token);
            self.to_send = true;
        }
        Ok(Origin::Unknown)
    }

    // spec: hs-2
    fn on_versions(&self, header: &LongHeader, list: &[u8]) -> Result<Origin, CloseReason> {
        let versions: Vec<Version> = list
            .chunks_exact(4)
            .map(|c| Version(u32::from_le_bytes([c[0], c[1], c[2], c[3]])))
            .collect();
        if self.is_first_answer(header)
            && !versions.is_empty()
            && !versions.contains(&Version::CURRENT)
        {
            return Err(CloseReason::Version(versions));
        }
        Ok(Origin::Unknown)
    }

    /// Builds the flight that is due.
    pub(crate) fn poll(&mut self, now: Instant, out: &mut Vec<Vec<u8>>) -> Option<Flight> {
        let due = self.resend_at.is_some_and(|at| at <= now) && self.has_flight();
        if !(self.to_send || due) {
            return None;
        }
        let flight = if self.is_new { Flight::New } else { Flight::Again };
        if due && !self.to_send {
            self.resend_after = (self.resend_after * 2).min(RESEND_INTERVAL_MAX);
        }
        // The client's last flight is one small packet, and the server cannot read any data without
        // it. So the client retransmits it before an answer could arrive.
        if self.is_new
            && self.side == Side::Client
            && let Some(took) = self.first_answer
        {
            self.resend_after = (took / 8).clamp(RESEND_INTERVAL_MIN, RESEND_INTERVAL_MAX);
        }
        self.to_send = false;
        self.is_new = false;
        self.resend_at = Some(now + self.resend_after);
        self.flight_sent = Some(now);
        self.first_sent.get_or_insert(now);
        for level in [Level::Initial, Level::Handshake] {
            self.build_level(level, out);
        }
        Some(flight)
    }

    fn build_level(&mut self, level: Level, out: &mut Vec<Vec<u8>>) {
        let state = &self.levels[level.index()];
        if state.done || state.keys.is_none() {
            return;
        }
        let mut at = 0;
        while at < self.levels[level.index()].outgoing.len() {
            let room = MIN_INITIAL_LEN - hikyaku_wire::LONG_HEADER_LEN - self.token.len() - 40;
            let state = &self.levels[level.index()];
            let end = (at + room).min(state.outgoing.len());
            let frame = Frame::Crypto { offset: at as u64, data: state.outgoing[at..end].to_vec() };
            at = end;
            if !self.may_send() {
                return;
            }
            let datagram = self.seal(level, &frame);
            self.sent += datagram.len() as u64;
            out.push(datagram);
        }
    }

    fn seal(&mut self, level: Level, frame: &Frame) -> Vec<u8> {
        let header = LongHeader {
            kind: match level {
                Level::Initial => LongType::Initial,
                Level::Handshake => LongType::Handshake,
            },
            version: Version::CURRENT,
            destination: self.remote.unwrap_or(self.initial_destination),
            source: self.local,
            packet_number: self.next_pn,
            token: if level == Level::Initial { self.token.clone() } else { Vec::new() },
        };
        self.next_pn += 1;
        let mut datagram = Vec::new();
        header.encode(&mut datagram);
        let header_len = datagram.len();
        frame.encode(&mut datagram);
        if level == Level::Initial {
            // spec: hs-1
            let padding = (MIN_INITIAL_LEN - TAG_LEN).saturating_sub(datagram.len());
            Frame::Padding(padding).encode(&mut datagram);
        }
        datagram.resize(datagram.len() + TAG_LEN, 0);
        let (aad, body) = datagram.split_at_mut(header_len);
        if let Some(keys) = &self.levels[level.index()].keys {
            keys.seal.seal(u64::from(header.packet_number), aad, body);
        }
        datagram
    }

    /// Builds a packet that tells the peer why this end closes the connection, under the best keys
    /// available. Returns `None` if the amplification limit allows no more bytes to the peer's
    /// address.
    pub(crate) fn close_packet(&mut self, code: u64, reason: &str) -> Option<Vec<u8>> {
        if !self.may_send() {
            return None;
        }
        let level = if self.levels[1].keys.is_some() { Level::Handshake } else { Level::Initial };
        let packet = self.seal(level, &Frame::Close { code, reason: reason.as_bytes().to_vec() });
        self.sent += packet.len() as u64;
        Some(packet)
    }

    /// Whether the amplification limit allows one more packet to the peer's address.
    fn may_send(&self) -> bool {
        let limit = if self.validated { u64::MAX } else { AMPLIFICATION * self.received };
        self.sent + MIN_INITIAL_LEN as u64 <= limit
    }

    fn has_flight(&self) -> bool {
        self.levels.iter().any(|state| !state.done && !state.outgoing.is_empty())
    }

    pub(crate) fn next_timeout(&self) -> Option<Instant> {
        if self.to_send {
            return Some(Instant::ZERO);
        }
        self.resend_at.filter(|_| self.has_flight())
    }

    pub(crate) fn is_complete(&self) -> bool {
        self.session.is_complete()
    }

    /// The round-trip time measured by the flights, as (minimum, maximum). After a retransmission
    /// it is ambiguous which flight was answered.
    pub(crate) fn rtt(&self) -> Option<(Duration, Duration)> {
        self.least_answer.zip(self.first_answer)
    }

    pub(crate) const fn remote(&self) -> Option<ConnectionId> {
        self.remote
    }

    pub(crate) const fn local(&self) -> ConnectionId {
        self.local
    }

    pub(crate) const fn initial_destination(&self) -> ConnectionId {
        self.initial_destination
    }

    /// Sets the token of the first packets, which otherwise comes from a Retry.
    pub(crate) fn set_token(&mut self, token: Vec<u8>) {
        self.token = token;
    }

    /// Records that a Retry token validated the client's address.
    pub(crate) const fn set_validated(&mut self) {
        self.validated = true;
    }

    /// Checks the peer's transport parameters against the packets that carried them, and chooses
    /// the cipher.
    // spec: hs-5
    pub(crate) fn settle(
        &mut self,
        ours: &[CipherId],
    ) -> Result<(Params, CipherId, Box<dyn KeyChain>), Violation> {
        let params = self
            .peer_params
            .clone()
            .ok_or_else(|| Violation::protocol("the peer sent no transport parameters"))?;
        if self.remote != Some(ConnectionId(params.source_id)) {
            return Err(Violation::protocol("the peer's connection id was changed on the way"));
        }
        let bound = params.original_destination == self.initial_destination.0;
        if self.side == Side::Client && !bound {
            return Err(Violation::protocol("the answer belongs to another connection"));
        }
        // Both ends must choose the same cipher: the first of the client's list that the server
        // supports.
        let (first, second) = match self.side {
            Side::Client => (ours, params.ciphers.as_slice()),
            Side::Server => (params.ciphers.as_slice(), ours),
        };
        let cipher = first.iter().copied().find(|c| second.contains(c)).ok_or_else(|| {
            Violation { code: code::NO_CIPHER, text: "no cipher in common".into() }
        })?;
        let chain = self.session.data_keys(cipher).ok_or_else(|| Violation {
            code: code::CRYPTO,
            text: "the data cipher is not available".into(),
        })?;
        Ok((params, cipher, chain))
    }
}
