//! The threads that carry out requests. Each server has as many as it has had requests at once, at most as many as it may have.

use super::rest::Rest;
use super::run::Run;
use crate::census::ServerId;
use hikyaku_spread::{AskId, Work};
use hikyaku_store::{Cut, Fetcher};
use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, PoisonError};
use std::thread::{self, Scope};

/// A request to a server.
pub(super) struct Request {
    pub(super) fetcher: Arc<dyn Fetcher>,
    pub(super) server: ServerId,
    pub(super) ask: AskId,
    pub(super) cut: Arc<Cut>,
    pub(super) work: Work,
    /// The ranges of the work that are fetched.
    pub(super) rest: Rest,
}

/// The requests of a server that no thread has begun, and its threads.
#[derive(Default)]
pub(super) struct Line {
    waiting: VecDeque<Request>,
    threads: u32,
    idle: usize,
}

impl Run<'_> {
    /// Gives a request to a thread of its server.
    ///
    /// # Errors
    ///
    /// The server has no thread, and the machine has no room for one.
    pub(super) fn give<'scope>(
        &'scope self,
        line: &mut Line,
        scope: &'scope Scope<'scope, '_>,
        request: Request,
    ) -> io::Result<()> {
        let (server, requests_max) = (request.server, request.fetcher.traits().requests_max);
        line.waiting.push_back(request);
        if line.waiting.len() > line.idle && line.threads < requests_max.max(1) {
            let named = thread::Builder::new().name("mover-fetch".to_owned());
            match named.spawn_scoped(scope, move || self.carry_out_all(server)) {
                Ok(_) => line.threads += 1,
                Err(error) if line.threads == 0 => return Err(error),
                Err(_) => {}
            }
        }
        self.to_carry_out[server.0].notify_one();
        Ok(())
    }

    /// Carries out requests of a server until all is over.
    fn carry_out_all(&self, server: ServerId) {
        let mut state = self.state();
        loop {
            if let Some(request) = state.lines[server.0].waiting.pop_front() {
                drop(state);
                self.carry_out(&request);
                state = self.state();
                continue;
            }
            if state.is_over {
                return;
            }
            state.lines[server.0].idle += 1;
            let waited = self.to_carry_out[server.0].wait(state);
            state = waited.unwrap_or_else(PoisonError::into_inner);
            state.lines[server.0].idle -= 1;
        }
    }
}
