//! One connection in the driver: the transport, its streams, and the way to its handles.

use super::lane::{Appetite, Lane, Opener};
use super::news::Logged;
use super::race::RaceId;
use super::sharers::Period;
use super::wakes::Wakes;
use crate::codes::StreamCode;
use crate::command::Key;
use crate::error::{OpenError, WriteError};
use crate::inbox::Item;
use crate::link::{Link, MOST_CRUMBS, StreamLink, kind_index};
use crate::outbox::{Intent, Verdict};
use crate::paths::PathKey;
use crate::reply::Reply;
use hikyaku_crypto::PeerKey;
use hikyaku_proto::{
    CloseReason, Connection, ConnectionId, Event, Stats, StreamId, StreamKind, code,
};
use hikyaku_units::{DataSize, Instant};
use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

/// Maximum number of streams that the peer opened and the application has not accepted. It is far above the credit
/// of a peer that keeps to it.
const MOST_UNACCEPTED: usize = 1024;

/// The reply channel of a request to open a stream.
pub(crate) type OpenReply = Reply<Result<Arc<StreamLink>, OpenError>>;

/// A connection and what belongs to it.
pub(crate) struct Entry {
    pub(crate) key: Key,
    pub(crate) proto: Connection,
    pub(crate) link: Arc<Link>,
    pub(crate) role: Role,
    pub(crate) stage: Stage,
    /// When the transport wants to be called, as the timers have it.
    pub(crate) due: Option<Instant>,
    /// Whether it is in the list of those to be served.
    pub(crate) listed: Listed,
    /// When it was counted last among those that send.
    pub(crate) counted: Option<Period>,
    /// A listener answers from the address that was asked, as long as this host has it.
    pub(crate) from: Option<IpAddr>,
    /// Which key a client has shown.
    pub(crate) shown: Option<PeerKey>,
    /// Under which name the path is to be remembered.
    pub(crate) path: Option<PathKey>,
    /// Datagrams that the host had dropped before this connection.
    pub(crate) drops_before: u64,
    /// The stage before the end.
    pub(crate) stage_before: Stage,
    streams: BTreeMap<StreamId, Lane>,
    /// Streams whose applications have more than the transport took, and those of them it may take more of.
    hungry: usize,
    served: Vec<StreamId>,
    opens: VecDeque<(StreamKind, OpenReply)>,
    room: Room,
    logged: Logged,
}

/// Where the connection came from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Role {
    /// An attempt of this race.
    Client(RaceId),
    /// A stranger's first packet, from this address and to this id.
    Server(SocketAddr, ConnectionId),
}

/// How far the connection is.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Stage {
    /// The handshake is under way.
    Connecting,
    /// The application has a handle.
    Live,
    /// All handles are dropped: the connection ends when all finished streams have been delivered.
    Abandoned,
    /// The connection is closed; the peer may still have to be notified.
    Over,
}

/// Whether an entry is in the list of those to be served.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Listed {
    No,
    Yes,
}

/// A change of the connection as a whole.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Turn {
    /// Changes of its streams only.
    Same,
    /// The handshake is complete.
    Connected,
    /// It is over.
    Closed(CloseReason),
}

/// How much unsent data the transport may hold.
struct Room {
    bytes: u64,
    measured: Instant,
}

const LEAST_ROOM: u64 = 1 << 20;
/// A sender that is still looking for the path's capacity may have any pacing rate.
const MOST_ROOM: u64 = 32 << 20;
const LEAST_SHARE: u64 = 64 << 10;
/// Unsent data lasts this long, so that an application that is scheduled late does not show.
const ROOM_TIME: Duration = Duration::from_millis(20);
const MEASURE_EVERY: Duration = Duration::from_millis(10);

impl Entry {
    pub(crate) fn new(key: Key, proto: Connection, link: Arc<Link>, role: Role) -> Self {
        Self {
            key,
            proto,
            link,
            role,
            stage: Stage::Connecting,
            due: None,
            listed: Listed::No,
            counted: None,
            from: None,
            shown: None,
            path: None,
            drops_before: 0,
            stage_before: Stage::Connecting,
            streams: BTreeMap::new(),
            hungry: 0,
            served: Vec::new(),
            opens: VecDeque::new(),
            room: Room { bytes: LEAST_ROOM, measured: Instant::ZERO },
            logged: Logged::default(),
        }
    }

