//! The pipes of a connection: the unconfirmed frames of each, and the choice of the pipe for a frame.
//!
//! Each end counts the frames that arrive on each pipe, and sends the counts to the peer. If a pipe is lost or stuck, the
//! frames that were not confirmed go over the others; their receiver drops what it has already ([`OnLoss::Repair`]).
//! Frames of a pipe that is much slower than the others are also sent again over a pipe that is idle. So the slowest
//! pipe neither delays the end of a transfer nor the messages between the bulk.
//!
//! With [`OnLoss::End`] nothing is kept and nothing confirmed.

use crate::connection::OnLoss;
use crate::frame::{CONFIRMED_BYTES, Header, Kind, PIPES_MAX};
use bytes::Bytes;
use hikyaku_proto::{StreamId, StreamKind};
use std::collections::VecDeque;
use std::fmt;
use std::time::{Duration, Instant};

#[cfg(test)]
mod tests;

/// The number of a pipe, which is the same at both ends.
pub(crate) type PipeId = u32;

/// Breaks a pipe, so that a thread that waits for it goes on.
pub(crate) type Breaker = Box<dyn Fn() + Send>;

/// Frames that may wait to be confirmed, on all pipes together.
pub(super) const FRAMES_UNCONFIRMED_MAX: usize = 1 << 14;
/// Bytes of them. More would be held only for a peer that confirms nothing.
const BYTES_UNCONFIRMED_MAX: u64 = 128 << 20;
/// Arrived frames are confirmed within this time.
const CONFIRM_AFTER: Duration = Duration::from_millis(50);
/// How often it is looked for frames that are late.
const SWEEP_EVERY: Duration = Duration::from_millis(50);
/// A pipe without a confirmation for this time, while another one has some, is stuck.
const STUCK_MIN: Duration = Duration::from_secs(3);
/// The time until a pipe is stuck, in multiples of the time that a frame takes on the best pipe.
const STUCK_DELAYS: u32 = 10;
/// Time that a frame takes, if none has been measured.
const DELAY_UNKNOWN: Duration = Duration::from_secs(1);

/// A frame that was given to a pipe.
#[derive(Debug)]
struct Sent {
    number: u64,
    header: Header,
    bytes: Bytes,
    at: Instant,
    /// Whether it has been sent again, or is a copy itself.
    is_doubled: bool,
}

/// One pipe.
struct PipeState {
    id: PipeId,
    breaker: Option<Breaker>,
    /// Frames that were given to it.
    sent: u64,
    /// Frames that have arrived on it, and those of them that were confirmed to the peer.
    received: u64,
    told: u64,
    unconfirmed: VecDeque<Sent>,
    /// The mean time from giving a frame to the pipe to its confirmation.
    delay: Option<Duration>,
    /// When something was confirmed last.
    confirmed: Instant,
    has_said_close: bool,
}

impl fmt::Debug for PipeState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { id, sent, received, unconfirmed, .. } = self;
        let unconfirmed = unconfirmed.len();
        write!(f, "PipeState {{ {id}, sent {sent}, received {received}, kept {unconfirmed} }}")
    }
}

/// A frame that is to be sent again.
#[derive(Debug)]
struct Again {
    header: Header,
    bytes: Bytes,
    /// The pipe that has it already, if that is still there.
    has: Option<PipeId>,
}

/// All open pipes.
#[derive(Debug)]
pub(super) struct Pipes {
    on_loss: OnLoss,
    all: Vec<PipeState>,
    again: VecDeque<Again>,
    /// The number of pipes, from the first on, that carry data.
    width: usize,
    kept_frames: usize,
    kept_bytes: u64,
    /// Bytes of data that the peer has confirmed.
    confirmed_bytes: u64,
    /// The time of the next confirmation to the peer, if frames have arrived since the last.
    confirm_at: Option<Instant>,
    swept: Option<Instant>,
    /// Whether a pipe that waits must look again earlier than it knows.
    has_new_timer: bool,
}

impl Pipes {
    pub(super) const fn new(on_loss: OnLoss) -> Self {
        Self {
            on_loss,
            all: Vec::new(),
            again: VecDeque::new(),
            width: usize::MAX,
            kept_frames: 0,
            kept_bytes: 0,
            confirmed_bytes: 0,
            confirm_at: None,
            swept: None,
            has_new_timer: false,
        }
    }

    /// Adds a pipe. Returns false if there is one of this number, or no room for one more.
    pub(super) fn add(&mut self, id: PipeId, breaker: Option<Breaker>, now: Instant) -> bool {
        let at = self.all.partition_point(|pipe| pipe.id < id);
        let is_taken = self.all.get(at).is_some_and(|pipe| pipe.id == id);
        if is_taken || self.all.len() >= PIPES_MAX {
            return false;
        }
        let pipe = PipeState {
            id,
            breaker,
            sent: 0,
            received: 0,
            told: 0,
            unconfirmed: VecDeque::new(),
            delay: None,
            confirmed: now,
            has_said_close: false,
        };
        self.all.insert(at, pipe);
        true
    }

