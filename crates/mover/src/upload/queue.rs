//! Which server gets which file.
//!
//! A server that has room takes the largest file with which it would be done before the end of the whole transfer, which
//! follows from what is left and from the rates of all servers. A file that is too large for that goes to the server that
//! would be done with it first. So a slow server gets no file that would hold up the end, and small files are left for the
//! end, where they even out what the large ones left uneven.
//!
//! A server whose rate is not known, and for which no file is left or one that the end of the transfer waits for, gets a trial: it takes a large file that another server
//! is sending, until its rate is known. Then the server that is done sooner keeps the file, and the other one removes its
//! draft. So a few large files reach the fastest of many servers, whichever got them at the begin.

use crate::census::ServerId;
use hikyaku_remote::Pace;
use std::collections::BTreeSet;

mod rate;
mod trial;

pub(super) use rate::Load;
use rate::{end, seconds};
pub(super) use trial::Judged;
use trial::{Against, TRIAL_BYTES_MAX};

/// The number of a task: to bring one file to one server.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(super) struct TaskId(pub(super) usize);

/// One file for one server.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Task {
    /// The number of the file in the plan.
    pub(super) file: usize,
    pub(super) size: u64,
    /// The only server that may have it; `None` for any.
    pub(super) only: Option<ServerId>,
    pub(super) stage: Stage,
    /// Servers that send it as a trial.
    trials: Vec<Sending>,
    /// Servers whose trial ended without a result. They get no second one.
    refused: Vec<ServerId>,
    /// Counts how often it was begun.
    attempts: u32,
}

/// How far a task is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Stage {
    /// No server has it.
    Waiting,
    /// It is sent to a server.
    At(Sending),
    /// The file has its name there, or never will.
    Over,
}

/// A server that is sent a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Sending {
    pub(super) server: ServerId,
    /// Bytes of the file that the server has not written.
    pub(super) left: u64,
    /// Distinguishes late answers of an earlier attempt.
    pub(super) attempt: u32,
    pub(super) handed: Handed,
}

/// How much of a file the connection to a server has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Handed {
    /// A part: the client can still order the removal of the draft.
    Part,
    /// All, and the order to name the file. No other server gets the file unless this connection is lost.
    Whole,
}

impl Task {
    fn begin(&mut self, server: ServerId) -> Sending {
        self.attempts += 1;
        Sending { server, left: self.size, attempt: self.attempts, handed: Handed::Part }
    }
}

/// The tasks.
#[derive(Debug, Default)]
pub(super) struct Queue {
    tasks: Vec<Task>,
    /// Waiting tasks for any server, in ascending order of sizes.
    free: Vec<TaskId>,
    free_bytes: u64,
    /// Waiting tasks for one server, by server.
    only: Vec<Vec<TaskId>>,
    /// Tasks that servers have.
    given: BTreeSet<TaskId>,
    /// How many tasks are not over.
    open: usize,
}

/// A task that a server got.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Given {
    pub(super) id: TaskId,
    pub(super) attempt: u32,
    /// The server that it was taken from.
    pub(super) before: Option<Sending>,
}

/// A sending that has ended without its file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum GivenBack {
    /// It was a trial.
    Trial(Sending),
    /// It was not. A trial may go on in its place.
    Main { sending: Sending, heir: Option<Sending> },
}

/// What was sent of a file that has ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Sent {
    pub(super) main: Option<Sending>,
    pub(super) trials: Vec<Sending>,
}

/// What a sending may do next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Turn {
    /// It sends more.
    GoOn,
    /// It is a trial that has sent enough: it waits until it is judged.
    Wait,
    /// The server is not to get the file any more.
    Over,
}

impl Queue {
    /// The tasks for these files: number, size, and the only server that may have it.
    pub(super) fn new(files: Vec<(usize, u64, Option<ServerId>)>, servers: usize) -> Self {
        let task = |(file, size, only)| Task {
            file,
            size,
            only,
            stage: Stage::Waiting,
            trials: Vec::new(),
            refused: Vec::new(),
            attempts: 0,
        };
        let tasks: Vec<Task> = files.into_iter().map(task).collect();
        let only = vec![Vec::new(); servers];
        let mut queue = Self { open: tasks.len(), tasks, only, ..Self::default() };
        for number in 0..queue.tasks.len() {
            match queue.tasks[number].only {
                Some(server) => queue.only[server.0].push(TaskId(number)),
                None => queue.free.push(TaskId(number)),
            }
        }
        let Self { tasks, free, free_bytes, only, .. } = &mut queue;
        *free_bytes = free.iter().map(|id| tasks[id.0].size).sum();
        let key = |id: &TaskId| (tasks[id.0].size, *id);
        free.sort_unstable_by_key(key);
        only.iter_mut().for_each(|of_server| of_server.sort_unstable_by_key(key));
        queue
    }

