//! The threads that bring whole files to the disk and give them their names.

use super::run::{Run, Stage, State};
use super::{FetchError, Hashes};
use crate::many;
use crate::target::Target;
use hikyaku_run_log::FileStage;
use hikyaku_store::{Found, Latency, Op, Reply, Result};
use std::sync::PoisonError;
use std::thread::{self, Scope};
use std::time::Duration;

/// Files, or groups of small ones, that are synced and named at once: each waits for the disk, or for a round trip.
const NAMERS: usize = 16;
/// Small files that are named by one call to a store behind a network.
const GROUP_MAX: usize = 64;
/// Small files that are named by one call to a store of this machine, which syncs a group as a whole.
const LOCAL_GROUP_MAX: usize = 1024;
/// Groups that are under way at once although they are not full. Files that come meanwhile wait for the next group.
const GROUPS: usize = 4;
/// Bytes of small files that wait for their names in memory.
const HELD_MAX: u64 = 32 << 20;
/// Whether a transfer is over is looked for this often.
const LOOK: Duration = Duration::from_millis(100);

impl Run<'_> {
    pub(super) fn name<'scope>(
        &'scope self,
        scope: &'scope Scope<'scope, '_>,
    ) -> std::io::Result<()> {
        for _ in 0..NAMERS.min(self.targets.len()) {
            let named = thread::Builder::new().name("mover-names".to_owned());
            named.spawn_scoped(scope, || self.name_all())?;
        }
        Ok(())
    }

    /// Waits until there is room for a small file, which stays in memory until it has its name.
    pub(super) fn hold(&self, bytes: u64) {
        let mut state = self.state();
        while state.held > 0 && state.held + bytes > HELD_MAX && !state.is_over {
            let waited = self.has_room.wait_timeout(state, LOOK);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        state.held += bytes;
    }

    /// Releases the room of `bytes` of small files, and wakes the threads that wait for room.
    pub(super) fn release(&self, bytes: u64) {
        self.state().held -= bytes;
        self.has_room.notify_all();
    }

    /// Names files that are whole, until all is over.
    fn name_all(&self) {
        while let Some(numbers) = self.next_group() {
            let (small, large): (Vec<usize>, Vec<usize>) =
                numbers.into_iter().partition(|number| self.is_small(*number));
            for number in large {
                let Some(target) = &self.targets[number] else { continue };
                let tried = target.tries();
                let file = &self.job.plan.files[number];
                match self.job.expected.map_or(Ok(true), |expected| target.meets(expected, file)) {
                    Ok(true) => self.named((number, tried), target.finish()),
                    Ok(false) => self.refuse(number),
                    Err(error) => self.named((number, tried), Err(error)),
                }
            }
            self.put(&small);
        }
    }

    fn is_small(&self, number: usize) -> bool {
        self.targets[number].as_ref().is_some_and(Target::is_whole)
    }

    fn is_local(&self) -> bool {
        self.job.store.abilities().latency == Latency::Local
    }

    /// Whether a group of small files may begin: few are under way, or one behind a network is full.
    fn may_begin(&self, state: &State) -> bool {
        state.groups < GROUPS || (!self.is_local() && state.whole.len() >= GROUP_MAX)
    }

    /// Wakes a thread for a file that is whole, unless the file waits for its group.
    pub(super) fn wake_namer(&self, state: &State, number: usize) {
        if self.may_begin(state) || !self.is_small(number) {
            self.to_name.notify_one();
        }
    }

    /// The next files: one, or small ones that wait; `None` if all is over.
    fn next_group(&self) -> Option<Vec<usize>> {
        let mut state = self.state();
        let first = loop {
            let has_room = self.may_begin(&state);
            let is_ready = |number: &usize| has_room || !self.is_small(*number);
            match state.whole.iter().rposition(is_ready) {
                Some(at) => break state.whole.swap_remove(at),
                None if state.is_over => return None,
                None => {}
            }
            state = self.to_name.wait(state).unwrap_or_else(PoisonError::into_inner);
        };
        let mut group = vec![first];
        if !self.is_small(first) {
            return Some(group);
        }
        state.groups += 1;
        let most = if self.is_local() { LOCAL_GROUP_MAX } else { GROUP_MAX };
        while group.len() < most && state.whole.last().is_some_and(|next| self.is_small(*next)) {
            group.extend(state.whole.pop());
        }
        Some(group)
    }

    /// Writes small files whole, and names them.
    fn put(&self, numbers: &[usize]) {
        let target = |number: &usize| {
            let target = self.targets[*number].as_ref()?;
            Some((*number, target, target.content()?))
        };
        let files: Vec<_> = numbers.iter().filter_map(target).collect();
        for (number, target, bytes) in &files {
            let Some(expected) = self.job.expected else { break };
            match expected.is_met(&self.job.plan.files[*number], &reading(bytes)) {
                Ok(true) => {}
                Ok(false) => self.refuse(*number),
                Err(error) => self.fail(&mut self.state(), (*number, target.tries()), error),
            }
        }
        let (wanted, left): (Vec<_>, Vec<_>) = {
            let state = self.state();
            // A file that was given up is not made.
            files.into_iter().partition(|(number, ..)| state.stages[*number] == Stage::Whole)
        };
        let ops: Vec<Op<'_>> = wanted.iter().map(|(_, target, bytes)| target.put(bytes)).collect();
        let results = many::all(&*self.job.store, &ops);
        drop(ops);
        self.state().groups -= usize::from(!numbers.is_empty());
        self.to_name.notify_one();
        let (mut bytes, mut done) = (0, Vec::new());
        for (number, target, mut content) in wanted.into_iter().chain(left) {
            bytes += std::mem::take(&mut *content).len() as u64;
            done.push((number, target.tries()));
        }
        self.release(bytes);
        for (number, result) in done.into_iter().zip(results) {
            self.named(number, result.map(made));
        }
    }

    /// A file is not the expected one.
    fn refuse(&self, number: usize) {
        self.give_up(&mut self.state(), number, FetchError::Unexpected);
    }

    fn named(&self, (number, tried): (usize, u32), named: Result<Option<Found>>) {
        if let (Ok(Some(made)), Some(target)) = (&named, &self.targets[number]) {
            target.record_end(made);
        }
        let hash = match (self.job.hashes, &named, &self.targets[number]) {
            (Hashes::Listed, Ok(_), Some(target)) => target.hash(),
            _ => None,
        };
        let mut state = self.state();
        match named {
            Ok(_) if state.stages[number] == Stage::Whole => {
                let to = self.job.plan.files[number].to.as_bytes().to_vec();
                state.fetched.hashes.extend(hash.map(|hash| (to, hash)));
                self.count(&mut state, number);
            }
            Ok(_) => {}
            Err(error) => self.fail(&mut state, (number, tried), error),
        }
    }

    /// A file has its name.
    fn count(&self, state: &mut State<'_>, number: usize) {
        let file = &self.job.plan.files[number];
        state.stages[number] = Stage::Over;
        state.unnamed -= 1;
        if state.unnamed == 0 {
            self.wake();
        }
        state.fetched.files += 1;
        state.fetched.bytes += file.seen.size;
        self.job.meter.add_file();
        self.job.meter.tell_file(FileStage::End, file.path.as_bytes(), file.seen.size);
    }
}

#[cfg(test)]
mod tests;

/// Reads a file that is in memory.
fn reading(bytes: &[u8]) -> impl Fn(u64, &mut [u8]) -> Result<usize> + '_ {
    |at, into| {
        let rest = usize::try_from(at).ok().and_then(|at| bytes.get(at..)).unwrap_or_default();
        let length = rest.len().min(into.len());
        into[..length].copy_from_slice(&rest[..length]);
        Ok(length)
    }
}

/// The metadata of a small file that was named; `None` if the reply has no metadata.
fn made(reply: Reply) -> Option<Found> {
    match reply {
        Reply::Found(found) => Some(found),
        Reply::Done | Reply::Text(_) => None,
    }
}
