//! Files that change their server: trials by servers whose rates are not known, and files that a faster server takes over.

use super::{Given, Handed, Load, Pace, Queue, Sending, Stage, TaskId};
use crate::census::ServerId;

/// A trial that has ended, or a sending that lost against a trial.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::upload) struct Judged {
    pub(in crate::upload) id: TaskId,
    /// Removes its draft.
    pub(in crate::upload) loser: Sending,
    /// The trial that took the file over; `None` if the trial lost.
    pub(in crate::upload) winner: Option<Sending>,
}

/// A file is taken over from a slow server only if that saves this much time, and a tenth of it: rates are measured over a
/// quarter of a second and vary.
const SAVED_SECONDS_MIN: f64 = 0.5;
const SAVED_FACTOR: f64 = 1.1;
/// A smaller file is sent before the rate of a server is known.
const TRIAL_FILE_BYTES_MIN: u64 = 64 << 20;
/// A trial sends no more than this: 0.5 s at 1 Gbit/s.
pub(super) const TRIAL_BYTES_MAX: u64 = 64 << 20;
/// A file that its server will have sent within this time is no trial for another one.
const TRIAL_SECONDS_MIN: f64 = 4.0;

/// What a server would do if it began no trial.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Against {
    /// Nothing.
    Idling,
    /// It would send other files that are left. It tries a file only if the end waits for that one.
    WhatIsLeft,
}
/// The end waits for a file that is this many times as large as the share of one server.
const HOLDING_UP_SHARES: u64 = 2;

impl Queue {
    /// Begins a trial with the file that most of its server's time is left for, and that the fewest others try.
    pub(super) fn on_trial(
        &mut self,
        server: ServerId,
        own: Load,
        loads: &[Option<Load>],
        against: Against,
    ) -> Option<Given> {
        let there = || loads.iter().flatten();
        let all = there().map(|load| load.backlog).sum::<u64>() + self.free_bytes;
        let share = all / there().count().max(1) as u64;
        let left_min = match against {
            Against::Idling => TRIAL_BYTES_MAX,
            Against::WhatIsLeft => TRIAL_BYTES_MAX.max(share * HOLDING_UP_SHARES),
        };
        let rank = |id: &TaskId| {
            let task = &self.tasks[id.0];
            let Stage::At(main) = task.stage else { return None };
            let is_tried = task.trials.iter().any(|trial| trial.server == server)
                || task.refused.contains(&server);
            let fits =
                task.only.is_none() && (TRIAL_FILE_BYTES_MIN..own.full_from).contains(&task.size);
            let there = loads.get(main.server.0).copied().flatten();
            let left = there.and_then(|load| Some(load.backlog as f64 / load.rate?.max(1.0)));
            let is_long = main.left > left_min && left.is_none_or(|left| left > TRIAL_SECONDS_MIN);
            let is_trial = fits
                && main.handed == Handed::Part
                && is_long
                && main.server != server
                && !is_tried;
            is_trial.then_some((std::cmp::Reverse(task.trials.len()), main.left, *id))
        };
        let (.., id) = self.given.iter().filter_map(rank).max()?;
        let task = &mut self.tasks[id.0];
        let sending = task.begin(server);
        task.trials.push(sending);
        Some(Given { id, attempt: sending.attempt, before: None })
    }

    /// Ends the trials of servers whose rates are known by now. Of the two servers the one that is done sooner keeps the file.
    pub(in crate::upload) fn judge(&mut self, loads: &[Option<Load>]) -> Vec<Judged> {
        let load = |server: ServerId| loads.get(server.0).copied().flatten();
        let mut judged = Vec::new();
        for id in &self.given {
            let task = &mut self.tasks[id.0];
            let Stage::At(mut main) = task.stage else { continue };
            let size = task.size;
            task.trials.retain(|trial| {
                let is_enough = size - trial.left >= TRIAL_BYTES_MAX;
                let (Some(here), Some(there)) = (load(trial.server), load(main.server)) else {
                    return true;
                };
                let (Some(rate), Some(rate_there)) = (here.rate, there.rate) else { return true };
                if !is_enough && (here.pace == Pace::Rising || there.pace == Pace::Rising) {
                    return true;
                }
                let time = |left: u64, rate: f64| left as f64 / rate.max(1.0);
                let is_sooner = main.handed == Handed::Part
                    && time(trial.left, rate) < time(main.left.max(there.backlog), rate_there);
                let loser = if is_sooner { std::mem::replace(&mut main, *trial) } else { *trial };
                judged.push(Judged { id: *id, loser, winner: is_sooner.then_some(*trial) });
                false
            });
            task.stage = Stage::At(main);
        }
        judged
    }

    /// A file that another server is slower with than this one would be from its begin, the one that takes longest. Of several
    /// idle servers the fastest takes it.
    pub(super) fn taken_over(
        &self,
        server: ServerId,
        own: Load,
        loads: &[Option<Load>],
    ) -> Option<TaskId> {
        let rate = own.rate?;
        let is_idle_and_faster = |other: &Option<Load>| {
            other.is_some_and(|other| {
                other.backlog == 0 && other.pace == Pace::Settled && other.rate > own.rate
            })
        };
        let seconds_there = |id: &TaskId| {
            let task = &self.tasks[id.0];
            let Stage::At(main) = task.stage else { return None };
            let there = loads.get(main.server.0).copied().flatten()?;
            let seconds = there.backlog as f64 / there.rate?.max(1.0);
            let here = task.size as f64 / rate.max(1.0);
            let is_taken = main.server != server
                && task.only.is_none()
                && main.handed == Handed::Part
                && task.size < own.full_from
                && there.pace == Pace::Settled
                && seconds > here * SAVED_FACTOR + SAVED_SECONDS_MIN;
            is_taken.then_some((seconds, *id))
        };
        let longest = self
            .given
            .iter()
            .filter_map(seconds_there)
            .max_by(|one, other| one.0.total_cmp(&other.0));
        let (_, id) = longest?;
        let size = self.tasks[id.0].size;
        let fits = |other: &&Option<Load>| other.is_some_and(|other| size < other.full_from);
        loads.iter().filter(fits).all(|other| !is_idle_and_faster(other)).then_some(id)
    }
}
