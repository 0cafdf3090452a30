//! The controller: path model, loss model, start-up and law composed into two outputs.

use crate::brake::Brake;
use crate::common::Commons;
use crate::compete::Compete;
use crate::compete::deaf::Neighbours;
use crate::feedback::ack_interval_beside;
use crate::law::{Law, Round, TARGET_MIN};
use crate::loss::{LossModel, Queue};
use crate::path::{PathHint, PathModel, Step};
use crate::probe::{Look, Probe};
use crate::round::RoundClock;
use crate::sample::{AckEvent, Limit};
use crate::settings::{ControllerConfig, Policy};
use crate::share::Share;
use crate::startup::{FIRST_PACKETS, Finding, Startup};
use alloc::boxed::Box;
use core::num::NonZeroU32;
use core::time::Duration;
use hikyaku_units::{Instant, Rate};
use libm::{fmax, fmin};
use look::{Before, Looked, NO_QUEUE};

mod look;
mod others;
mod output;
mod told;

/// Rate and window of one path.
#[derive(Clone, Debug)]
pub struct Controller {
    config: ControllerConfig,
    path: PathModel,
    loss: LossModel,
    law: Law,
    mode: Mode,
    probe: Probe,
    brake: Brake,
    commons: Commons,
    share: Share,
    /// Weights of the last common drains that detected other flows.
    sights: u32,
    compete: Option<Compete>,
    /// The last competition, which goes on if others are back.
    paused: Option<Compete>,
    neighbours: Neighbours,
    round: RoundClock,
    /// Packets below this took another path.
    path_from: u64,
    queue: f64,
    /// Delay that hosts add on an empty path: on a fast one, few packets have the smallest delay.
    floor: f64,
    known_rtt: f64,
    /// Connections that send by the thread of this one.
    sharers: NonZeroU32,
    restore: Option<f64>,
    loss_is_ours: bool,
    /// The window was cut for loss when the last round ended.
    was_cut: bool,
    /// The round before the probe.
    before_less: Option<Before>,
    /// The rate of the last round in which nothing was amiss.
    good: Option<f64>,
}

#[derive(Clone, Debug)]
enum Mode {
    Startup(Box<Startup>),
    Cruise,
}

/// Assumed round trip before the handshake has measured one (333 ms in RFC 9002; it only determines the size of the first
/// train).
const ASSUMED_RTT: Duration = Duration::from_millis(100);
/// A train on a path of which only this is known lasts two milliseconds.
const SHORT_RTT: Duration = Duration::from_millis(4);
const MIN_ROUND: Duration = Duration::from_millis(2);
const MIN_PACKETS_FOR_LOSS: u64 = 50;
/// Part of the window that must have been in flight for the window to be the limit. Otherwise a slow processor was, and a
/// larger window would have no effect.
const USED: f64 = 0.7;
/// Part of a remembered rate that is enough to end start-up: growth reaches the rest sooner than more trains.
const HINT_PROVEN: f64 = 0.5;
/// Factor of the target queue for a flow that yields to other flows.
const SCAVENGED: f64 = 0.4;
const MIN_WINDOW_PACKETS: f64 = 4.0;
const FIXED_MIN_DELIVERY: f64 = 0.7;

impl Controller {
    /// A controller for a path of which at most `config.hint` is known.
    pub fn new(config: ControllerConfig) -> Self {
        let first = (FIRST_PACKETS * config.datagram) as f64;
        Self {
            config,
            path: PathModel::new(),
            loss: match config.policy {
                Policy::Fair | Policy::Scavenger => LossModel::default(),
                Policy::Fixed(_) => LossModel::trusting(),
            },
            law: match config.policy {
                Policy::Scavenger => Law::new(first).holding(SCAVENGED),
                Policy::Fair | Policy::Fixed(_) => Law::new(first),
            },
            mode: Mode::Startup(Box::new(Startup::new(first, ASSUMED_RTT))),
            probe: Probe::new(Instant::ZERO),
            brake: Brake::new(),
            commons: Commons::new(),
            share: Share::default(),
            sights: 0,
            compete: None,
            paused: None,
            neighbours: Neighbours::new(),
            round: RoundClock::new(0, Instant::ZERO),
            path_from: 0,
            queue: 0.0,
            floor: 0.0,
            known_rtt: ASSUMED_RTT.as_secs_f64(),
            sharers: NonZeroU32::MIN,
            restore: None,
            loss_is_ours: false,
            was_cut: false,
            before_less: None,
            good: None,
        }
    }

