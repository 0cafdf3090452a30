//! The directories and links of an upload, on all servers.

use super::run::{At, LOOK, Run};
use crate::choice::LinkAction;
use crate::dress::DirState;
use crate::fetch::FetchError;
use hikyaku_remote::{Client, Edit, RemoteError};
use hikyaku_store::{ErrorKind, Found, Kind, StorePath};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;

/// Those of a directory that the user named and that another server has.
const PARENT: u32 = 0o755;

/// Makes directories, then links, on all servers that are there.
pub(super) fn make(run: &Run<'_>) {
    on_all(run, |at, client| {
        let plan = run.job.plan;
        let mut new = Vec::new();
        for parent in &plan.parents {
            let mode = run.job.dress.new_dir(PARENT);
            new.push((parent, Edit::MakeDir { path: path(parent), mode }));
        }
        for (dir, meta) in &plan.dirs {
            if !run.there.has_dir(at.server, dir) && run.there.is_free(dir) {
                let mode = run.job.dress.new_dir(meta.mode);
                new.push((dir, Edit::MakeDir { path: path(dir), mode }));
            }
        }
        let edits = new.iter().map(|(_, edit)| edit.clone()).collect();
        each(run, (at, client), edits, |number, answer| {
            let (dir, _) = &new[number];
            let is_dir = || client.look(dir).is_ok_and(|found| found.kind == Kind::Dir);
            match answer {
                Ok(_) => touch(run, at, dir),
                Err(RemoteError::Refused { kind: ErrorKind::Exists, .. }) if is_dir() => {}
                Err(error) => run.failed(dir, FetchError::Server(error)),
            }
        });
        links(run, (at, client));
    });
}

/// Makes the links, in the place of files and of other links that have their names.
fn links(run: &Run<'_>, (at, client): (At, &Client)) {
    let (mut old, mut new) = (Vec::new(), Vec::new());
    for (place, link) in &run.job.plan.links {
        if run.there.blocked.is_above(place) {
            continue;
        }
        match run.there.link(at.server, (place, link), run.job.existing) {
            Some((LinkAction::Stay, _)) => continue,
            Some((LinkAction::Refuse(way), _)) => {
                run.failed(place, FetchError::InTheWay(way));
                continue;
            }
            Some((LinkAction::Make, kind)) => {
                old.push((place, Edit::Remove { path: path(place), kind }));
            }
            None => {}
        }
        new.push((place, Edit::MakeLink { path: path(place), text: link.text.clone() }));
    }
    for edits in [old, new] {
        let asked = edits.iter().map(|(_, edit)| edit.clone()).collect();
        each(run, (at, client), asked, |number, answer| match answer {
            Ok(_) => touch(run, at, edits[number].0),
            Err(error) => run.failed(edits[number].0, FetchError::Server(error)),
        });
    }
}

/// Gives directories their modes and times, the deepest first, and brings all new names to the disks.
pub(super) fn finish(run: &Run<'_>) {
    if run.is_stopped() {
        return;
    }
    on_all(run, |at, client| {
        let mut edits = Vec::new();
        for dir in run.touched(at.server) {
            edits.push((dir.clone(), Edit::Sync { path: path(&dir) }));
        }
        for file in &run.job.plan.files {
            if let Some(change) = run.there.same_file(at.server, run.job, file) {
                let (path, mode) = (path(&file.to), change.mode);
                edits.push((file.to.clone(), Edit::Change { path, mode, modified: None }));
            }
        }
        let free = run.job.plan.dirs.iter().filter(|(dir, _)| run.there.is_free(dir));
        for (dir, meta) in free.rev() {
            let is_there = run.there.has_dir(at.server, dir);
            let state = if is_there { DirState::There } else { DirState::Made };
            if let Some(change) = run.job.dress.filled_dir(*meta, state) {
                let (path, mode, modified) = (path(dir), change.mode, change.modified);
                edits.push((dir.clone(), Edit::Change { path, mode, modified }));
            }
        }
        let asked = edits.iter().map(|(_, edit)| edit.clone()).collect();
        each(run, (at, client), asked, |number, answer| {
            if let Err(error) = answer {
                run.failed(&edits[number].0, FetchError::Server(error));
            }
        });
    });
}

fn path(path: &StorePath) -> Vec<u8> {
    path.as_bytes().to_vec()
}

fn touch(run: &Run<'_>, at: At, path: &StorePath) {
    if let Some((dir, _)) = path.split() {
        run.touch(at.server, dir);
    }
}

/// Works with all servers at once.
fn on_all(run: &Run<'_>, work: impl Fn(At, &Client) + Sync) {
    let work = &work;
    thread::scope(|scope| {
        for (at, client) in run.clients() {
            scope.spawn(move || work(at, &client));
        }
    });
}

/// Asks for all changes without waiting for one, and hears each answer with its number. A lost connection ends it.
fn each(
    run: &Run<'_>,
    (at, client): (At, &Client),
    edits: Vec<Edit>,
    mut hear: impl FnMut(usize, Result<Option<Found>, RemoteError>),
) {
    let (say, answers) = channel();
    let count = edits.len();
    for (number, edit) in edits.into_iter().enumerate() {
        let say = say.clone();
        // Nobody listens any more if the connection is lost.
        client.edit_then(edit, &[], move |answer| drop(say.send((number, answer))));
    }
    let mut heard = 0;
    while heard < count && !run.is_stopped() {
        match answers.recv_timeout(LOOK) {
            Ok((_, Err(error))) if error.is_of_server() => {
                return run.lose(&mut run.state(), at, error);
            }
            Ok((number, answer)) => hear(number, answer),
            Err(RecvTimeoutError::Timeout) => continue,
            Err(RecvTimeoutError::Disconnected) => return,
        }
        heard += 1;
    }
}
