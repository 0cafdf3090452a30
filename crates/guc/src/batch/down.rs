//! Small files from a server.

use super::Fates;
use crate::download::get;
use crate::local::store;
use crate::outcome::Changed;
use crate::session::Session;
use crate::several::Down;
use anyhow::{Context, Error};
use hikyaku_fs::{Draft, Name, Replace};
use hikyaku_gridftp::{Part, Store, Wanted};
use hikyaku_store_ftp::{Batch, Steps};
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

/// Threads that sync the files of a batch: a disk syncs several in little more than the time of one.
const SYNC_THREADS: usize = 4;

pub(super) fn download_all(session: &mut Session<'_>, files: Vec<Down>) -> Vec<Error> {
    let fates = Fates::new(files.len());
    if let Some(depth) = session.depth().filter(|_| files.len() > 1) {
        session.prepare_names(files.iter().map(|file| file.path.as_slice()));
        let partials: Result<Vec<_>, _> = files.iter().map(|file| file.spot.partial()).collect();
        let Ok(partials) = partials else {
            return fates.finish(session, files, |session, file| file.carry_out(session));
        };
        let note =
            |(file, partial): (&Down, &Name)| session.notes.note_here(&file.spot.dir, partial);
        let _notes: Vec<_> = files.iter().zip(&partials).map(note).collect();
        let synced = receive_all(session, (&files, &partials), depth, &fates);
        name_all(session, &files, synced, &fates);
    }
    fates.finish(session, files, |session, file| file.carry_out(session))
}

/// Receives files. Returns those that are on the disk: number and unfinished file of each.
fn receive_all(
    session: &mut Session<'_>,
    (files, partials): (&[Down], &[Name]),
    depth: usize,
    fates: &Fates,
) -> Vec<(usize, Arc<Draft>)> {
    let synced = Mutex::new(Vec::new());
    thread::scope(|scope| {
        // Syncing takes as long as the disk does. Meanwhile other files come.
        let (stored, waiting) = sync_channel::<(usize, Arc<Draft>)>(files.len());
        let waiting = Arc::new(Mutex::new(waiting));
        for _ in 0..SYNC_THREADS {
            let (waiting, synced) = (Arc::clone(&waiting), &synced);
            let next = move || waiting.lock().unwrap_or_else(PoisonError::into_inner).recv();
            scope.spawn(move || {
                while let Ok((number, draft)) = next() {
                    let file = &files[number];
                    // Many that wait for their names need no descriptors.
                    let done = file.spot.complete(&draft).and_then(|()| draft.close());
                    match done.with_context(|| file.failure()) {
                        Err(error) => fates.set(number, Err(error)),
                        Ok(()) => synced
                            .lock()
                            .unwrap_or_else(PoisonError::into_inner)
                            .push((number, draft)),
                    }
                }
            });
        }
        let mut prepare = |number: usize| {
            let file = &files[number];
            let draft = file.spot.make(partials[number].clone()).with_context(|| file.failure());
            let draft = Arc::new(draft.map_err(|error| fates.set(number, Err(error))).ok()?);
            let length = file.facts.size.unwrap_or(0);
            if length == 0 {
                // A thread that has panicked has said so.
                let _ = stored.send((number, draft));
                return None;
            }
            let kept = Arc::clone(&draft);
            let with: Arc<Store<'_>> = Arc::new(move |at, bytes: &[u8]| store(&draft, at, bytes));
            let part = Part { path: &file.path, offset: 0, length };
            Some((Wanted { part, connections: 1, with }, kept))
        };
        let mut done = |number: usize, draft| {
            let _ = stored.send((number, draft));
        };
        let steps = Steps { prepare: &mut prepare, done: &mut done };
        session.try_batch(&mut Batch::new(files.len(), depth, steps), &get);
        drop(stored);
    });
    let mut synced = synced.into_inner().unwrap_or_else(PoisonError::into_inner);
    synced.sort_unstable_by_key(|(number, _)| *number);
    synced
}

/// Gives files that are on the disk their names, if nobody has written to their sources meanwhile.
fn name_all(
    session: &mut Session<'_>,
    files: &[Down],
    synced: Vec<(usize, Arc<Draft>)>,
    fates: &Fates,
) {
    let paths: Vec<_> = synced.iter().map(|(number, _)| files[*number].path.clone()).collect();
    let told = session.try_look(&paths);
    let mut named = Vec::new();
    for ((number, draft), now) in synced.into_iter().zip(told) {
        let file = &files[number];
        // Of a file that the server does not tell of, more is heard when it is copied by itself.
        let Some(now) = now else { continue };
        let done = match file.facts.is_unchanged(&now) {
            true => draft.name(Replace::Allowed).map(drop).map_err(Error::from),
            false => Err(Changed::new(&file.path).into()),
        };
        match done.with_context(|| file.failure()) {
            Ok(()) => named.push(number),
            Err(error) => fates.set(number, Err(error)),
        }
    }
    let dir = |number: &usize| &files[*number].spot.dir;
    for of_dir in named.chunk_by(|one, other| Arc::ptr_eq(dir(one), dir(other))) {
        if let Err(error) = dir(&of_dir[0]).sync() {
            // The others are copied by themselves, which tells the same.
            fates.set(of_dir[0], Err(error).with_context(|| files[of_dir[0]].failure()));
            continue;
        }
        for &number in of_dir {
            let done = files[number].record().with_context(|| files[number].failure());
            session.show.count(|counts| counts.files += u64::from(done.is_ok()));
            fates.set(number, done);
        }
    }
}
