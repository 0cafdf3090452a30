//! Small files from one server to another.

use super::{Fates, partials};
use crate::outcome::Changed;
use crate::session::Session;
use crate::several::Between;
use crate::third::{Sink, to_sink};
use anyhow::Error;
use hikyaku_gridftp::{Part, Rename, Wanted};
use hikyaku_store_ftp::{Batch, Steps};

pub(crate) fn relay_all(
    session: &mut Session<'_>,
    sink: &Sink<'_>,
    files: Vec<Between>,
) -> Vec<Error> {
    let fates = Fates::new(files.len());
    if let Some(depth) = session.depth().filter(|_| files.len() > 1) {
        let Ok(partials) = partials(files.iter().map(|file| file.to.as_slice())) else {
            return fates.finish(session, files, |session, file| file.carry_out(session, sink));
        };
        let _notes: Vec<_> = partials.iter().map(|path| session.notes.note(path)).collect();
        session.prepare_names(files.iter().map(|file| file.from.as_slice()));
        if let Some(file) = files.iter().find(|file| !file.to.is_ascii()) {
            // Its answer is told when one of them is copied.
            let _ = sink.ask(|channel| channel.check_name(&file.to));
        }
        let mut prepare = |number: usize| {
            let file: &Between = &files[number];
            let length = file.facts.size.unwrap_or(0);
            // A server need not send nothing.
            if length == 0 {
                return None;
            }
            let part = Part { path: &file.from, offset: 0, length };
            Some((Wanted { part, connections: 1, with: &*partials[number] }, ()))
        };
        let mut stored = Vec::new();
        let mut done = |number: usize, ()| stored.push(number);
        let steps = Steps { prepare: &mut prepare, done: &mut done };
        let mut batch = Batch::new(files.len(), depth, steps);
        session.try_batch(&mut batch, &to_sink(sink));
        let left: Vec<usize> = batch.left().collect();
        let mut unnamed = rename_all(session, sink, (&files, &partials), (stored, &fates));
        unnamed.extend(left);
        for number in unnamed {
            // It is not there if the server has not begun to store it.
            let _ = sink.ask(|channel| channel.remove(&partials[number]));
        }
    }
    fates.finish(session, files, |session, file| file.carry_out(session, sink))
}

/// Gives files that a server has stored their names, if nobody has written to their sources meanwhile. Returns those that
/// have none.
fn rename_all(
    session: &mut Session<'_>,
    sink: &Sink<'_>,
    (files, partials): (&[Between], &[Vec<u8>]),
    (stored, fates): (Vec<usize>, &Fates),
) -> Vec<usize> {
    let paths: Vec<_> = stored.iter().map(|&at| files[at].from.clone()).collect();
    let told = session.try_look(&paths);
    let (mut whole, mut unnamed) = (Vec::new(), Vec::new());
    for (number, now) in stored.into_iter().zip(told) {
        let file = &files[number];
        match now {
            Some(now) if file.facts.is_unchanged(&now) => whole.push(number),
            Some(_) => {
                let changed = Error::from(Changed::new(&file.from)).context(file.failure());
                fates.set(number, Err(changed));
                unnamed.push(number);
            }
            None => unnamed.push(number),
        }
    }
    let named = |&at: &usize| {
        let Between { to, mode, .. } = &files[at];
        Rename { from: &partials[at], to, mode: *mode, modified: None }
    };
    let names: Vec<_> = whole.iter().map(named).collect();
    let at_once = session.questions();
    let renamed = sink.ask(|channel| channel.rename_each(&names, at_once)).unwrap_or_default();
    for (at, number) in whole.into_iter().enumerate() {
        match renamed.get(at) {
            Some(Ok(())) => {
                session.show.count(|counts| counts.files += 1);
                fates.set(number, Ok(()));
            }
            // Why not is told when it is copied by itself.
            _ => unnamed.push(number),
        }
    }
    unnamed
}
