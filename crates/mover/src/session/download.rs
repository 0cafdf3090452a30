//! Downloads of a session.

use super::landed::{Landed, Listed};
use super::led::behind_link;
use super::{Destination, Done, Failed, Modes, Session, SessionError, Streams, Together};
use crate::census::{Behind, Census, ServerId, census};
use crate::choice::Choice;
use crate::fetch::{Job, fetch};
use crate::kind::Kind;
use crate::meter::{Meter, ServerMeter};
use crate::watch::Direction;
use hikyaku_remote::RemoteError;
use hikyaku_store::{Fetcher, StorePath};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError};
use std::time::Instant;

/// What is to be downloaded, and whereto.
#[derive(Clone)]
pub struct Download<'a> {
    /// Files and directories below the roots of the servers.
    pub sources: &'a [StorePath],
    /// A path of this machine, or a place of a store. As scp has it: a directory receives the sources, any other target is the
    /// new name of a single source.
    pub target: Destination<'a>,
    /// What the sources have in common with those of other calls.
    pub together: Together<'a>,
    /// What of the sources is copied.
    pub choice: &'a Choice<'a>,
    /// The permission bits of new files.
    pub modes: Modes,
    /// Whether the target may take bytes in order only.
    pub streams: &'a Streams,
    /// How far it is. It has as many servers as [`Session::met`].
    pub meter: &'a Meter,
    /// Ends the transfer early when it is set. The connections end with it, and the next call makes new ones.
    pub stop: &'a AtomicBool,
}

impl Session {
    /// Fetches files from all servers that have them. Returns when each has its name here or has failed.
    ///
    /// # Errors
    ///
    /// Of no source there is anything that can be copied to the target, or `stop` was set ([`Kind::Stopped`]). Files that came
    /// before such an error stay. A source that is not there, or is a directory where directories are not copied, is told as
    /// failed beside others.
    pub fn download(&self, download: &Download<'_>) -> Result<Done, SessionError> {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        self.logged(Direction::In, download.meter, || {
            let mut done = Done::default();
            let (mut first, mut copied) = (None, 0);
            for source in download.sources {
                match self.fetch_one(download, source, &mut done) {
                    Ok(()) => copied += 1,
                    // It is about this source. The others are copied.
                    Err(SessionError::Refused { kind: kind @ Kind::File(_), text }) => {
                        done.failed.push(Failed::new(self.shown(source).as_bytes(), kind, &text));
                        first.get_or_insert(SessionError::Refused { kind, text });
                    }
                    Err(error) => return Err(error),
                }
            }
            download.meter.set_found();
            match first {
                Some(error) if copied == 0 => Err(error),
                _ => Ok(done),
            }
        })
    }

    fn fetch_one(
        &self,
        download: &Download<'_>,
        named: &StorePath,
        done: &mut Done,
    ) -> Result<(), SessionError> {
        let shown = self.shown(named);
        let ask = || {
            let clients = self.clients();
            let led = self.led(&clients, (named, &shown), download.choice.last(named));
            let found = led.map(|led| {
                let mut found = census(&clients, &led.path);
                let behind = Behind {
                    lead: &mut |link| behind_link(&clients, link),
                    census: &mut |place| Ok(census(&clients, place)),
                };
                found.follow(&led.path, download.choice, behind);
                (found, led.path)
            });
            (clients, found)
        };
        let (clients, found) = self.until_stopped(download.stop, ask)?;
        if download.stop.load(Ordering::Relaxed) {
            return Err(SessionError::refused(Kind::Stopped, "stopped"));
        }
        let (found, root) = found?;
        let root = &root;
        let is_nothing = found.files.is_empty() && found.dirs.is_empty() && found.links.is_empty();
        if is_nothing && found.left_out.is_empty() && *root != StorePath::ROOT {
            return Err(self.nothing(named, &found));
        }
        let choice = download.choice;
        let origin = self.names().join(",");
        let (shown, origin, count) = (&*shown, &*origin, download.sources.len());
        let source = (Listed { root, named, shown, origin, count }, found);
        let rules = (choice, download.together, download.streams);
        let Landed { store, taking, journal, plan } = Landed::of(source, &download.target, rules)?;
        let meter = download.meter;
        if plan.is_new_tree {
            meter.set_new_tree();
        }
        meter.add_found(plan.files.len(), plan.bytes());
        if download.sources.last() == Some(named) {
            meter.set_found();
        }
        let fetcher = |client| -> Arc<dyn Fetcher> { Arc::new(client) };
        let servers: Vec<_> = clients.into_iter().map(fetcher).collect();
        let before: Vec<u64> = meter.servers().iter().map(ServerMeter::bytes).collect();
        let begin = Instant::now();
        let again = |server| self.again(server).map(fetcher);
        let fetched = fetch(&Job {
            redial: &again,
            patience: self.parameters.client.patience,
            dress: download.modes.dress(),
            times: choice.times,
            same: choice.same,
            taking,
            existing: choice.existing,
            pass: choice.pass,
            journal: journal.as_ref(),
            writing: choice.writing,
            hashes: choice.hashes,
            expected: choice.expected,
            parameters: self.parameters,
            ..Job::new(&servers, &plan, store, (meter, download.stop))
        })?;
        if download.stop.load(Ordering::Relaxed) {
            return Err(SessionError::refused(Kind::Stopped, "stopped"));
        }
        self.note(meter, &before, begin.elapsed());
        self.add_lost(done, plan.lost.iter().filter(|(_, error)| error.is_of_server()));
        self.add_lost(done, &fetched.lost);
        done.add_fetched(&plan, fetched);
        Ok(())
    }

    pub(super) fn add_lost<'a, E: ToString + 'a>(
        &self,
        done: &mut Done,
        lost: impl IntoIterator<Item = &'a (ServerId, E)>,
    ) {
        for (server, error) in lost {
            let address = self.address(*server);
            if done.lost.iter().all(|(known, _)| *known != address) {
                done.lost.push((address, error.to_string()));
            }
        }
    }

    /// The error where no server has anything of this name.
    fn nothing(&self, root: &StorePath, found: &Census) -> SessionError {
        let refused = found.lost.iter().find_map(|(_, error)| match error {
            RemoteError::Refused { kind, .. } => Some(*kind),
            RemoteError::Closed(_) | RemoteError::Protocol(_) => None,
        });
        let shown = self.shown(root);
        match refused {
            Some(kind) => SessionError::refused(kind, format!("{shown}: {kind}")),
            None => {
                let text = format!("{shown}: no server answers any more");
                SessionError::refused(Kind::NoAnswer, text)
            }
        }
    }
}
