//! The decision after a window.

use super::{Climb, Found, Holding, Room, State};
use crate::look::{Look, Measured};
use crate::window::{Window, bytes_of};
use alloc::vec::Vec;
use core::time::Duration;

/// New connections bring at least this share of what the ones before brought at the same age: the path is not full.
const NEW: f64 = 0.6;
/// That share where a queue stands or other transfers use the path. Beside `k` transfers of equal size, a new one brings
/// `(k + 1) / (k + 2)`.
const TAKEN: f64 = 0.85;
/// More connections are of use if goodput grows by this power of their number.
const GAIN: f64 = 0.5;
/// That power where a queue stands or other transfers use the path.
const SURE: f64 = 0.9;
/// Goodput of fewer connections, as a share of the one before, from which the others were of no use.
const KEEP: f64 = 0.95;
/// Goodput below this share, while the number falls, ends the fall.
const STOP: f64 = 0.95;
/// Goodput of more connections is at least this share of the one before, if they are of use.
const GROWN: f64 = 0.9;
/// A mean below this share of the goodput of the choice: the path has changed.
const FALLEN: f64 = 0.8;
/// Windows until the number is tried again; doubled each time it was right.
const WAIT_MIN: u32 = 4;
const WAIT_MAX: u32 = 32;
/// After this number of windows in which packets wait for a round trip and more, more connections are tried: it may be the server
/// that delays them, because it paces each connection.
const SOON: u32 = 2;
/// Where they wait for less, more than the first number are tried if all connections have had the same rate for this time: flows
/// that share a queue differ, and nothing else has shown that the first number fills the path.
const EVEN_TIME: Duration = Duration::from_secs(10);
/// The standard deviation of their rates then, as a share of the mean.
const EVEN: f64 = 0.05;
/// Fewer connections may have the same rate by chance.
const EVEN_CONNECTIONS_MIN: usize = 4;
/// Time between two such tries.
const DOUBTED_EVERY: Duration = Duration::from_secs(120);
/// New connections are in slow start as long as the second half of a window brings more than this multiple of the first.
const SLOW_START: f64 = 1.3;
/// Slow start lasts no longer than this number of windows: eight round trips lead from 10 packets to the largest window.
const SLOW_START_MAX: u32 = 2;
/// Share of the connections that is kept when a queue stands.
const LESS: f64 = 0.7;
/// Factor of a try.
const MORE: f64 = 1.5;
/// Time between two proofs, which is doubled as long as they succeed.
pub(super) const PROVE_MIN: Duration = Duration::from_secs(20);
/// Time until the first proof if new connections have brought `ALL` of the ones before.
pub(super) const PROVE_LATER: Duration = Duration::from_secs(60);
/// Beside one transfer of equal size a new connection brings 2/3 of the ones before, beside three 4/5.
const ALL: f64 = 0.8;
const PROVE_MAX: Duration = Duration::from_secs(160);
/// Windows without a queue before a group is given up for a proof.
const PROVE_CLEAR: u32 = 4;
/// On a long path what is given up takes long to grow again.
const PROVE_ROUND_TRIPS: u32 = 100;
/// Goodput falls by this power of the number at least, if the connections that were given up are needed.
const PROOF: f64 = 0.65;
/// How long others on the path are believed in.
const SHARED_FOR: Duration = Duration::from_secs(60);
/// Steps until the end of the transfer, without which nothing is begun: the number is not doubled, nor falls to the chosen one.
pub(super) const STEPS_OF_GROWTH: u32 = 3;
/// Steps until the end without which no smaller change is tried.
const STEPS_OF_TRY: u32 = 8;
/// Steps until the end without which no proof begins.
const STEPS_OF_PROOF: u32 = 20;
/// The least number of connections, where a window of each would be too small otherwise.
const LEAST: u32 = 8;
/// With fewer packets in its window a connection cannot notice a loss before the timer.
const PACKETS_MIN: f64 = 4.0;
/// Packets in the window of each after some were given up for that.
const PACKETS: f64 = 6.0;
/// Payload of a packet.
const PACKET_BYTES: f64 = 1448.0;

