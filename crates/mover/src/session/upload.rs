//! Uploads of a session.

use super::{Done, Modes, Session, SessionError, Sources, Target, Together};
use crate::choice::Choice;
use crate::kind::Kind;
use crate::layout::{Renamed, Written};
use crate::meter::{Meter, ServerMeter};
use crate::upload::{Counted, Source, UploadJob, upload};
use crate::watch::Direction;
use hikyaku_remote::{Client, RemoteError};
use hikyaku_store::{ErrorKind, Found, Kind as FileKind, Last, StorePath, fetchers};
use std::path::PathBuf;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Instant;

/// What is to be uploaded, and whereto.
#[derive(Clone, Copy)]
pub struct Upload<'a> {
    /// Files and directories of this machine.
    pub sources: &'a [PathBuf],
    /// A path below the roots of the servers. As scp has it: a directory receives the sources, any other target is the new
    /// name of a single source.
    pub target: &'a StorePath,
    /// What the sources have in common with those of other calls.
    pub together: Together<'a>,
    /// What of the sources is copied.
    pub choice: &'a Choice<'a>,
    /// The permission bits of new files.
    pub modes: Modes,
    /// How far it is. It has as many servers as [`Session::met`].
    pub meter: &'a Meter,
    /// Ends the transfer early when it is set. The connections end with it, and the next call makes new ones.
    pub stop: &'a AtomicBool,
}

impl Session {
    /// Sends files to the servers, each whole to one of them. Returns when each is on the disk of a server under its name
    /// or has failed.
    ///
    /// # Errors
    ///
    /// No source can be read, a server takes no uploads, the target cannot be used, or `stop` was set ([`Kind::Stopped`]).
    pub fn upload(&self, what: &Upload<'_>) -> Result<Done, SessionError> {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        self.logged(Direction::Out, what.meter, || self.send(what))
    }

    fn send(&self, what: &Upload<'_>) -> Result<Done, SessionError> {
        let mut done = Done::default();
        let sources = Sources::find(what.sources, what.choice, &mut done.failed)?;
        self.check_uploads()?;
        let shown = self.shown(what.target);
        let ask = || {
            let clients = self.clients();
            let look = |path: &StorePath| self.kinds(&clients, path, &shown);
            let named = (what.target, shown.as_str());
            let is_dir = what.choice.dirs.contains(what.target);
            let written = if is_dir { Written::AsDirectory } else { Written::AsName };
            let target = self
                .led(&clients, named, Last::Followed)
                .and_then(|led| Target::find(&look, &shown, (written, led)));
            (clients, target)
        };
        let (clients, target) = self.until_stopped(what.stop, ask)?;
        if what.stop.load(Ordering::Relaxed) {
            return Err(SessionError::refused(Kind::Stopped, "stopped"));
        }
        let target = target?;
        let at = target.at((FileKind::File, Renamed::Never), None);
        let mut plan =
            target.plan((&sources, at), (what.choice, what.together), &mut done.failed)?;
        // As many as there are lanes, so that none waits for a channel.
        let lanes = clients.len() * self.parameters.client.streams.max(1);
        let channels = fetchers(&sources.store, lanes)
            .map_err(|error| SessionError::refused(error.kind, error.to_string()))?;
        plan.is_from(channels.len());
        let meter = what.meter;
        if plan.is_new_tree {
            meter.set_new_tree();
        }
        meter.add_plan(&plan);
        let before: Vec<u64> = meter.servers().iter().map(ServerMeter::bytes).collect();
        let begin = Instant::now();
        let uploaded = upload(&UploadJob {
            servers: &clients,
            redial: &|server| self.again(server),
            source: Source { channels: &channels, redial: &|_| None, counted: Counted::Target },
            plan: &plan,
            existing: what.choice.existing,
            same: what.choice.same,
            times: what.choice.times,
            pass: what.choice.pass,
            dress: what.modes.dress(),
            parameters: self.parameters,
            patience: self.parameters.client.patience,
            meter,
            stop: what.stop,
        })?;
        if what.stop.load(Ordering::Relaxed) {
            return Err(SessionError::refused(Kind::Stopped, "stopped"));
        }
        self.note(meter, &before, begin.elapsed());
        self.add_lost(&mut done, &uploaded.lost);
        done.add_fetched(&plan, uploaded);
        Ok(done)
    }

    /// What each server that is there has of this name; `None` if it has nothing.
    pub(super) fn kinds(
        &self,
        clients: &[Client],
        path: &StorePath,
        shown: &str,
    ) -> Result<Vec<Option<FileKind>>, SessionError> {
        let found: Vec<_> = thread::scope(|scope| {
            let look = |client| scope.spawn(move || Client::look(client, path));
            let all: Vec<_> = clients.iter().map(look).collect();
            let closed = |_| Err(RemoteError::Closed(None));
            all.into_iter().map(|one| one.join().unwrap_or_else(closed)).collect()
        });
        let (mut kinds, mut away) = (Vec::new(), None);
        for (server, found) in found.into_iter().enumerate() {
            let found: Result<Found, RemoteError> = found;
            match found {
                Ok(found) => kinds.push(Some(found.kind)),
                Err(RemoteError::Refused { kind: ErrorKind::NotFound, .. }) => kinds.push(None),
                Err(RemoteError::Refused { kind, .. }) => {
                    return Err(SessionError::refused(kind, format!("{shown}: {kind}")));
                }
                Err(error) => {
                    away.get_or_insert((server, error));
                }
            }
        }
        match away {
            Some((server, error)) if kinds.is_empty() => {
                let text = format!("{}: {error}", self.members[server].address);
                Err(SessionError::refused(Kind::NoAnswer, text))
            }
            _ => Ok(kinds),
        }
    }
}
