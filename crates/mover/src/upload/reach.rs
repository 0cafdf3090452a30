//! Servers of an upload that are lost, and those that come back.

use super::queue::{Stage, Task};
use super::run::{At, Event, Run};
use super::source::Counted;
use super::state::State;
use crate::census::ServerId;
use crate::fetch::FetchError;
use hikyaku_remote::{Client, Flow, RemoteError};
use hikyaku_store::ErrorKind;
use std::sync::mpsc::Sender;
use std::thread::{self, Scope};
use std::time::Instant;

impl Run<'_> {
    pub(super) fn set_lost(&self, server: ServerId, is_lost: bool) {
        if self.job.source.counted == Counted::Target {
            self.job.meter.set_lost(server, is_lost);
        }
    }

    /// A connection is lost: others get its files.
    pub(super) fn lose(&self, state: &mut State, at: At, error: RemoteError) {
        let link = &mut state.links[at.server.0];
        let Some(client) = link.client.take_if(|_| link.epoch == at.epoch) else { return };
        // Lanes that wait for it end by this.
        client.connection().close(hikyaku_net::code::APPLICATION, "the connection is given up");
        link.epoch += 1;
        link.retry_later();
        for (id, attempt) in state.queue.at(at.server) {
            self.take_back(state, id, attempt);
        }
        self.set_lost(at.server, true);
        if state.uploaded.lost.iter().all(|(lost, _)| *lost != at.server) {
            state.uploaded.lost.push((at.server, error.to_string()));
        }
    }

    /// Tries lost servers again that are due.
    pub(super) fn retry<'scope>(
        &'scope self,
        state: &mut State,
        scope: &'scope Scope<'scope, '_>,
        say: &Sender<Event>,
    ) -> std::io::Result<()> {
        let now = Instant::now();
        for (server, link) in (0..).map(ServerId).zip(&mut state.links) {
            if link.retry_at.is_some_and(|due| due <= now) {
                link.retry_at = None;
                let say = say.clone();
                let named = thread::Builder::new().name("mover-redial".to_owned());
                named.spawn_scoped(scope, move || {
                    let client = (self.job.redial)(server);
                    // After the end of the upload the receiver may be closed, so `send` may fail.
                    let _ = say.send(Event::Tried { server, client });
                })?;
            }
        }
        Ok(())
    }

    /// Whether a server that was tried is there again.
    pub(super) fn tried(&self, server: ServerId, client: Option<Client>) -> bool {
        let round_trip = client.as_ref().map(Client::round_trip);
        let mut state = self.state();
        let link = &mut state.links[server.0];
        match client.zip(round_trip) {
            Some((client, round_trip)) => {
                link.client = Some(client);
                link.flow = Flow::new(round_trip, self.now());
                self.set_lost(server, false);
                true
            }
            None => {
                link.retry_later();
                false
            }
        }
    }

    /// Gives up what no server can take: all are gone for too long, those that are there are full, or the only one for it is
    /// gone while the others have nothing more to do.
    pub(super) fn check_reach(&self, state: &mut State) {
        let loads = state.loads(self.now());
        for id in state.queue.too_large(&loads) {
            let path = &self.job.plan.files[state.queue.task(id).file].to;
            let error = hikyaku_store::StoreError::new("write", path, ErrorKind::NoSpace);
            let error = RemoteError::Refused { kind: ErrorKind::NoSpace, text: error.to_string() };
            self.fail(state, id, FetchError::Server(error));
        }
        let can_go_on = |task: &Task| match (task.stage, task.only) {
            (Stage::At(_), _) => true,
            (_, Some(only)) => loads[only.0].is_some(),
            (_, None) => loads.iter().any(Option::is_some),
        };
        if loads.iter().all(Option::is_some)
            || state.queue.is_empty()
            || state.queue.open().any(can_go_on)
        {
            state.gone_since = None;
        } else if state.gone_since.get_or_insert_with(Instant::now).elapsed() > self.job.patience {
            self.give_up(state, |is_for_one| match is_for_one {
                true => FetchError::OldOneAway,
                false => FetchError::NoTaker,
            });
        }
    }

    pub(super) fn give_up(&self, state: &mut State, error: impl Fn(bool) -> FetchError) {
        for id in state.queue.all() {
            let only = state.queue.task(id).only;
            self.fail(state, id, error(only.is_some()));
        }
    }
}