impl Climb {
    /// Decides after a window. Returns the rate of the added connections as a share of the ones before.
    pub(super) fn judge(
        &mut self,
        look: &Look<'_>,
        window: &Window,
        measured: &Measured,
    ) -> Option<f64> {
        let is_shared = self.proof.found == Found::Others && look.now - self.proof.at < SHARED_FOR;
        let is_taken = self.is_standing || is_shared;
        let (n, now) = (self.n, measured.goodput());
        let each = now / measured.connections.max(1.0);
        if self.is_in_slow_start(look, window) {
            return None;
        }
        match self.state {
            State::First if self.is_standing => self.wait_for_room(look, now),
            State::First => self.grow(look, now, each),
            State::Growing { before, goodput, unit } => {
                let Some(rate) = window.rate_of(look, |id| !self.old.contains(&id)) else {
                    self.hold(look, n, now, WAIT_MIN);
                    return None;
                };
                let added = rate / unit.max(1.0);
                if added < ALL {
                    self.proof.every = PROVE_MIN;
                }
                let enough = if is_taken { TAKEN } else { NEW };
                match added >= enough && now > GROWN * goodput {
                    true if self.is_standing => self.wait_for_room(look, now),
                    true => self.grow(look, now, rate),
                    false => self.go_back(look, before, (now, now), WAIT_MIN),
                }
                return Some(added);
            }
            State::Trying { before, goodput, wait, room } => {
                let gain = if is_taken { SURE } else { GAIN };
                if n > before && growth(goodput, now) >= gain * growth(before, n) {
                    if self.is_standing {
                        // On a full path they could only have taken from others, and never as much.
                        self.delay.is_of_server(measured.queue.unwrap_or_default());
                        self.is_standing = false;
                    }
                    self.grow(look, now, each);
                } else {
                    self.go_back(look, before, (now.max(goodput), now), 2 * wait);
                    self.leave(room);
                }
            }
            State::Lessening { before, goodput, wait } => {
                match now >= KEEP * goodput || self.is_standing {
                    true if self.unit > 1 => self.hold(look, n, now, wait),
                    true => self.hold(look, n, now, WAIT_MIN),
                    false => self.hold(look, before, goodput, 2 * wait),
                }
            }
            State::Proving { before, goodput } => {
                let is_needed = growth(now, goodput) >= PROOF * growth(n, before);
                self.proof.at = look.now;
                if is_needed {
                    self.proof.found = Found::Nothing;
                    self.proof.every = (2 * self.proof.every).min(PROVE_MAX);
                    self.hold(look, before, goodput, WAIT_MIN);
                } else {
                    self.proof.found = Found::Others;
                    self.proof.every = PROVE_MIN / 2;
                    self.hold(look, n, now, WAIT_MAX);
                }
            }
            State::Holding(holding) => self.stay(look, holding, measured),
        }
        None
    }

    /// Whether the connections that are to be judged are still in slow start: nothing is known of the path then, but that it was
    /// not full before.
    fn is_in_slow_start(&mut self, look: &Look<'_>, window: &Window) -> bool {
        let is_new = |id: u32| !self.old.contains(&id);
        let is_growing = match self.state {
            State::First | State::Growing { .. } | State::Trying { .. } => {
                window.growth_of(look, is_new) > SLOW_START
            }
            State::Holding(_) | State::Lessening { .. } | State::Proving { .. } => false,
        };
        self.growing = if is_growing { self.growing + 1 } else { 0 };
        is_growing && self.growing < SLOW_START_MAX
    }

    /// A window with a number that stays, or falls to the one that was chosen.
    fn stay(&mut self, look: &Look<'_>, mut holding: Holding, measured: &Measured) {
        let (n, now) = (self.n, measured.goodput());
        holding.last = [Some(now), holding.last[0], holding.last[1]];
        let known = holding.last.iter().flatten();
        let mean = known.clone().sum::<f64>() / known.clone().count() as f64;
        let (is_one, is_full) = (known.clone().count() < 2, known.count() == holding.last.len());
        (holding.standing, holding.clear) = match self.is_standing {
            true => (holding.standing + 1, 0),
            false => (0, holding.clear + 1),
        };
        if n > self.goal {
            // The closed connections were of use.
            match now < STOP * holding.chosen && !self.is_standing {
                true => self.hold(look, n, now, WAIT_MIN),
                false => self.state = State::Holding(holding),
            }
            return;
        }
        holding.left = holding.left.saturating_sub(1);
        let every = self.proof.every.max(self.delay.round_trip() * PROVE_ROUND_TRIPS);
        let is_due = look.now - self.proof.at > every;
        // A group is much to give up for a queue that was away for one window.
        let is_clear = holding.clear >= if self.unit > 1 { PROVE_CLEAR } else { 1 };
        let may_prove = is_full && is_clear && self.pays(STEPS_OF_PROOF);
        if n > self.first && is_due && may_prove {
            self.state = State::Proving { before: n, goodput: mean };
            return self.ask(look, self.first.max(n / 2));
        }
        let delay = self.delay.round_trip() + measured.queue.unwrap_or_default();
        let packets = mean * delay.as_secs_f64() / PACKET_BYTES;
        let least = if self.unit > 1 { self.first } else { LEAST.min(self.first) };
        if packets / f64::from(n) < PACKETS_MIN && n > least && holding.standing >= 2 {
            let n = ((packets / PACKETS) as u32).min(n - 1).max(least);
            return self.hold(look, n, mean, WAIT_MIN);
        }
        if holding.room == Room::WhenEmpty && !self.is_standing {
            return self.grow(look, now, now / measured.connections.max(1.0));
        }
        if mean < FALLEN * holding.chosen {
            let left = if self.is_standing { holding.left.min(WAIT_MIN) } else { 0 };
            (holding.wait, holding.left, holding.chosen) = (WAIT_MIN, left, mean);
        }
        let wait = holding.wait;
        // Those that are given up have to end first: more would be open than the rule knows of.
        let has_rested = has_rested(look.connections.len(), n);
        let is_waiting = measured.queue.is_some_and(|queue| queue >= self.delay.round_trip());
        let was_doubted = self.doubted.is_some_and(|at| look.now - at < DOUBTED_EVERY);
        let is_unproven = n == self.first && self.is_even(look);
        let is_doubtful = (is_waiting || is_unproven) && holding.standing >= SOON && !was_doubted;
        let is_early = holding.left > 0 && !is_doubtful;
        if is_one || is_early || !has_rested || !self.pays(STEPS_OF_TRY) {
        } else if holding.standing >= 3 && n > self.first {
            self.state = State::Lessening { before: n, goodput: mean, wait };
            let less = libm::floor(LESS * f64::from(n)) as u32;
            return self.ask(look, self.first.max(less));
        } else if n < self.cap && (!self.is_standing || is_doubtful) {
            if self.is_standing {
                self.doubted = Some(look.now);
            }
            let (goodput, room) = (mean.min(now), holding.room);
            self.state = State::Trying { before: n, goodput, wait, room };
            let more = libm::floor(MORE * f64::from(n)) as u32;
            return self.ask(look, more.max(n + 2));
        }
        self.state = State::Holding(holding);
    }

