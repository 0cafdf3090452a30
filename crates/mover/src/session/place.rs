//! The servers of a session as the target of files that are not of this machine.

use super::{Session, SessionError, Target};
use crate::fetch::{Fetched, Job};
use crate::layout::Written;
use crate::upload::{Counted, Source, UploadJob, upload};
use hikyaku_remote::{Client, RemoteStore};
use hikyaku_store::{ErrorKind, Last, Store, StorePath};
use std::fmt;
use std::sync::Arc;

/// The servers of a target that is on several of them: each file goes whole to one.
#[derive(Clone)]
pub struct Several {
    session: Arc<Session>,
}

impl fmt::Debug for Several {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Several").field(&self.session.names()).finish()
    }
}

impl Several {
    /// Takes what a job fetches.
    pub(crate) fn take(&self, job: &Job<'_>) -> std::io::Result<Fetched> {
        if let Some(rate) = job.parameters.servers.rate {
            job.servers.iter().for_each(|server| server.limit(Some(rate)));
        }
        let mut fetched = upload(&UploadJob {
            servers: &self.session.clients(),
            redial: &|server| self.session.again(server),
            source: Source { channels: job.servers, redial: job.redial, counted: Counted::Source },
            plan: job.plan,
            existing: job.existing,
            same: job.same,
            times: job.times,
            pass: job.pass,
            dress: job.dress,
            parameters: job.parameters,
            patience: job.patience,
            meter: job.meter,
            stop: job.stop,
        })?;
        let lost = std::mem::take(&mut fetched.lost).into_iter();
        fetched.lost_targets =
            lost.map(|(server, error)| (self.session.address(server), error)).collect();
        Ok(fetched)
    }
}

impl Session {
    /// A place on the servers: the store of the first one, and the metadata of the path. If there are several servers, files get
    /// there by the target, and not by the store.
    ///
    /// # Errors
    ///
    /// A server takes no uploads, or the place cannot be a target.
    pub fn place(
        self: &Arc<Self>,
        named: &StorePath,
        written: Written,
    ) -> Result<(Arc<dyn Store>, Target), SessionError> {
        self.check_uploads()?;
        let (clients, shown) = (self.clients(), self.shown(named));
        let look = |path: &StorePath| self.kinds(&clients, path, &shown);
        let led = self.led(&clients, (named, &shown), Last::Followed)?;
        let mut target = Target::find(&look, &shown, (written, led))?;
        if clients.len() > 1 {
            target = target.on(Several { session: self.clone() });
        }
        let first: Option<&Client> = clients.first();
        let first = first.ok_or_else(|| SessionError::refused(ErrorKind::Unreachable, &*shown))?;
        Ok((Arc::new(RemoteStore::new(first.clone())), target))
    }
}