    /// Moves all data between the transport and the handles. Returns the change of the connection.
    pub(crate) fn pump(&mut self, now: Instant, wakes: &mut Wakes) -> Turn {
        let mut turn = Turn::Same;
        // Streams are opened before their bytes come, and a stream's end is an event that taking
        // its last bytes brings about.
        self.take_events(&mut turn);
        self.take_deliveries(now, wakes, MOST_CRUMBS);
        self.take_events(&mut turn);
        if let Turn::Closed(reason) = &turn {
            // Queued pieces have been joined meanwhile, and no more arrive.
            self.take_deliveries(now, wakes, u64::MAX);
            self.take_events(&mut Turn::Same);
            // The last step, so that complete streams do not report the end of the connection.
            self.end(reason.clone());
            return turn;
        }
        self.try_opens();
        self.feed(now);
        if self.still_delivers() && self.is_settled() {
            self.proto.close(code::DONE, "");
            self.take_events(&mut turn);
            self.end(CloseReason::Local);
        }
        turn
    }

    /// The last handle was dropped.
    pub(crate) fn abandon(&mut self) {
        match self.stage {
            Stage::Connecting => self.proto.close(code::DONE, ""),
            Stage::Live => {
                self.stage = Stage::Abandoned;
                for kind in [StreamKind::Ordered, StreamKind::Object] {
                    while let Some(unaccepted) = self.link.opened[kind_index(kind)].pop() {
                        self.refuse(&unaccepted);
                    }
                }
            }
            Stage::Abandoned | Stage::Over => {}
        }
    }

    /// Whether it goes on without handles, to deliver what was finished.
    pub(crate) fn still_delivers(&self) -> bool {
        self.stage == Stage::Abandoned
    }

    fn take_events(&mut self, turn: &mut Turn) {
        while let Some(event) = self.proto.poll_event() {
            match event {
                Event::Connected => *turn = Turn::Connected,
                Event::Closed(reason) => *turn = Turn::Closed(reason),
                Event::Opened(id) => self.on_opened(id),
                Event::Ended(id) => self.on_lane(id, |lane| lane.end_receiving(Item::End)),
                Event::Reset(id, code::NOT_READ) => self.give_up_receiving(id),
                Event::Reset(id, code) => {
                    self.on_lane(id, |lane| lane.end_receiving(Item::Reset(code)));
                }
                Event::Delivered(id) => self.end_sending(id, Verdict::Delivered),
                Event::Stopped(id, code) => {
                    self.end_sending(
                        id,
                        Verdict::Failed(WriteError::Stopped(StreamCode::new(code))),
                    );
                }
            }
        }
    }

    fn on_opened(&mut self, id: StreamId) {
        // No handle would ever end a stream that arrives after the close.
        if self.stage == Stage::Over {
            return;
        }
        let lane = Lane::new(id, Opener::Peer);
        let stream = lane.link.clone();
        if self.still_delivers() {
            self.streams.insert(id, lane);
            self.refuse(&stream);
            return;
        }
        let waiting = &self.link.opened[kind_index(id.kind())];
        if waiting.len() >= MOST_UNACCEPTED {
            self.proto.close(code::PROTOCOL, "too many streams that nobody accepts");
            return;
        }
        waiting.push(stream);
        self.link.on_opened.wake_all();
        self.streams.insert(id, lane);
    }

    /// A stream that the peer opened gets no handle: it is treated as if its handle had been dropped.
    fn refuse(&mut self, stream: &StreamLink) {
        stream.outbox.set_intent(Intent::Reset(StreamCode::DROPPED.number()));
        stream.inbox.set_stop(StreamCode::DROPPED.number());
        self.serve_stream(stream.id);
    }

    fn give_up_receiving(&mut self, id: StreamId) {
        if let Some(lane) = self.streams.get_mut(&id) {
            lane.give_up_receiving(&self.link, &mut self.proto, code::NOT_READ);
            if lane.is_over() {
                self.streams.remove(&id);
            }
        }
    }

    fn end_sending(&mut self, id: StreamId, verdict: Verdict) {
        let link = self.link.clone();
        self.on_lane(id, |lane| lane.end_sending(&link, verdict));
    }

    fn on_lane(&mut self, id: StreamId, act: impl FnOnce(&mut Lane)) {
        if let Some(lane) = self.streams.get_mut(&id) {
            let before = lane.appetite();
            act(lane);
            count_hungry(&mut self.hungry, before, lane.appetite());
            if lane.is_over() {
                self.streams.remove(&id);
            }
        }
    }

    /// Gives applications what has come, until `most` crumbs wait for them.
    fn take_deliveries(&mut self, now: Instant, wakes: &mut Wakes, most: u64) {
        while self.link.crumbs() < most
            && let Some((id, delivery)) = self.proto.poll_delivery()
        {
            let Some(lane) = self.streams.get_mut(&id) else {
                self.proto.consumed(id, delivery.run.len() as u64);
                continue;
            };
            wakes.add(now, &lane.link, delivery.run.len());
            lane.deliver(&self.link, delivery);
        }
    }