    /// Whether all connections have had the same rate for some time.
    fn is_even(&mut self, look: &Look<'_>) -> bool {
        let bytes = bytes_of(look);
        let Some((since, before)) = self.even.take() else {
            self.even = Some((look.now, bytes));
            return false;
        };
        if look.now - since < EVEN_TIME {
            self.even = Some((since, before));
            return false;
        }
        let of_one = |(id, now): (&u32, &u64)| Some(now.saturating_sub(*before.get(id)?) as f64);
        let carried: Vec<f64> = bytes.iter().filter_map(of_one).collect();
        self.even = Some((look.now, bytes));
        let count = carried.len() as f64;
        let mean = carried.iter().sum::<f64>() / count;
        let variance = carried.iter().map(|one| (one - mean) * (one - mean)).sum::<f64>() / count;
        carried.len() >= EVEN_CONNECTIONS_MIN && libm::sqrt(variance) <= EVEN * mean
    }

    /// Twice as many. Each of those before has brought `unit`.
    fn grow(&mut self, look: &Look<'_>, goodput: f64, unit: f64) {
        if self.n >= self.cap || !self.pays(STEPS_OF_GROWTH) {
            return self.hold(look, self.n, goodput, WAIT_MIN);
        }
        self.state = State::Growing { before: self.n, goodput, unit };
        self.ask(look, self.n.saturating_mul(2));
    }

    /// The connections that were added to `before` bring too little. They are given up one by one, and the rest of them stays if
    /// goodput falls; a whole group is given up to see whether it does. `chosen` is the goodput to compare with, `now` the present
    /// one.
    fn go_back(&mut self, look: &Look<'_>, before: u32, (chosen, now): (f64, f64), wait: u32) {
        if self.unit == 1 || before >= self.n {
            return self.hold(look, before, chosen, wait);
        }
        self.state = State::Lessening { before: self.n, goodput: now, wait };
        self.ask(look, before);
    }

    /// `n` stays. If that is less than now, the others are given up one by one.
    fn hold(&mut self, look: &Look<'_>, n: u32, goodput: f64, wait: u32) {
        let (wait, last, room) = (wait.min(WAIT_MAX), [None; 3], Room::None);
        self.state = State::Holding(Holding {
            wait,
            left: wait,
            last,
            standing: 0,
            clear: 0,
            chosen: goodput,
            room,
        });
        if n == self.n {
            self.goal = n;
        } else {
            self.ask(look, n);
        }
    }

    /// A queue stands: no more for now.
    fn wait_for_room(&mut self, look: &Look<'_>, goodput: f64) {
        self.hold(look, self.n, goodput, WAIT_MIN);
        self.leave(Room::WhenEmpty);
    }

    /// Sets what follows once a queue has gone.
    fn leave(&mut self, room: Room) {
        if let State::Holding(holding) = &mut self.state {
            holding.room = room;
        }
    }
}

/// Whether few more connections are open than are asked for.
const fn has_rested(open: usize, n: u32) -> bool {
    8 * open <= 9 * n as usize
}

/// The logarithm of the factor from one to the other.
fn growth(from: impl Into<f64>, to: impl Into<f64>) -> f64 {
    libm::log(to.into().max(1.0) / from.into().max(1.0))
}
