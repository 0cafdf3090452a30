//! Detection of other flows at the bottleneck, and the response to them.

use super::Controller;
use crate::common::{Sight, TELLING};
use crate::compete::deaf::{Company, Heard};
use crate::compete::{Beside, Compete, Drained};
use crate::pacer::Grain;
use crate::settings::Policy;
use crate::share::{Due, Seen};
use core::num::NonZeroU32;
use core::time::Duration;
use hikyaku_units::Instant;
use libm::{fmax, fmin};

/// Part of a queue that must remain after a common drain of twice the queue for it to belong to other flows. Of the queue
/// of up to 16 hikyaku flows at most a fifth remains, three tenths with round trips of 200 ms. Beside TCP, whose own
/// reduction may coincide with a drain, less than this is rare.
const OTHERS: f64 = 0.35;
/// A competing flow holds a part of the queue and drains twice that part: the other flows have ended only if less than this
/// part of the queue remains.
const NOBODY: f64 = 0.15;
/// Other flows without an overflow for this time do not fill every queue. CUBIC flows on 1 Gbit/s and 40 ms overflow any
/// queue within it. Beside them a flow that holds most of the path must make room: if it stopped competing every second
/// drain, it would have a third of the path beside four flows instead of two fifths.
const QUIET: Duration = Duration::from_secs(20);
/// Beside such flows, a flow with more than two fifths of the path empties the queue in every drain. The others are
/// detected only by how slowly the queue drains: they have ended if less than this part of the expected decrease is
/// missing.
const SLOWLY: f64 = 0.2;
/// Missing part of the expected decrease from which on the other flows are active, whatever remains at the end: every ten
/// seconds BBR reduces its rate to almost zero for a fifth of a second. It does so in common drains, because it measures
/// that interval from an empty queue.
const RATHER_SLOWLY: f64 = 0.3;
/// Mean part of the queue during a drain that is enough for a starved flow which keeps losing packets: several BBR flows
/// fill the queue and empty it in turn, several times in a drain (in the lab the mean is 23 to 97 %, the minimum 0 to
/// 30 %). Of the queue of hikyaku flows a twentieth remains, rarely more than this; but they are not starved.
const STARVED: f64 = 0.3;
/// Weight of a drain that detects other flows; two consecutive ones are needed. A single one may coincide with a growing
/// queue, or flows with longer round trips may have drained a shorter queue. A drain without detection cancels half of one
/// with it: TCP reduces its windows at any time, sometimes in every second drain.
const SIGHT: u32 = 2;
const SIGHTS: u32 = 2 * SIGHT;
/// Remaining part of the queue, at the middle and at the end of a drain, from which on one drain is enough: of the queue of
/// hikyaku flows less always remains. Beside TCP flows that have just started it is nine tenths, and until a second drain
/// they would fill the queue.
const SURE: f64 = 0.7;
/// Part of the largest rate that leaves other flows enough.
const MODEST: f64 = 0.2;
/// Part of the path's total rate that is enough for this flow: four fifths of an equal share beside one flow, while four
/// flows keep three quarters of theirs. Without this bound, four flows that started at the same time left half of the
/// path.
const PLENTY: f64 = 0.4;
/// Rounds without a queue for which a flow above its fair share leaves growth to others: this number if its fair share is
/// zero, none if it has exactly its fair share.
const GIVEN: f64 = 16.0;
/// Bound of that time in seconds, because there may be no other flow.
const WAITED: f64 = 2.0;

/// The kind of the other flows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Others {
    /// They overflow the queue and reduce their rate then, as this flow does.
    Brisk,
    /// No overflow for [`QUIET`]: they hold a bounded queue, as BBR does in a deep one.
    Patient,
    /// They overflow the queue, do not respond to loss, and starve this flow.
    Deaf,
}

impl Controller {
    /// Sets the nanoseconds of the calendar at [`Instant::ZERO`]: by the calendar, flows without any other communication
    /// probe their common path at the same time. Without it they share less evenly, and TCP displaces them.
    pub const fn set_calendar(&mut self, at_zero: u64) {
        self.commons.set_calendar(at_zero);
    }

    /// Sets the number of connections that send by the thread of this one: each waits for the batches of the others,
    /// and on a short path is reported on less often (see [`crate::ack_interval_beside`]).
    pub const fn set_sharers(&mut self, sharers: NonZeroU32) {
        self.sharers = sharers;
    }

    // spec: rate-4
    /// Begins or ends a common drain by the calendar, and responds to its result.
    pub(super) fn look_for_others(&mut self, now: Instant) {
        let round_trip = Duration::from_secs_f64(self.round_trip());
        let latest = self.path.smooth_queue() - self.floor;
        let sight = self.commons.on_time(now, round_trip, (self.queue, latest));
        self.round.touched |= self.commons.is_active();
        if let (Some(Sight::Stayed { kept, .. }), Some(rate)) = (sight, self.path.rate()) {
            self.neighbours.kept(rate, kept);
        }
        match sight {
            Some(Sight::Stayed { before, lowest, mean, kept })
                if self.is_held(now, lowest / before, kept)
                    || self.neighbours.starve_us() && mean > STARVED * before =>
            {
                let is_sure = fmin(lowest / before, kept) > SURE;
                let sight = if is_sure { SIGHTS } else { SIGHT };
                self.sights = (self.sights + sight).min(SIGHTS);
                self.make_room(now, kept, before);
                if self.sights >= SIGHTS && self.config.policy == Policy::Fair {
                    let window = self.law.window();
                    let paused = self.paused.take();
                    self.compete.get_or_insert_with(|| match paused {
                        Some(before) => before.resumed(window),
                        None => Compete::new(window),
                    });
                }
            }
            Some(_) => {
                self.sights = self.sights.saturating_sub(self.doubt(now));
                if self.compete.is_none() {
                    self.even_out(now);
                } else if self.sights == 0 {
                    // The next drain that detects other flows is enough.
                    self.sights = SIGHT;
                    self.paused = self.compete.take();
                    let rate = self.path.rate().unwrap_or(0.0);
                    self.law.set_window(self.equilibrium(rate));
                }
            }
            None => return,
        }
        self.path.remember_base(self.company());
        self.share.restart();
    }

