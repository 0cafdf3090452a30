//! Small files to a server.

use super::{Fates, partials};
use crate::finished::When;
use crate::session::Session;
use crate::several::Up;
use crate::upload::{Source, put, version_here};
use anyhow::{Context, Error};
use hikyaku_gridftp::{Part, Rename, Upload, Wanted};
use hikyaku_store_ftp::{Batch, Steps};
use std::os::unix::fs::FileExt;
use std::sync::Arc;

pub(super) fn upload_all(session: &mut Session<'_>, files: Vec<Up>) -> Vec<Error> {
    let fates = Fates::new(files.len());
    if let Some(depth) = session.depth().filter(|_| files.len() > 1) {
        let Ok(partials) = partials(files.iter().map(|file| file.path.as_slice())) else {
            return fates.finish(session, files, |session, file| file.carry_out(session));
        };
        let _notes: Vec<_> = partials.iter().map(|path| session.notes.note(path)).collect();
        session.prepare_names(files.iter().map(|file| file.path.as_slice()));
        let mut prepare = |number: usize| {
            let file: &Up = &files[number];
            let source = Source::open(&file.from).with_context(|| file.failure());
            let source = source.map_err(|error| fates.set(number, Err(error))).ok()?;
            // One that has changed since it was found is looked at again when it is copied by itself.
            if version_here(&source.before) != file.version {
                return None;
            }
            let source = Arc::new(source);
            let kept = Arc::clone(&source);
            let with: Upload<'_> =
                Arc::new(move |at, bytes: &mut [u8]| source.file.read_exact_at(bytes, at));
            let part = Part { path: &partials[number], offset: 0, length: file.bytes };
            Some((Wanted { part, connections: 1, with }, kept))
        };
        let (mut stored, mut left) = (Vec::new(), Vec::new());
        let mut done = |number: usize, source: Arc<Source<'_>>| match source.unchanged(Ok(())) {
            Ok(()) => stored.push(number),
            Err(error) => {
                fates.set(number, Err(error).with_context(|| files[number].failure()));
                left.push(number);
            }
        };
        let steps = Steps { prepare: &mut prepare, done: &mut done };
        let mut batch = Batch::new(files.len(), depth, steps);
        session.try_batch(&mut batch, &put);
        let under_way: Vec<usize> = batch.left().collect();
        let named = |&at: &usize| {
            let Up { path, mode, .. } = &files[at];
            Rename { from: &partials[at], to: path, mode: *mode, modified: None }
        };
        let names: Vec<_> = stored.iter().map(named).collect();
        let at_once = session.questions();
        let renamed = session.try_each(|channel| channel.rename_each(&names, at_once));
        for (&number, _) in stored.iter().zip(&renamed).filter(|(_, renamed)| renamed.is_ok()) {
            session.show.count(|counts| counts.files += 1);
            files[number].note();
            fates.set(number, Ok(()));
        }
        // Why one has no name is told when it is copied by itself.
        let is_unnamed = |at: &usize| !matches!(renamed.get(*at), Some(Ok(())));
        left.extend((0..stored.len()).filter(is_unnamed).map(|at| stored[at]));
        for number in left.into_iter().chain(under_way) {
            // It is not there if the server has not begun to store it.
            session.try_remove(&partials[number]);
        }
    }
    if let Some(finished) = files.first().and_then(|file| file.finished.clone()) {
        finished.record_noted(session, When::Due);
    }
    fates.finish(session, files, |session, file| file.carry_out(session))
}
