//! TCP connections on one path as a fluid: windows in packets, in steps of half a round trip.
//!
//! Packets beyond rate times round trip stand in the queue; packets beyond the queue are lost. CUBIC with HyStart by
//! delay, or Reno; slow start and two round trips of opening for each connection; one decrease a round trip; a window under four
//! packets that loses one waits for the timer. No packets, no hosts, no bytes that are sent twice. One connection has at most
//! the window that Linux' default buffers allow; nothing else was fitted to measurements.

/// Payload and size of a packet.
const PAYLOAD: f64 = 1448.0;
const PACKET: f64 = 1500.0;

/// A path. Rates are in Mbit/s, times in seconds.
#[derive(Clone, Copy)]
pub(crate) struct Spec {
    pub(crate) rate: f64,
    pub(crate) rtt: f64,
    /// In products of rate and round trip.
    pub(crate) queue: f64,
    /// Share of packets that are lost beside those of a full queue.
    pub(crate) loss: f64,
    /// The largest window of a connection in packets.
    pub(crate) window: f64,
    pub(crate) control: Control,
    /// Plain TCP connections beside.
    pub(crate) cross: usize,
    /// Connections that a server grants, and the rates that it sends at: to all together, and to each.
    pub(crate) granted: usize,
    pub(crate) server: f64,
    pub(crate) each: f64,
    /// From and until when the rate is multiplied by the third.
    pub(crate) change: Option<(f64, f64, f64)>,
    /// Standard deviation of what a rule measures in a window.
    pub(crate) noise: f64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Control {
    Cubic,
    Reno,
}

impl Spec {
    pub(crate) const fn new(rate: f64, rtt: f64, queue: f64, loss: f64) -> Self {
        let (window, control, cross, granted) = (1900.0, Control::Cubic, 0, usize::MAX);
        let (server, each, change, noise) = (1e9, 1e9, None, 0.03);
        Self {
            rate,
            rtt,
            queue,
            loss,
            window,
            control,
            cross,
            granted,
            server,
            each,
            change,
            noise,
        }
    }
}

/// Random numbers from a seed (SplitMix64).
pub(crate) struct Random(pub u64);

impl Random {
    /// From 0 to 1.
    pub(crate) fn unit(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((mixed ^ (mixed >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Of mean 0 and deviation 1: a sum of twelve.
    pub(crate) fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.unit()).sum::<f64>() - 6.0
    }
}

#[derive(Clone, Copy)]
enum Stage {
    Closed,
    /// Until its first byte can be sent, and while it waits for the timer.
    Waiting(f64),
    Sending,
}

/// One connection.
#[derive(Clone, Copy)]
pub(crate) struct Flow {
    stage: Stage,
    window: f64,
    threshold: f64,
    /// The window before the last decrease, the time from then until CUBIC has it again, and what Reno would have.
    before: f64,
    back: f64,
    reno: f64,
    epoch: f64,
    /// No second decrease before this time.
    recovery: f64,
    /// All bytes that connections of this number have carried, and those of them before it was opened.
    pub(crate) bytes: f64,
    pub(crate) earlier: f64,
}

impl Flow {
    const CLOSED: Self = Self {
        stage: Stage::Closed,
        window: 0.0,
        threshold: 0.0,
        before: 0.0,
        back: 0.0,
        reno: 0.0,
        epoch: 0.0,
        recovery: 0.0,
        bytes: 0.0,
        earlier: 0.0,
    };

    pub(crate) fn is_flowing(&self) -> bool {
        !matches!(self.stage, Stage::Closed) && self.bytes > self.earlier
    }

    /// The epoch begins with a window that was this large.
    fn begin_epoch(&mut self, before: f64, now: f64) {
        (self.before, self.epoch, self.reno, self.threshold) =
            (before, now, self.window, self.window);
        self.back = libm::cbrt(before * 0.75);
    }
}

/// The path with its connections, those that belong to no transfer last.
pub(crate) struct Path {
    pub(crate) spec: Spec,
    pub(crate) flows: Vec<Flow>,
    pub(crate) now: f64,
    pub(crate) step: f64,
    /// Time that a packet waits in the queue.
    pub(crate) waits: f64,
    queue: f64,
    random: Random,
}

impl Path {
    pub(crate) fn new(spec: Spec, flows: usize, seed: u64) -> Self {
        let packets = spec.rate * 1e6 / 8.0 / PACKET;
        let queue = (spec.queue * packets * spec.rtt).max(20.0);
        let step = (spec.rtt / 2.0).clamp(0.005, 0.05);
        let all = vec![Flow::CLOSED; flows + spec.cross];
        let mut path =
            Self { spec, flows: all, now: 0.0, step, waits: 0.0, queue, random: Random(seed) };
        (flows..flows + spec.cross).for_each(|flow| path.open(flow));
        path
    }

    pub(crate) fn open(&mut self, flow: usize) {
        let found = &mut self.flows[flow];
        let stage = Stage::Waiting(self.now + 2.0 * self.spec.rtt);
        let (bytes, earlier) = (found.bytes, found.bytes);
        *found = Flow { stage, window: 10.0, threshold: 1e9, bytes, earlier, ..Flow::CLOSED };
    }

    pub(crate) fn close(&mut self, flow: usize) {
        self.flows[flow].stage = Stage::Closed;
    }

    /// One step.
    pub(crate) fn advance(&mut self) {
        let (now, spec) = (self.now, self.spec);
        let change = spec.change.filter(|(from, until, _)| (*from..*until).contains(&now));
        let packets = |rate: f64| rate * 1e6 / 8.0 / PACKET;
        let rate = packets(spec.rate) * change.map_or(1.0, |(.., factor)| factor);
        for flow in &mut self.flows {
            if matches!(flow.stage, Stage::Waiting(until) if until <= now) {
                flow.stage = Stage::Sending;
            }
        }
        let own = self.flows.len() - spec.cross;
        let most = spec.window.min(packets(spec.each) * spec.rtt);
        let sends = |flow: &Flow| match flow.stage {
            Stage::Sending => flow.window.min(most),
            Stage::Closed | Stage::Waiting(_) => 0.0,
        };
        let asked: f64 = self.flows[..own].iter().map(sends).sum();
        let paced = (packets(spec.server) * spec.rtt / asked.max(1.0)).min(1.0);
        let is_paced = paced < 1.0 || most < spec.window;
        let total = paced * asked + self.flows[own..].iter().map(sends).sum::<f64>();
        let beyond = total - rate * spec.rtt;
        let (standing, over) = (beyond.clamp(0.0, self.queue), (beyond - self.queue).max(0.0));
        self.waits = standing / rate;
        let round_trip = spec.rtt + self.waits;
        let share = over / total.max(1.0);
        let round_trips = (self.step / round_trip).min(4.0);
        let double = libm::exp2(round_trips);
        let is_long = self.waits > (spec.rtt / 8.0).clamp(0.004, 0.016);
        for (number, flow) in self.flows.iter_mut().enumerate() {
            if !matches!(flow.stage, Stage::Sending) {
                continue;
            }
            let window = sends(flow) * if number < own { paced } else { 1.0 };
            let sent = window * self.step / round_trip;
            flow.bytes += sent * (1.0 - (share + spec.loss).min(1.0)) * PAYLOAD;
            let dropped = window * share * round_trips;
            let expected = sent * spec.loss + dropped.min(3.0 * round_trips) + 0.3 * dropped;
            let drawn = self.random.unit();
            let is_hit = drawn < expected && drawn < -libm::expm1(-expected);
            if is_hit && flow.recovery < now {
                decrease(flow, &spec, now, round_trip);
            } else if flow.recovery < now {
                let is_free = !(is_paced && number < own) || window >= 0.95 * flow.window;
                if is_free && flow.window < 1.2 * spec.window {
                    grow(flow, &spec, now, (round_trip, round_trips, double), is_long);
                }
            }
        }
        self.now += self.step;
    }
}

fn decrease(flow: &mut Flow, spec: &Spec, now: f64, round_trip: f64) {
    let window = flow.window.min(spec.window);
    let (beta, is_cubic) = match spec.control {
        Control::Cubic => (0.7, true),
        Control::Reno => (0.5, false),
    };
    let is_less = is_cubic && window < flow.before;
    let before = if is_less { window * (1.0 + beta) / 2.0 } else { window };
    flow.window = (window * beta).max(2.0);
    flow.begin_epoch(before, now);
    flow.recovery = now + round_trip;
    if window < 4.0 {
        flow.stage = Stage::Waiting(now + 0.2 + round_trip);
    }
}

fn grow(
    flow: &mut Flow,
    spec: &Spec,
    now: f64,
    (round_trip, round_trips, double): (f64, f64, f64),
    is_long: bool,
) {
    let is_cubic = spec.control == Control::Cubic;
    if flow.window < flow.threshold {
        flow.window = (flow.window * double).min(flow.threshold);
        if is_cubic && is_long && flow.window > 16.0 {
            flow.begin_epoch(flow.window, now);
        }
        return;
    }
    if !is_cubic {
        flow.window += round_trips;
        return;
    }
    let age = now - flow.epoch + round_trip - flow.back;
    let target = (0.4 * age * age * age + flow.before).clamp(flow.window, 1.5 * flow.window);
    flow.reno += round_trips * if flow.reno < flow.before { 0.529 } else { 1.0 };
    flow.window += (target - flow.window) * round_trips.min(1.0);
    flow.window = flow.window.max(flow.reno);
}
