//! Quiet servers, and those to be tried again.

use super::{Spread, Target, server_id};
use crate::command::Command;
use crate::server::{Retries, State};
use alloc::vec::Vec;
use core::time::Duration;
use hikyaku_units::{DataSize, Instant};

/// A scheduler that was not called for this long, although it wanted to be, has slept: its machine was suspended or
/// its process stopped.
const CLOCK_GAP_MIN: Duration = Duration::from_secs(1);

impl Spread {
    /// Looks at all servers.
    pub(super) fn watch(&mut self, now: Instant) {
        self.watch_clock(now);
        for server in 0..self.servers.len() {
            match self.servers[server].state {
                State::Up => self.watch_silence(server, now),
                State::Lost(retries) if retries.next <= now => {
                    self.servers[server].state = State::Lost(retries.again(now));
                    self.commands.push_back(Command::Retry { server: server_id(server) });
                }
                State::Quiet(retries) if retries.next <= now => {
                    self.retry_quiet(server, retries, now)
                }
                State::New | State::Lost(_) | State::Quiet(_) => {}
            }
        }
    }

    /// A silence during a gap in the caller's clock is not the servers', so all of them have time to answer again.
    fn watch_clock(&mut self, now: Instant) {
        let wanted = self.poll_timeout().map(|wake| wake.at.max(self.decided));
        if wanted.is_some_and(|wanted| now - wanted > CLOCK_GAP_MIN) {
            self.servers.iter_mut().for_each(|server| server.forgive_silence(now));
        }
        self.decided = now;
    }

    fn watch_silence(&mut self, server: usize, now: Instant) {
        let is_silent = self.servers[server].quiet_at().is_some_and(|at| at <= now);
        if is_silent && self.client.target == Target::Ready {
            self.cut_off(server);
            self.leave(server, State::Quiet(Retries::start(now)), now);
        }
    }

    /// Nothing that the server was asked for is wanted of it.
    fn cut_off(&mut self, server: usize) {
        let asks: Vec<_> = self.servers[server].asks.iter().map(|ask| ask.id).collect();
        for ask in asks {
            let (server, from) = (server_id(server), DataSize::ZERO);
            self.commands.push_back(Command::Cut { server, ask, from });
        }
    }

    /// Asks a quiet server for one segment. Until the next retry it has time to answer.
    fn retry_quiet(&mut self, server: usize, retries: Retries, now: Instant) {
        self.cut_off(server);
        self.leave(server, State::Quiet(retries.again(now)), now);
        self.commands.push_back(Command::Retry { server: server_id(server) });
        self.probe(server, now);
    }
}