    /// The handshake is complete. A round trip takes between `least` and `most`, which differ if a flight was repeated. Until
    /// the first acknowledgements, timers use `most`, and the first train uses `least`, but at least four milliseconds,
    /// since a train must not be a burst.
    pub fn on_handshake(&mut self, least: Duration, most: Duration) {
        self.known_rtt = most.as_secs_f64();
        let rtt = least.max(SHORT_RTT.min(most));
        let first = (FIRST_PACKETS * self.config.datagram) as f64;
        let mut startup = Startup::new(first, rtt);
        if let Some(hint) = self.config.hint.filter(|hint| hint_applies(hint, most)) {
            // RFC 9959's caution in another form: the remembered rate is tried for an eighth of a
            // round trip, not for half a window, and believed only when it has arrived.
            let train = startup.rate_to_size(hint.rate.bytes_per_sec());
            startup = Startup::new(fmax(train, first), rtt);
        }
        self.mode = Mode::Startup(Box::new(startup));
    }

    /// A full packet is now `datagram` bytes of UDP payload.
    pub const fn set_datagram(&mut self, datagram: u64) {
        self.config.datagram = datagram;
    }

    /// A packet left.
    pub fn on_sent(&mut self, now: Instant, packet_number: u64, bytes: u64) {
        if let Mode::Startup(startup) = &mut self.mode {
            startup.on_sent(now, packet_number, bytes);
        }
    }

    /// There was room to send, and nothing to send.
    pub fn on_starved(&mut self) {
        if let Mode::Startup(startup) = &mut self.mode {
            startup.on_starved();
        }
    }

    /// Packets from number `from` on take another path with a round trip of about `rtt`. The rate of the last path is tried
    /// first, like a remembered one.
    pub fn on_new_path(&mut self, from: u64, rtt: Duration) {
        let hint = self.hint().or(self.config.hint);
        let commons = self.commons.afresh();
        *self = Self::new(ControllerConfig { hint, ..self.config });
        self.commons = commons;
        self.path_from = from;
        self.on_handshake(rtt, rtt);
    }

    /// An acknowledgement arrived.
    pub fn on_ack(&mut self, event: &AckEvent<'_>) {
        if event.largest < self.path_from {
            return;
        }
        let new = event.arrivals.iter().position(|a| a.packet_number >= self.path_from);
        let arrivals = new.map_or(&[][..], |from| &event.arrivals[from..]);
        self.on_news(&AckEvent { arrivals, ..event.clone() });
    }

    fn on_news(&mut self, event: &AckEvent<'_>) {
        let step = self.path.on_ack(event);
        self.loss.on_ack(event.settled);
        self.follow_base_rtt(step);
        let in_flight = event.in_flight + event.acked.bytes + event.lost.bytes;
        self.round.most_in_flight = self.round.most_in_flight.max(in_flight);
        self.round.acked += event.acked.packets;
        self.round.acked_bytes += event.acked.bytes;
        self.round.marked += event.marked;
        // Under a cap the window may grow as far as it is used: there is room left for what the cap
        // lets through later, and a queue that others made does not keep us below it.
        if event.limit == Limit::Other {
            self.round.starved = true;
        }
        if let Mode::Startup(startup) = &mut self.mode {
            if let Some(base) = self.path.base_rtt() {
                startup.set_rtt(base);
            }
            let finding = startup.on_ack(event);
            let path_loss = startup.path_loss();
            let overflowed = startup.may_have_overflowed();
            if let Some(rate) = self.on_finding(event.now, finding, path_loss) {
                self.cruise(event.now, rate, overflowed);
                self.path.forget_round(event.next_packet_number);
                self.start_round(event);
            }
            return;
        }
        self.look_for_others(event.now);
        let round_trip = Duration::from_secs_f64(self.known_rtt).max(MIN_ROUND);
        if event.largest >= self.round.end && event.now - self.round.began >= round_trip / 2 {
            self.end_round(event);
        }
    }

    /// The capacity, once it is found.
    fn on_finding(
        &mut self,
        now: Instant,
        finding: Finding,
        path_loss: Option<(u64, u64)>,
    ) -> Option<f64> {
        // The loss of a first train that met the capacity may be an overflow.
        let telling = match finding {
            Finding::Waiting => false,
            Finding::Proven(_) => true,
            Finding::Capacity(_) => !self.loss.is_empty(),
        };
        if let Some((packets, lost)) = path_loss.filter(|_| telling) {
            self.loss.learn(packets, lost);
            self.loss.believe();
        }
        let target = self.config.target.map(Rate::bytes_per_sec);
        match finding {
            Finding::Waiting => None,
            // The remembered rate, or the requested one, is proven: no more trains are needed.
            Finding::Proven(rate) => {
                target.filter(|&target| rate >= target).or_else(|| self.remembered(now, rate))
            }
            Finding::Capacity(rate) => Some(rate),
        }
    }