    pub(super) fn task(&self, id: TaskId) -> &Task {
        &self.tasks[id.0]
    }

    /// Whether no task is left.
    pub(super) const fn is_empty(&self) -> bool {
        self.open == 0
    }

    /// The tasks that are not over.
    pub(super) fn open(&self) -> impl Iterator<Item = &Task> + '_ {
        self.tasks.iter().filter(|task| task.stage != Stage::Over)
    }

    /// The next task for a server. `loads` are those of all servers, `None` of those that are gone.
    pub(super) fn take(&mut self, server: ServerId, loads: &[Option<Load>]) -> Option<Given> {
        let own = loads.get(server.0).copied().flatten()?;
        if let Some(id) = self.only[server.0].pop() {
            return Some(self.give(id, server));
        }
        // What a slow server has of the file that the end waits for is lost: who might be faster tries it first.
        if own.pace == Pace::Rising
            && own.backlog == 0
            && let Some(given) = self.on_trial(server, own, loads, Against::WhatIsLeft)
        {
            return Some(given);
        }
        if let Some(place) = self.best(server, loads) {
            let id = self.free.remove(place);
            self.free_bytes -= self.tasks[id.0].size;
            return Some(self.give(id, server));
        }
        if !self.free.is_empty() || own.backlog > 0 {
            return None;
        }
        match own.pace {
            Pace::Settled => self.taken_over(server, own, loads).map(|id| self.give(id, server)),
            Pace::Rising => self.on_trial(server, own, loads, Against::Idling),
        }
    }

    fn give(&mut self, id: TaskId, server: ServerId) -> Given {
        let task = &mut self.tasks[id.0];
        let sending = task.begin(server);
        let before = match std::mem::replace(&mut task.stage, Stage::At(sending)) {
            Stage::At(before) => Some(before),
            Stage::Waiting | Stage::Over => None,
        };
        self.given.insert(id);
        Given { id, attempt: sending.attempt, before }
    }

    /// The place in `free` of the largest file, about, that this server should take. The largest file of all is always
    /// looked at, so that the server that is best for it takes it some time.
    fn best(&self, server: ServerId, loads: &[Option<Load>]) -> Option<usize> {
        let end = end(loads, self.free_bytes);
        let is_first = |place: usize| {
            let size = self.tasks[self.free[place].0].size;
            let others = (0..loads.len()).filter(|other| *other != server.0);
            let mut others = others.filter_map(|other| seconds(loads, other, size));
            let own = seconds(loads, server.0, size);
            own.is_some_and(|own| own <= end || others.all(|other| own <= other))
        };
        let mut above = self.free.len();
        let mut place = above.checked_sub(1)?;
        while !is_first(place) {
            above = place;
            place = match place {
                0 => return None,
                _ => place / 2,
            };
        }
        // Between the two there may be larger ones.
        while above - place > 1 {
            let middle = place + (above - place) / 2;
            if is_first(middle) { place = middle } else { above = middle }
        }
        Some(place)
    }

    /// What a sending may do next.
    pub(super) fn turn(&self, id: TaskId, attempt: u32) -> Turn {
        let task = &self.tasks[id.0];
        match task.stage {
            Stage::At(main) if main.attempt == attempt => Turn::GoOn,
            Stage::At(_) => match task.trials.iter().find(|trial| trial.attempt == attempt) {
                Some(trial) if task.size - trial.left >= TRIAL_BYTES_MAX => Turn::Wait,
                Some(_) => Turn::GoOn,
                None => Turn::Over,
            },
            Stage::Waiting | Stage::Over => Turn::Over,
        }
    }

    /// Hands the rest of a file to the connection, with the order to name it. `false` if another server has the file now.
    pub(super) fn hand_over(&mut self, id: TaskId, attempt: u32) -> bool {
        match &mut self.tasks[id.0].stage {
            Stage::At(main) if main.attempt == attempt => {
                main.handed = Handed::Whole;
                true
            }
            Stage::At(_) | Stage::Waiting | Stage::Over => false,
        }
    }

    /// Whether an attempt is a trial.
    pub(super) fn is_trial(&self, id: TaskId, attempt: u32) -> bool {
        self.tasks[id.0].trials.iter().any(|trial| trial.attempt == attempt)
    }

    /// Notes that bytes of a task were written. Returns how many of them count for the server, and how many for the transfer:
    /// those of a trial count when it has won.
    pub(super) fn written(&mut self, id: TaskId, attempt: u32, bytes: u64) -> (u64, u64) {
        let task = &mut self.tasks[id.0];
        if let Stage::At(main) = &mut task.stage
            && main.attempt == attempt
        {
            let counted = bytes.min(main.left);
            main.left -= counted;
            return (counted, counted);
        }
        match task.trials.iter_mut().find(|trial| trial.attempt == attempt) {
            Some(trial) => {
                let counted = bytes.min(trial.left);
                trial.left -= counted;
                (counted, 0)
            }
            None => (0, 0),
        }
    }

    /// A task has ended: the file has its name, or never will.
    pub(super) fn end(&mut self, id: TaskId) -> Sent {
        let task = &mut self.tasks[id.0];
        let before = std::mem::replace(&mut task.stage, Stage::Over);
        let trials = std::mem::take(&mut task.trials);
        self.open -= usize::from(before != Stage::Over);
        self.given.remove(&id);
        let main = if let Stage::At(main) = before { Some(main) } else { None };
        Sent { main, trials }
    }

    /// A server does not send a file any more: it is gone, or cannot take it. The file waits again, unless it was a trial or
    /// another server tries it.
    pub(super) fn give_back(&mut self, id: TaskId, attempt: u32) -> Option<GivenBack> {
        let task = &mut self.tasks[id.0];
        if let Some(place) = task.trials.iter().position(|trial| trial.attempt == attempt) {
            let trial = task.trials.remove(place);
            task.refused.push(trial.server);
            return Some(GivenBack::Trial(trial));
        }
        let Stage::At(sending) = task.stage else { return None };
        if sending.attempt != attempt {
            return None;
        }
        let heir = task.trials.pop();
        if let Some(heir) = heir {
            task.stage = Stage::At(heir);
            return Some(GivenBack::Main { sending, heir: Some(heir) });
        }
        self.given.remove(&id);
        task.stage = Stage::Waiting;
        match task.only {
            Some(server) => self.only[server.0].push(id),
            None => {
                let key = (task.size, id);
                let tasks = &self.tasks;
                let place = self.free.partition_point(|free| (tasks[free.0].size, *free) < key);
                self.free.insert(place, id);
                self.free_bytes += key.0;
            }
        }
        Some(GivenBack::Main { sending, heir: None })
    }

    /// The tasks that are sent to a server, and their attempts.
    pub(super) fn at(&self, server: ServerId) -> Vec<(TaskId, u32)> {
        let there = |id: &TaskId| {
            let task = &self.tasks[id.0];
            let main = if let Stage::At(main) = task.stage { Some(main) } else { None };
            let mut all = main.iter().chain(&task.trials);
            all.find(|sending| sending.server == server).map(|sending| (*id, sending.attempt))
        };
        self.given.iter().filter_map(there).collect()
    }

    /// Takes out the waiting tasks that fit on none of the servers that are there. The caller ends them.
    pub(super) fn too_large(&mut self, loads: &[Option<Load>]) -> Vec<TaskId> {
        let room = loads.iter().flatten().map(|load| load.full_from).max().unwrap_or(u64::MAX);
        let fit = self.free.partition_point(|id| self.tasks[id.0].size < room);
        let too_large = self.free.split_off(fit);
        self.free_bytes -= too_large.iter().map(|id| self.tasks[id.0].size).sum::<u64>();
        too_large
    }

    /// Takes out all tasks that are not over. The caller ends them.
    pub(super) fn all(&mut self) -> Vec<TaskId> {
        self.free.clear();
        self.free_bytes = 0;
        self.only.iter_mut().for_each(Vec::clear);
        let open =
            |(number, task): (usize, &Task)| (task.stage != Stage::Over).then_some(TaskId(number));
        self.tasks.iter().enumerate().filter_map(open).collect()
    }
}

#[cfg(test)]
mod tests;