    fn at(&self, id: PipeId) -> Option<usize> {
        self.all.iter().position(|pipe| pipe.id == id)
    }

    pub(super) fn has(&self, id: PipeId) -> bool {
        self.at(id).is_some()
    }

    pub(super) const fn len(&self) -> usize {
        self.all.len()
    }

    pub(super) const fn confirmed_bytes(&self) -> u64 {
        self.confirmed_bytes
    }

    pub(super) fn set_width(&mut self, width: usize) {
        self.width = width.max(1);
    }

    /// Returns true once for each pipe, for the last frame on it: the close of the connection.
    pub(super) fn is_to_say_close(&mut self, id: PipeId) -> bool {
        let Some(at) = self.at(id) else { return false };
        !std::mem::replace(&mut self.all[at].has_said_close, true)
    }

    /// Forgets a pipe that is lost: its frames go over the others. Returns false if there is no other, or pipes are
    /// not repaired.
    pub(super) fn lose(&mut self, id: PipeId) -> bool {
        let Some(at) = self.at(id) else { return true };
        if self.on_loss == OnLoss::End || self.all.len() == 1 {
            return false;
        }
        let pipe = self.all.remove(at);
        if let Some(breaker) = &pipe.breaker {
            breaker();
        }
        for sent in pipe.unconfirmed {
            self.kept_frames -= 1;
            self.kept_bytes -= sent.bytes.len() as u64;
            self.again.push_back(Again { header: sent.header, bytes: sent.bytes, has: None });
        }
        true
    }

    /// Counts a frame that has arrived.
    pub(super) fn count(&mut self, id: PipeId, header: &Header, now: Instant) {
        let Some(at) = self.at(id) else { return };
        self.all[at].received += 1;
        if self.on_loss == OnLoss::Repair && header.is_lasting() {
            self.has_new_timer |= self.confirm_at.is_none();
            self.confirm_at.get_or_insert(now + CONFIRM_AFTER);
        }
    }

    /// Handles a confirmation of the peer.
    // fuzz: none, the test of the mux feeds it frames of random fields
    pub(super) fn on_confirmed(&mut self, payload: &[u8], now: Instant) -> Result<(), String> {
        let (pipes, rest) = payload.as_chunks::<CONFIRMED_BYTES>();
        if !rest.is_empty() {
            return Err("a confirmation of the wrong length".to_owned());
        }
        for pipe in pipes {
            let [a, b, c, d, e, f, g, h, i, j, k, l] = *pipe;
            let id = u32::from_le_bytes([a, b, c, d]);
            let count = u64::from_le_bytes([e, f, g, h, i, j, k, l]);
            // It may be lost here, and not there.
            let Some(at) = self.at(id) else { continue };
            if count > self.all[at].sent {
                return Err("a confirmation of what was not sent".to_owned());
            }
            self.confirm(at, count, now);
        }
        Ok(())
    }

    fn confirm(&mut self, at: usize, count: u64, now: Instant) {
        let pipe = &mut self.all[at];
        while pipe.unconfirmed.front().is_some_and(|sent| sent.number < count) {
            let Some(sent) = pipe.unconfirmed.pop_front() else { break };
            let length = sent.bytes.len() as u64;
            self.kept_frames -= 1;
            self.kept_bytes -= length;
            self.confirmed_bytes += length;
            let took = now.saturating_duration_since(sent.at);
            pipe.delay = Some(pipe.delay.map_or(took, |mean| (7 * mean + took) / 8));
            pipe.confirmed = now;
        }
    }

    /// The confirmation to the peer, if it is due.
    pub(super) fn confirmation(&mut self, now: Instant) -> Option<(Header, Bytes)> {
        self.confirm_at.filter(|at| *at <= now)?;
        self.confirm_at = None;
        let mut payload = Vec::new();
        for pipe in self.all.iter_mut().filter(|pipe| pipe.told != pipe.received) {
            pipe.told = pipe.received;
            payload.extend_from_slice(&pipe.id.to_le_bytes());
            payload.extend_from_slice(&pipe.received.to_le_bytes());
        }
        let length = payload.len();
        let header = Header { kind: Kind::Confirmed, id: StreamId(0), value: 0, length };
        Some((header, payload.into()))
    }

    /// A frame was given to the pipe.
    pub(super) fn record(&mut self, id: PipeId, header: &Header, bytes: &Bytes, now: Instant) {
        self.keep(id, header, bytes, now, false);
    }

    fn keep(&mut self, id: PipeId, header: &Header, bytes: &Bytes, now: Instant, is_doubled: bool) {
        let Some(at) = self.at(id) else { return };
        let pipe = &mut self.all[at];
        let number = pipe.sent;
        pipe.sent += 1;
        if self.on_loss == OnLoss::End || !header.is_lasting() {
            return;
        }
        self.has_new_timer |= self.kept_frames == 0;
        self.kept_frames += 1;
        self.kept_bytes += bytes.len() as u64;
        let (header, bytes) = (*header, bytes.clone());
        pipe.unconfirmed.push_back(Sent { number, header, bytes, at: now, is_doubled });
    }