    /// The proven rate, if it is enough of the remembered one. A host may have delayed a part of the train, so growth
    /// continues to the whole remembered rate while no queue stands.
    fn remembered(&mut self, now: Instant, proven: f64) -> Option<f64> {
        let hint = self.config.hint.filter(|hint| hint_applies(hint, self.srtt()))?;
        let rate = hint.rate.bytes_per_sec();
        if proven < HINT_PROVEN * rate {
            return None;
        }
        self.path.remember(now, rate);
        Some(proven)
    }

    /// Leaves start-up with the capacity it found.
    fn cruise(&mut self, now: Instant, rate: f64, overflowed: bool) {
        if overflowed {
            self.law.on_overflow(self.path.peak(), rate, self.round_trip());
        }
        self.path.set_rate(rate);
        self.neighbours.carried(rate);
        self.law.set_window(self.equilibrium(rate));
        self.mode = Mode::Cruise;
        self.probe = Probe::new(now);
        self.loss_is_ours = true;
    }

    /// The window that holds the target queue at this delivery rate.
    fn equilibrium(&self, rate: f64) -> f64 {
        let window = self.to_send(rate) * (self.round_trip() + self.target(rate));
        fmax(window, self.min_window())
    }

    fn end_round(&mut self, event: &AckEvent<'_>) {
        let most = self.round.most_in_flight as f64;
        let paced = self.pacing_rate().bytes_per_sec() * self.round_trip();
        let used = !self.round.starved && most >= USED * fmin(self.law.window(), paced);
        let before = self.path.rate();
        let tested = self.probe.is_draining();
        let drained = tested || self.round.touched;
        self.path.note_acked(event.now, self.round.acked_rate(event.now));
        if let Some(round) = self.path.end_round() {
            self.follow_base_rtt(round.step);
            if !used && let Some(before) = before {
                self.path.set_rate(fmax(before, round.rate.unwrap_or(0.0)));
            }
            if drained {
                self.floor = fmin(round.queue, TARGET_MIN);
            }
            self.queue = fmax(round.queue - self.floor, 0.0);
            let rate = self.path.rate().unwrap_or(0.0);
            let target = self.target(rate);
            let lasted = (event.now - self.round.began).as_secs_f64();
            self.share.on_base(self.path.base_delay().map(|(_, delay)| delay));
            if !drained && used {
                self.share.on_round(lasted, self.queue, rate);
            }
            if !drained {
                self.path.note_share(rate, self.queue > target / 2.0);
            }
            let queue = match &self.compete {
                Some(_) => Queue::Shared,
                None if self.queue > 2.0 * target => Queue::Full,
                None => Queue::Free,
            };
            let seen = self.loss.seen();
            self.brake.on_round(event.now, self.loss.of_this_round(), self.queue);
            let looked = self.look(event.now, &round);
            let lost = match looked {
                Looked::No => self.end_loss_round(queue),
                Looked::Begun => {
                    self.begin_look(before.unwrap_or(0.0));
                    self.end_loss_round(queue)
                }
                Looked::On | Looked::Over | Looked::Disproved => 0.0,
            };
            // A mark counts as a loss, without the loss (RFC 3168).
            let mut excess = fmax(lost, self.round.marks());
            if used && excess == 0.0 && self.probe.is_idle() && !drained {
                self.good = round.rate.or(self.good);
            }
            // Packets in flight at the time of the cut met the queue that caused it: one cut is enough.
            let was_cut = core::mem::take(&mut self.was_cut);
            let is_asked = !matches!(self.config.policy, Policy::Fixed(_));
            let look = Look {
                now: event.now,
                base: self.path.base_delay(),
                queue: if self.compete.is_some() { 0.0 } else { self.queue },
                round_trip: self.round_trip(),
                has_room: self.queue < NO_QUEUE * self.round_trip(),
                sent: event.next_packet_number,
                arrived: fmin(rate * self.round_trip() / self.law.window(), 1.0),
                ambient: self.loss.suspected(),
                is_doubted: self.compete.is_none() && self.loss.is_doubted(),
                excess: (!was_cut && !tested).then_some(excess),
            };
            self.note_neighbours(seen, used && !drained);
            if self.is_among_deaf() {
                // All flows cause the loss there, so a lower rate of this flow would measure nothing.
                self.probe.stop();
                self.before_less = None;
            } else if is_asked {
                self.probe.on_round(&look);
            }
            // The window is not adjusted by the quantity that a probe in progress measures.
            if was_cut || tested || self.probe.is_draining() {
                excess = 0.0;
            }
            self.was_cut = excess > 0.0;
            if looked == Looked::Disproved {
                // The window is set by the delivery rate.
            } else if self.compete.is_some() {
                self.compete(event.now, excess, used && !drained);
            } else if (!drained || excess > 0.0) && round.arrivals > 0 && rate > 0.0 {
                self.steer(&Round {
                    queue: self.queue,
                    peak: round.peak,
                    latest: round.latest - self.floor,
                    rate,
                    known_rate: self.path.known_rate(),
                    largest_rate: self.path.largest_rate(),
                    base_rtt: self.round_trip(),
                    lasted,
                    jitter: self.path.jitter(),
                    ambient_loss: self.loss.ambient(),
                    excess_loss: excess,
                    window_was_used: used,
                });
            }
        }
        self.start_round(event);
    }

