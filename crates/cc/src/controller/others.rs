//! Who else is at the bottleneck, and what is done about it.

use super::Controller;
use crate::common::{Sight, TELLING};
use crate::compete::deaf::{Company, Heard};
use crate::compete::{Beside, Compete};
use crate::pacer::Grain;
use crate::settings::Policy;
use crate::share::{Due, Seen, even};
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
/// Who is left next to nothing, and loses packets all the time, believes the mean: one flow of BBR after the other
/// fills the queue and empties it again, several times in a drain (in the lab 23 - 97 % stay on average, 0 - 30 % at
/// the least). Of ours a twentieth stays, and rarely more than this; but they are not starved.
const STARVED: f64 = 0.3;
/// Two drains in a row must show them: a queue may have been about to grow, or those with longer round trips may have
/// known of a shorter one. One that does not takes back half of one that did: TCP cuts its windows when it likes, at
/// times in every other drain.
const SIGHT: u32 = 2;
const SIGHTS: u32 = 2 * SIGHT;
/// Of what the path has carried, this leaves others enough.
const MODEST: f64 = 0.2;
/// Who has more than is due grows only when the others have had time for it: so many rounds without a
/// queue if nothing is due, none if all is.
const GIVEN: f64 = 16.0;
/// Nor so many rounds that they take longer than this, in seconds: nobody else may be there.
const WAITED: f64 = 2.0;

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
        match sight {
            Some(Sight::Stayed { before, lowest, mean })
                if lowest > self.telling() * before
                    || self.neighbours.starve_us() && mean > STARVED * before =>
            {
                self.sights = (self.sights + SIGHT).min(SIGHTS);
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
                self.sights = self.sights.saturating_sub(1);
                // Who starves does not take one drain for the contrary.
                let stays = self.neighbours.starve_us() && self.sights > 0;
                if self.compete.is_none() {
                    self.even_out(now);
                } else if !stays {
                    self.paused = self.compete.take();
                    let rate = self.path.rate().unwrap_or(0.0);
                    self.law.set_window(self.equilibrium(rate));
                }
            }
            None => return,
        }
        self.share.restart();
    }

    /// How packets are to leave.
    pub const fn grain(&self) -> Grain {
        if self.compete.is_some() { Grain::Fine } else { Grain::Usual }
    }

    /// What share of a queue must stay for others to be there.
    const fn telling(&self) -> f64 {
        if self.compete.is_some() { NOBODY } else { OTHERS }
    }

    /// The queue is ours alone: whoever has more than the others gives, whoever has less takes. Everybody
    /// sees the same median of it, so all go by it or nobody does.
    fn even_out(&mut self, now: Instant) {
        let Some(Seen { queue, rate }) = self.share.seen().filter(|seen| seen.queue > TELLING)
        else {
            return;
        };
        let Due { factor, due } = even(self.target(rate), queue, self.round_trip());
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
        let company = if self.compete.is_some() { Company::Others } else { Company::None };
        self.neighbours.carried(self.path.largest_rate());
        self.neighbours.on_round(Heard { seen, queue: self.queue, rate }, company);
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