    /// Whether the pipe may take new data.
    pub(super) fn may_take_data(&self, id: PipeId) -> bool {
        let has_room =
            self.kept_frames < FRAMES_UNCONFIRMED_MAX && self.kept_bytes < BYTES_UNCONFIRMED_MAX;
        has_room && self.at(id).is_some_and(|at| at < self.width)
    }

    /// Whether the pipe may take frames that others wait for: it is none of the slow ones.
    pub(super) fn may_take_control(&self, id: PipeId, now: Instant) -> bool {
        let Some(at) = self.at(id) else { return false };
        self.all.len() == 1 || self.all[at].takes(now) <= 3 * self.best(now) + CONFIRM_AFTER
    }

    /// Whether a frame is to be sent again that the pipe may take.
    pub(super) fn has_again(&self, id: PipeId) -> bool {
        self.again.iter().any(|again| again.has != Some(id))
    }

    pub(super) fn has_any_again(&self) -> bool {
        !self.again.is_empty()
    }

    /// The next frame to be sent again over the pipe.
    pub(super) fn again(&mut self, id: PipeId, now: Instant) -> Option<(Header, Bytes)> {
        let at = self.again.iter().position(|again| again.has != Some(id))?;
        let Again { header, bytes, has } = self.again.remove(at)?;
        self.keep(id, &header, &bytes, now, has.is_some());
        Some((header, bytes))
    }

    /// The time that frames take on the best pipe.
    fn best(&self, now: Instant) -> Duration {
        let measured = self.all.iter().filter(|pipe| pipe.delay.is_some());
        measured.map(|pipe| pipe.takes(now)).min().unwrap_or(DELAY_UNKNOWN)
    }

    /// Gives up stuck pipes, and lists late frames to be sent again: those that others wait for; if `is_idle`, data as
    /// well.
    pub(super) fn sweep(&mut self, now: Instant, is_idle: bool) {
        let is_soon = |at: Instant| now.saturating_duration_since(at) < SWEEP_EVERY;
        if self.on_loss == OnLoss::End || self.all.len() < 2 || self.swept.is_some_and(is_soon) {
            return;
        }
        self.swept = Some(now);
        let best = self.best(now);
        let patience = STUCK_MIN.max(STUCK_DELAYS * best);
        let since = |at: Instant| now.saturating_duration_since(at);
        let goes_on = |pipe: &PipeState| since(pipe.confirmed) < STUCK_MIN;
        let is_stuck =
            |pipe: &PipeState| pipe.age(now) > patience && since(pipe.confirmed) > patience;
        if self.all.iter().any(goes_on) {
            let stuck: Vec<PipeId> =
                self.all.iter().filter(|pipe| is_stuck(pipe)).map(|pipe| pipe.id).collect();
            for id in stuck {
                self.lose(id);
            }
        }
        let (late, very_late) = (2 * best + 3 * CONFIRM_AFTER, 3 * best + 6 * CONFIRM_AFTER);
        for pipe in &mut self.all {
            let id = pipe.id;
            let frames = pipe.unconfirmed.iter_mut();
            for sent in frames.take_while(|sent| since(sent.at) > late) {
                let is_urgent =
                    sent.header.kind != Kind::Data || sent.header.id.kind() == StreamKind::Ordered;
                let is_due = is_idle || (is_urgent && since(sent.at) > very_late);
                if !sent.is_doubled && is_due {
                    sent.is_doubled = true;
                    let (header, bytes) = (sent.header, sent.bytes.clone());
                    self.again.push_back(Again { header, bytes, has: Some(id) });
                }
            }
        }
    }

    /// Whether pipes that wait must be woken, because they must look again earlier than they know. True once.
    pub(super) const fn take_new_timer(&mut self) -> bool {
        std::mem::replace(&mut self.has_new_timer, false)
    }

    /// When a pipe that has nothing to do must look again.
    pub(super) fn wait(&self, now: Instant) -> Duration {
        let confirm = self.confirm_at.map(|at| at.saturating_duration_since(now));
        let sweep = (self.all.len() > 1 && self.kept_frames > 0).then_some(SWEEP_EVERY);
        confirm.into_iter().chain(sweep).min().unwrap_or(Duration::MAX)
    }
}

impl PipeState {
    /// How long the oldest frame has not been confirmed.
    fn age(&self, now: Instant) -> Duration {
        self.unconfirmed
            .front()
            .map_or(Duration::ZERO, |sent| now.saturating_duration_since(sent.at))
    }

    /// The time that a frame takes, as far as it is known.
    fn takes(&self, now: Instant) -> Duration {
        self.delay.unwrap_or_default().max(self.age(now))
    }
}