    /// Losses of the last train by overflow are no ambient loss, and are reported until the end of the next round.
    fn end_loss_round(&mut self, queue: Queue) -> f64 {
        if core::mem::take(&mut self.loss_is_ours) {
            self.loss.discard();
            return 0.0;
        }
        let before = self.loss.ambient();
        let excess = self.loss.end_round(MIN_PACKETS_FOR_LOSS, queue);
        self.law.scale((1.0 - before) / (1.0 - self.loss.ambient()));
        excess
    }

    fn steer(&mut self, round: &Round) {
        if let Some(restore) = self.restore.take()
            && round.queue < 2.0 * self.target(restore)
        {
            self.law.set_window(fmax(self.equilibrium(restore), self.law.window()));
            return;
        }
        if round.window_was_used {
            self.law.limit(round);
        }
        self.law.on_round(round);
        if self.law.window() < self.min_window() {
            self.law.set_window(self.min_window());
        }
    }

    /// When the path itself became longer or shorter, the window follows at once: the capacity has
    /// not changed, only how much of it is under way.
    fn follow_base_rtt(&mut self, step: Step) {
        let Some(base) = self.path.base_rtt() else { return };
        let (old, new) = (self.known_rtt, base.as_secs_f64());
        let shorter = new < old * 0.9;
        if matches!(step, Step::Longer(_)) || shorter {
            self.probe.stop();
            self.before_less = None;
            if let Some(rate) = self.path.rate() {
                let queue = fmin(self.queue, self.target(rate));
                let window = self.law.window() * (new + queue) / fmax(old + queue, 1e-4);
                self.law.set_window(fmax(window, self.min_window()));
            }
            self.queue = 0.0;
        }
        self.known_rtt = new;
    }

    const fn start_round(&mut self, event: &AckEvent<'_>) {
        self.round = RoundClock::new(event.next_packet_number, event.now);
    }

    /// When [`Controller::on_timeout`] wants to be called.
    pub fn next_timeout(&self) -> Option<Instant> {
        match &self.mode {
            Mode::Startup(startup) => startup.deadline(self.srtt()),
            Mode::Cruise => None,
        }
    }

    /// A train whose end was lost is judged by what arrived.
    pub fn on_timeout(&mut self, now: Instant) {
        if self.next_timeout().is_some_and(|at| at <= now)
            && let Mode::Startup(startup) = &mut self.mode
            && let Finding::Capacity(rate) = startup.judge()
        {
            let overflowed = startup.may_have_overflowed();
            self.cruise(now, rate, overflowed);
        }
    }

    /// The path was interrupted, or dropped packets of this size: the losses are no measure of its capacity. Half of the
    /// earlier rate is tried for a round, then all of it. Packets below `from` were sent before, and their arrivals are not
    /// used for the rate.
    pub fn on_outage(&mut self, now: Instant, from: u64) {
        let known = self.good.or_else(|| self.path.rate());
        if let (Mode::Cruise, Some(rate)) = (&self.mode, known) {
            self.probe.stop();
            self.before_less = None;
            self.restore = Some(rate);
            // However long it was.
            self.path.remember(now, rate);
            let window = self.to_send(rate) * self.round_trip() / 2.0;
            self.law.set_window(fmax(window, self.min_window()));
        }
        self.loss_is_ours = true;
        self.path.forget_round(from);
    }

    /// The sending rate for a delivery rate of `rate`.
    fn to_send(&self, rate: f64) -> f64 {
        rate / (1.0 - self.loss.ambient())
    }

    fn target(&self, rate: f64) -> f64 {
        self.law.target(rate, self.path.jitter(), self.round_trip())
    }

    fn delivery_share(&self) -> f64 {
        fmax(1.0 - self.loss.ambient(), FIXED_MIN_DELIVERY)
    }

    /// Base round trip including the receiver's acknowledgement delay, in seconds.
    fn round_trip(&self) -> f64 {
        self.known_rtt + self.ack_interval().as_secs_f64() / 2.0
    }

    /// The receiver's acknowledgement delay.
    fn ack_interval(&self) -> Duration {
        ack_interval_beside(Duration::from_secs_f64(self.known_rtt), self.sharers)
    }

    fn min_window(&self) -> f64 {
        MIN_WINDOW_PACKETS * self.config.datagram as f64
    }
}

/// A hint is for this path if the round-trip time is between half and twice the remembered one.
fn hint_applies(hint: &PathHint, rtt: Duration) -> bool {
    rtt >= hint.base_rtt / 2 && rtt <= hint.base_rtt * 2
}