    /// Attends to the streams that called.
    pub(crate) fn attend(&mut self, now: Instant) {
        self.link.attend();
        self.measure_room(now);
        while let Some(stream) = self.link.next_ready() {
            self.serve_stream(stream.id);
        }
    }

    fn serve_stream(&mut self, id: StreamId) {
        self.fill(id);
        let link = self.link.clone();
        let Some(lane) = self.streams.get_mut(&id) else { return };
        lane.credit(&link, &mut self.proto);
        if lane.is_over() {
            self.streams.remove(&id);
        }
    }

    /// Gives the transport more of a stream.
    fn fill(&mut self, id: StreamId) {
        let room = self.room_each();
        let Some(lane) = self.streams.get_mut(&id) else { return };
        let before = lane.appetite();
        lane.fill(&self.link, &mut self.proto, room);
        count_hungry(&mut self.hungry, before, lane.appetite());
        self.link.budget.set_ready(self.proto.all_unsent());
    }

    /// Gives the transport more of the streams that had too much and have sent some of it.
    fn feed(&mut self, now: Instant) {
        let mut served = core::mem::take(&mut self.served);
        self.proto.take_served(&mut served);
        if !served.is_empty() {
            self.link.budget.set_ready(self.proto.all_unsent());
        }
        if self.hungry > 0 {
            self.measure_room(now);
            for &id in &served {
                let is_hungry = |lane: &Lane| lane.appetite() == Appetite::Hungry;
                if self.streams.get(&id).is_some_and(is_hungry) {
                    self.fill(id);
                }
            }
        }
        served.clear();
        self.served = served;
    }

    fn measure_room(&mut self, now: Instant) {
        if now - self.room.measured >= MEASURE_EVERY {
            let rate = self.proto.pacing_rate();
            self.room = Room {
                bytes: rate.in_time(ROOM_TIME).bytes().clamp(LEAST_ROOM, MOST_ROOM),
                measured: now,
            };
            self.logged.update(self.key.slot, &self.proto);
        }
    }

    /// Unsent bytes that the transport may hold of a stream. If it holds as much as it may of all, those get one piece
    /// that have none there.
    fn room_each(&self) -> u64 {
        if self.proto.all_unsent() >= self.link.budget.most() {
            return 1;
        }
        (self.room.bytes / self.hungry.max(1) as u64).max(LEAST_SHARE)
    }

    /// Opens a stream now, or when the peer allows it.
    pub(crate) fn open(&mut self, kind: StreamKind, reply: OpenReply) {
        if self.stage == Stage::Over {
            reply.send(Err(OpenError::Closed(self.link.reason())));
            return;
        }
        self.opens.push_back((kind, reply));
        self.try_opens();
    }

    fn try_opens(&mut self) {
        while let Some((kind, reply)) = self.opens.pop_front() {
            if !reply.is_wanted() {
                continue;
            }
            let Some(id) = self.proto.open(kind) else {
                self.opens.push_front((kind, reply));
                return;
            };
            let lane = Lane::new(id, Opener::Us);
            reply.send(Ok(lane.link.clone()));
            self.streams.insert(id, lane);
        }
    }

    /// A snapshot; the last one if the connection is over.
    pub(crate) fn stats(&self) -> Stats {
        self.link.end().map_or_else(|| self.proto.stats(), |end| end.stats)
    }

    /// All that was finished has arrived, and the news of it as well.
    fn is_settled(&self) -> bool {
        !self.streams.values().any(Lane::is_sending)
            && self.proto.stats().in_flight == DataSize::ZERO
    }

    /// Notifies all handles that the connection is closed.
    pub(crate) fn end(&mut self, reason: CloseReason) {
        if self.stage == Stage::Over {
            return;
        }
        self.stage_before = core::mem::replace(&mut self.stage, Stage::Over);
        // Before the streams are notified: an application whose stream fails requests the reason of the connection.
        self.link.close(reason.clone(), self.proto.stats());
        for lane in self.streams.values_mut() {
            lane.end_receiving(Item::Lost(reason.clone()));
            lane.end_sending(&self.link, Verdict::Failed(WriteError::Closed(reason.clone())));
        }
        self.streams.clear();
        self.hungry = 0;
        for (_, reply) in self.opens.drain(..) {
            reply.send(Err(OpenError::Closed(reason.clone())));
        }
        self.link.announce_end();
    }
}

fn count_hungry(count: &mut usize, before: Appetite, after: Appetite) {
    match (before, after) {
        (Appetite::Sated, Appetite::Hungry) => *count += 1,
        (Appetite::Hungry, Appetite::Sated) => *count -= 1,
        _ => {}
    }
}
