//! Who else is at the bottleneck, and what is done about it.

use super::Controller;
use crate::common::{Sight, TELLING};
use crate::compete::deaf::{Company, Heard};
use crate::compete::{Beside, Compete, Drained};
use crate::pacer::Grain;
use crate::settings::Policy;
use crate::share::{Due, Seen};
use core::time::Duration;
use hikyaku_units::Instant;
use libm::{fmax, fmin};

/// More than this of a queue stays when we all drain twice as much: it is not ours. Of what up to sixteen of ours
/// hold a fifth stays at the most, three tenths where round trips are 200 ms; beside TCP, whose own cut may fall into
/// a drain, less than this is rare.
const OTHERS: f64 = 0.35;
/// Who competes holds a part of it, of which twice as much is drained: only where less than this stays are
/// the others gone.
const NOBODY: f64 = 0.15;
/// Others with whom nothing has overflowed for so long are not of the kind that fills every queue. Flows of CUBIC that
/// share 1 Gbit/s and 40 ms overflow any queue in less, and with them who holds most of the path is to make room: gone from
/// the competition every other drain, it has a third of the path beside four in place of two fifths.
const QUIET: Duration = Duration::from_secs(20);
/// Beside those, who holds more than two fifths of the path empties the queue in any drain: they show only in how slowly it
/// goes. Where less than this of what should be gone is still there, they are gone.
const SLOWLY: f64 = 0.2;
/// Where so much is left of that, they are there whatever stays in the end: every ten seconds BBR sends next to nothing for
/// a fifth of a second, and it does so in common drains, for an empty queue is what it counts from.
const RATHER_SLOWLY: f64 = 0.3;
/// Who is left next to nothing, and loses packets all the time, believes the mean: one flow of BBR after the other
/// fills the queue and empties it again, several times in a drain (in the lab 23 - 97 % stay on average, 0 - 30 % at
/// the least). Of ours a twentieth stays, and rarely more than this; but they are not starved.
const STARVED: f64 = 0.3;
/// Two drains in a row must show them: a queue may have been about to grow, or those with longer round trips may have
/// known of a shorter one. One that does not takes back half of one that did: TCP cuts its windows when it likes, at
/// times in every other drain.
const SIGHT: u32 = 2;
const SIGHTS: u32 = 2 * SIGHT;
/// One is enough where next to all stays, at the half of it and in the end: of what ours hold never so much does. Beside TCP
/// that has just begun nine tenths stay, and who waits for a second drain comes to a queue that TCP has filled meanwhile.
const SURE: f64 = 0.7;
/// Of what the path has carried, this leaves others enough.
const MODEST: f64 = 0.2;
/// And of what it carries for all, this is no little: beside one flow four fifths of an equal share, while four keep three
/// quarters of theirs. Without it four that began with us left us half of the path.
const PLENTY: f64 = 0.4;
/// Who has more than is due grows only when the others have had time for it: so many rounds without a
/// queue if nothing is due, none if all is.
const GIVEN: f64 = 16.0;
/// Nor so many rounds that they take longer than this, in seconds: nobody else may be there.
const WAITED: f64 = 2.0;

/// Those with whom we compete.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Others {
    /// They overflow the queue and give way then, as we do.
    Brisk,
    /// Nothing has overflowed for a while: they hold a queue and no more, as BBR does in a deep one.
    Patient,
    /// They overflow it, do not mind, and leave us next to nothing.
    Deaf,
}

impl Controller {
    /// Nanoseconds of the calendar at [`Instant::ZERO`]: by it flows that know nothing of each other look
    /// at their common path at the same time. Without it they share less evenly, and give way to TCP.
    pub const fn set_calendar(&mut self, at_zero: u64) {
        self.commons.set_calendar(at_zero);
    }

    // spec: rate-4
    /// Looks whether it is time to drain, and at what that has shown.
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
                    // One drain is enough to see them again.
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

    /// How packets are to leave.
    pub const fn grain(&self) -> Grain {
        if self.compete.is_some() { Grain::Fine } else { Grain::Usual }
    }

    /// Whether others hold a queue of which these shares stayed: at the least, and after half of the time.
    fn is_held(&self, now: Instant, stayed: f64, kept: f64) -> bool {
        match self.others(now) {
            None => stayed > OTHERS,
            Some(Others::Patient) => kept > SLOWLY,
            Some(Others::Brisk) => stayed > NOBODY || kept > RATHER_SLOWLY,
            Some(Others::Deaf) => stayed > NOBODY,
        }
    }

    /// Who overflows nothing does not take from us what is theirs. A drain of this queue has left the share `kept` of what
    /// should have been gone at its half.
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

    /// What one drain that shows nobody takes back of those that showed others.
    fn doubt(&self, now: Instant) -> u32 {
        match self.others(now) {
            // BBR sends next to nothing in every other drain, and its probes say that it is there.
            None if self.neighbours.pulse() => 0,
            None | Some(Others::Deaf) => 1,
            Some(Others::Patient) => SIGHT,
            Some(Others::Brisk) => SIGHTS,
        }
    }

    /// Whether we compete.
    const fn company(&self) -> Company {
        if self.compete.is_some() { Company::Others } else { Company::None }
    }

    /// With whom we compete, if we do.
    fn others(&self, now: Instant) -> Option<Others> {
        let compete = self.compete.as_ref()?;
        if self.neighbours.starve_us() {
            return Some(Others::Deaf);
        }
        let has_overflowed = compete.last_overflow().is_some_and(|at| now - at < QUIET);
        Some(if has_overflowed { Others::Brisk } else { Others::Patient })
    }

    /// The queue is ours alone: whoever has more than the others gives, whoever has less takes. Everybody
    /// sees the same median of it, so all go by it or nobody does.
    fn even_out(&mut self, now: Instant) {
        let Some(Seen { queue, rate }) = self.share.seen().filter(|seen| seen.queue > TELLING)
        else {
            return;
        };
        let (target, round_trip) = (self.target(rate), self.round_trip());
        let Due { factor, due } = self.share.even(target, queue, round_trip);
        if factor < 1.0 {
            // What is given is not taken back as something known.
            self.path.give(now, factor * rate);
        }
        if factor != 1.0 {
            self.law.set_window(fmax(factor * self.law.window(), self.min_window()));
        }
        // Nor is what becomes free at once: it is for those who have less.
        let most = fmin(GIVEN, WAITED / fmax(self.round_trip(), 1e-3));
        self.law.wait((most * fmax(1.0 - due, 0.0)) as u32);
        if due > 1.0 {
            self.law.hurry();
        }
    }

    /// A round is over: packets `seen`, and how many of them were lost.
    pub(super) fn note_neighbours(&mut self, seen: (u64, u64), is_used: bool) {
        let (Some(rate), true) = (self.path.rate(), is_used) else { return };
        self.neighbours.carried(self.path.largest_rate());
        self.neighbours.on_round(Heard { seen, queue: self.queue, rate }, self.company());
    }

    /// Whether others do not answer to loss, so that we do not either.
    pub(super) fn is_among_deaf(&self) -> bool {
        self.compete.as_ref().is_some_and(|compete| compete.pace().is_some())
    }

    /// A round beside others is over.
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
