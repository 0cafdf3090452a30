//! Which server gets which file.
//!
//! A server that has room takes the largest file with which it would be done before the end of the whole transfer, which
//! follows from what is left and from the rates of all servers. A file that is too large for that goes to the server that
//! would be done with it first. So a slow server gets no file that would hold up the end, and small files are left for the
//! end, where they even out what the large ones left uneven.

use crate::census::ServerId;
use std::collections::BTreeSet;

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
    /// Counts how often it was begun, to tell late answers from those that matter.
    pub(super) attempt: u32,
}

/// How far a task is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Stage {
    /// No server has it.
    Waiting,
    /// It is sent to this server, which has not written so many bytes of it.
    At { server: ServerId, left: u64 },
    /// The file has its name there, or never will.
    Over,
}

/// What a server has to do, and how fast it is.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Load {
    /// Bytes of files that it was given and that are not written.
    pub(super) backlog: u64,
    /// Bytes a second, if that is known.
    pub(super) rate: Option<f64>,
    /// Files of this size or more do not fit there.
    pub(super) full_from: u64,
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
    /// Where it was before.
    pub(super) before: Stage,
}

/// A file is taken over from a slow server only if that saves this much time, and a third.
const SAVED_SECONDS_MIN: f64 = 1.0;
const SAVED_FACTOR: f64 = 1.5;

impl Queue {
    /// The tasks for these files: number, size, and the only server that may have it.
    pub(super) fn new(files: Vec<(usize, u64, Option<ServerId>)>, servers: usize) -> Self {
        let task =
            |(file, size, only)| Task { file, size, only, stage: Stage::Waiting, attempt: 0 };
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
        let id = match self.only[server.0].pop() {
            Some(id) => id,
            None => match self.best(server, loads) {
                Some(place) => {
                    let id = self.free.remove(place);
                    self.free_bytes -= self.tasks[id.0].size;
                    id
                }
                None if self.free.is_empty() => self.taken_over(server, own, loads)?,
                None => return None,
            },
        };
        let task = &mut self.tasks[id.0];
        task.attempt += 1;
        let before = std::mem::replace(&mut task.stage, Stage::At { server, left: task.size });
        self.given.insert(id);
        Some(Given { id, before })
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

    /// A file that another server is much slower with than this one would be from its beginning.
    fn taken_over(&self, server: ServerId, own: Load, loads: &[Option<Load>]) -> Option<TaskId> {
        let rate = own.rate?;
        let is_slow = |task: &Task| match task.stage {
            Stage::At { server: at, left } if at != server && task.only.is_none() && left > 0 => {
                let there = loads.get(at.0).copied().flatten();
                let here = (own.backlog + task.size) as f64 / rate.max(1.0);
                let seconds =
                    there.and_then(|load| Some(load.backlog as f64 / load.rate?.max(1.0)));
                task.size < own.full_from
                    && seconds
                        .is_some_and(|seconds| seconds > here * SAVED_FACTOR + SAVED_SECONDS_MIN)
            }
            _ => false,
        };
        let slow = self.given.iter().copied().filter(|id| is_slow(&self.tasks[id.0]));
        slow.max_by_key(|id| self.tasks[id.0].size)
    }

    /// Notes that bytes of a task were written; returns how many of them count.
    pub(super) fn written(&mut self, id: TaskId, bytes: u64) -> u64 {
        match &mut self.tasks[id.0].stage {
            Stage::At { left, .. } => {
                let counted = bytes.min(*left);
                *left -= counted;
                counted
            }
            Stage::Waiting | Stage::Over => 0,
        }
    }

    /// A task that a server has, or that waits nowhere any more, has ended.
    pub(super) fn end(&mut self, id: TaskId) {
        let before = std::mem::replace(&mut self.tasks[id.0].stage, Stage::Over);
        self.open -= usize::from(before != Stage::Over);
        self.given.remove(&id);
    }

    /// A task waits again: its server is gone, or cannot take it.
    pub(super) fn give_back(&mut self, id: TaskId) {
        self.given.remove(&id);
        let task = &mut self.tasks[id.0];
        task.stage = Stage::Waiting;
        task.attempt += 1;
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
    }

    /// The tasks that are sent to a server.
    pub(super) fn at(&self, server: ServerId) -> Vec<TaskId> {
        let is_there = |id: &TaskId| matches!(self.tasks[id.0].stage, Stage::At { server: at, .. } if at == server);
        self.given.iter().copied().filter(is_there).collect()
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

/// Seconds until a server would be done with a file of this size beside what it has; `None` if it is gone or full.
fn seconds(loads: &[Option<Load>], server: usize, size: u64) -> Option<f64> {
    let load = loads.get(server).copied().flatten().filter(|load| size < load.full_from)?;
    let rate = load.rate.unwrap_or_else(|| usual_rate(loads));
    Some((load.backlog + size) as f64 / rate.max(1.0))
}

/// Seconds until all servers together would be done with what they have and so many bytes more.
fn end(loads: &[Option<Load>], more: u64) -> f64 {
    let usual = usual_rate(loads);
    let there = || loads.iter().flatten();
    let left = there().map(|load| load.backlog).sum::<u64>() + more;
    let rate: f64 = there().map(|load| load.rate.unwrap_or(usual)).sum();
    left as f64 / rate.max(1.0)
}

/// The median of the known rates, for a server whose rate is not known. Without any, all count as equal.
fn usual_rate(loads: &[Option<Load>]) -> f64 {
    let mut rates: Vec<f64> = loads.iter().flatten().filter_map(|load| load.rate).collect();
    rates.sort_unstable_by(f64::total_cmp);
    rates.get(rates.len() / 2).copied().unwrap_or(1.0)
}

#[cfg(test)]
mod tests;