    /// The granularity of pacing.
    pub const fn grain(&self) -> Grain {
        if self.compete.is_some() { Grain::Fine } else { Grain::Usual }
    }

    /// Whether a queue belongs to other flows, by the parts that remained: at the minimum, and at the middle of the drain.
    fn is_held(&self, now: Instant, stayed: f64, kept: f64) -> bool {
        match self.others(now) {
            None => stayed > OTHERS,
            Some(Others::Patient) => kept > SLOWLY,
            Some(Others::Brisk) => stayed > NOBODY || kept > RATHER_SLOWLY,
            Some(Others::Deaf) => stayed > NOBODY,
        }
    }

    /// Reduces the rate to leave other flows their share, if they cause no overflow. At the middle of a drain of the queue
    /// `before`, the part `kept` of the expected decrease was missing.
    fn make_room(&mut self, now: Instant, kept: f64, queue: f64) {
        let had = self.path.rate().unwrap_or(0.0) / fmax(self.neighbours.bottleneck(), 1.0);
        let drained = Drained { now, queue, base: self.round_trip(), kept, had };
        let is_patient = self.others(now) == Some(Others::Patient);
        if let Some(compete) = &mut self.compete
            && is_patient
        {
            compete.make_room(&drained);
        }
    }

    /// The weight of a drain without detection.
    fn doubt(&self, now: Instant) -> u32 {
        match self.others(now) {
            // BBR sends almost nothing in every second drain, and its probes are a sign of it.
            None if self.neighbours.pulse() => 0,
            None | Some(Others::Deaf) => 1,
            Some(Others::Patient) => SIGHT,
            Some(Others::Brisk) => SIGHTS,
        }
    }

    /// Whether this flow competes.
    const fn company(&self) -> Company {
        if self.compete.is_some() { Company::Others } else { Company::None }
    }

    /// The kind of flows with which this flow competes.
    fn others(&self, now: Instant) -> Option<Others> {
        let compete = self.compete.as_ref()?;
        if self.neighbours.starve_us() {
            return Some(Others::Deaf);
        }
        let has_overflowed = compete.last_overflow().is_some_and(|at| now - at < QUIET);
        Some(if has_overflowed { Others::Brisk } else { Others::Patient })
    }

    /// Moves the rate towards the fair share, if only hikyaku flows hold the queue. All of them measure one median, so
    /// either all of them correct their rates or none does.
    fn even_out(&mut self, now: Instant) {
        let Some(Seen { queue, rate }) = self.share.seen().filter(|seen| seen.queue > TELLING)
        else {
            return;
        };
        let (target, round_trip) = (self.target(rate), self.round_trip());
        let Due { factor, due } = self.share.even(target, queue, round_trip);
        if factor < 1.0 {
            // The released rate must not be taken back as the known rate of the path.
            self.path.give(now, factor * rate);
        }
        if factor != 1.0 {
            self.law.set_window(fmax(factor * self.law.window(), self.min_window()));
        }
        // Free capacity is for flows with smaller rates first.
        let most = fmin(GIVEN, WAITED / fmax(self.round_trip(), 1e-3));
        self.law.wait((most * fmax(1.0 - due, 0.0)) as u32);
        if due > 1.0 {
            self.law.hurry();
        }
    }

    /// Adds a round: packets `seen`, and the lost ones among them.
    pub(super) fn note_neighbours(&mut self, seen: (u64, u64), is_used: bool) {
        let (Some(rate), true) = (self.path.rate(), is_used) else { return };
        self.neighbours.carried(self.path.largest_rate());
        self.neighbours.on_round(Heard { seen, queue: self.queue, rate }, self.company());
    }

    /// Whether other flows do not respond to loss, so that this flow does not either.
    pub(super) fn is_among_deaf(&self) -> bool {
        self.compete.as_ref().is_some_and(|compete| compete.pace().is_some())
    }

    /// Adjusts the window after a round beside other flows.
    pub(super) fn compete(&mut self, now: Instant, excess: f64, is_used: bool) {
        let base_rtt = self.round_trip();
        let round = Beside {
            now,
            round_trip: base_rtt + self.queue,
            packet: self.config.datagram as f64,
            modest: MODEST * self.neighbours.capacity() * (base_rtt + self.queue),
            plenty: PLENTY * self.neighbours.bottleneck() * (base_rtt + self.queue),
            among_deaf: self.neighbours.pace(base_rtt),
            overflowed: excess > 0.0,
            is_used,
        };
        let Some(compete) = &mut self.compete else { return };
        compete.on_round(&round);
        let window = compete.window().max(self.min_window());
        self.law.set_window(window);
    }
}
