//! The three ways of a batch: from a server, to a server, between two.

use super::{Batch, Fates, Steps};
use crate::download::get;
use crate::finished::When;
use crate::local::{finish, store};
use crate::session::Session;
use crate::several::{Between, Down, File, Up};
use crate::third::{Sink, to_sink};
use crate::upload::{partial_name, put};
use anyhow::{Context, Error, Result};
use hikyaku_fs::Draft;
use hikyaku_gridftp::{Part, Store, Supply, Target, Upload, Wanted};
use std::os::unix::fs::FileExt;
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

/// Threads that sync the files of a batch: a disk syncs several in little more than the time of one.
const SYNC_THREADS: usize = 4;

/// Copies small files, all of the same kind. Returns all failures.
pub(crate) fn carry_out(
    files: Vec<File>,
    session: &mut Session<'_>,
    sink: Option<&Sink<'_>>,
) -> Vec<Error> {
    let (mut downs, mut ups, mut betweens) = (Vec::new(), Vec::new(), Vec::new());
    for file in files {
        match file {
            File::Down(down) => downs.push(down),
            File::Up(up) => ups.push(up),
            File::Between(between) => betweens.push(between),
        }
    }
    let mut failures = download_all(session, downs);
    failures.extend(upload_all(session, ups));
    if let Some(sink) = sink {
        failures.extend(relay_all(session, sink, betweens));
    }
    failures
}

fn download_all(session: &mut Session<'_>, files: Vec<Down>) -> Vec<Error> {
    let fates = Fates::new(files.len());
    if let Some(depth) = session.depth().filter(|_| files.len() > 1) {
        session.prepare_names(files.iter().map(|file| file.path.as_slice()));
        let (fates, files) = (&fates, files.as_slice());
        thread::scope(|scope| {
            // Syncing takes as long as the disk does. Meanwhile other files come.
            let (stored, waiting) = sync_channel::<(usize, Arc<Draft>)>(files.len());
            let (waiting, show) = (Arc::new(Mutex::new(waiting)), session.show);
            for _ in 0..SYNC_THREADS {
                let waiting = Arc::clone(&waiting);
                let next = move || waiting.lock().unwrap_or_else(PoisonError::into_inner).recv();
                scope.spawn(move || {
                    while let Ok((number, draft)) = next() {
                        let file = &files[number];
                        let named = finish(&file.spot, &draft).and_then(|()| file.record());
                        let named = named.with_context(|| file.failure());
                        show.count(|counts| counts.files += u64::from(named.is_ok()));
                        fates.set(number, named);
                    }
                });
            }
            let mut prepare = |number: usize| {
                let file = &files[number];
                let draft = file.spot.draft().with_context(|| file.failure());
                let draft = Arc::new(draft.map_err(|error| fates.set(number, Err(error))).ok()?);
                let length = file.facts.size.unwrap_or(0);
                if length == 0 {
                    // A thread that has panicked has said so.
                    let _ = stored.send((number, draft));
                    return None;
                }
                let kept = Arc::clone(&draft);
                let with: Arc<Store<'_>> =
                    Arc::new(move |at, bytes: &[u8]| store(&draft, at, bytes));
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
    }
    fates.finish(session, files, |session, file| file.carry_out(session))
}

fn upload_all(session: &mut Session<'_>, files: Vec<Up>) -> Vec<Error> {
    let fates = Fates::new(files.len());
    if let Some(depth) = session.depth().filter(|_| files.len() > 1) {
        let Ok(partials) = partials(files.iter().map(|file| file.path.as_slice())) else {
            return fates.finish(session, files, |session, file| file.carry_out(session));
        };
        session.prepare_names(files.iter().map(|file| file.path.as_slice()));
        let show = session.show;
        let mut prepare = |number: usize| {
            let file: &Up = &files[number];
            let open = std::fs::File::open(&file.from);
            let open = open.with_context(|| format!("cannot open {}", file.from.display()));
            let source = open.with_context(|| file.failure());
            let source = source.map_err(|error| fates.set(number, Err(error))).ok()?;
            let supply = move |at: u64, bytes: &mut [u8]| source.read_exact_at(bytes, at);
            let supply: Arc<Supply<'_>> = Arc::new(supply);
            let part = Part { path: &partials[number], offset: 0, length: file.bytes };
            let with = Upload { supply, rename: Some(&file.path) };
            Some((Wanted { part, connections: 1, with }, ()))
        };
        let mut done = |number: usize, ()| {
            show.count(|counts| counts.files += 1);
            files[number].note();
            fates.set(number, Ok(()));
        };
        let steps = Steps { prepare: &mut prepare, done: &mut done };
        let mut batch = Batch::new(files.len(), depth, steps);
        session.try_batch(&mut batch, &put);
        let left: Vec<usize> = batch.under_way.iter().map(|file| file.number).collect();
        for number in left {
            // It is not there if the server has not begun to store it.
            session.try_remove(&partials[number]);
        }
    }
    let finished = files.first().and_then(|file| file.finished.clone());
    let recorded = finished.map_or(Ok(()), |all| all.record_noted(session, When::Due));
    let mut failures = fates.finish(session, files, |session, file| file.carry_out(session));
    failures.extend(recorded.err());
    failures
}

fn relay_all(session: &mut Session<'_>, sink: &Sink<'_>, files: Vec<Between>) -> Vec<Error> {
    let fates = Fates::new(files.len());
    if let Some(depth) = session.depth().filter(|_| files.len() > 1) {
        let Ok(partials) = partials(files.iter().map(|file| file.to.as_slice())) else {
            return fates.finish(session, files, |session, file| file.carry_out(session, sink));
        };
        session.prepare_names(files.iter().map(|file| file.from.as_slice()));
        if let Some(file) = files.iter().find(|file| !file.to.is_ascii()) {
            // Its answer is told when one of them is copied.
            let _ = sink.ask(|channel| channel.check_name(&file.to));
        }
        let show = session.show;
        let mut prepare = |number: usize| {
            let file: &Between = &files[number];
            let length = file.facts.size.unwrap_or(0);
            // A server need not send nothing.
            if length == 0 {
                return None;
            }
            let part = Part { path: &file.from, offset: 0, length };
            let with = Target { path: &partials[number], rename: Some(&file.to) };
            Some((Wanted { part, connections: 1, with }, ()))
        };
        let mut done = |number: usize, ()| {
            show.count(|counts| counts.files += 1);
            fates.set(number, Ok(()));
        };
        let steps = Steps { prepare: &mut prepare, done: &mut done };
        let mut batch = Batch::new(files.len(), depth, steps);
        session.try_batch(&mut batch, &to_sink(sink));
        for file in &batch.under_way {
            // It is not there if the server has not begun to store it.
            let _ = sink.ask(|channel| channel.remove(&partials[file.number]));
        }
    }
    fates.finish(session, files, |session, file| file.carry_out(session, sink))
}

/// A temporary name beside each path.
fn partials<'f>(paths: impl Iterator<Item = &'f [u8]>) -> Result<Vec<Vec<u8>>> {
    paths.map(partial_name).collect()
}
