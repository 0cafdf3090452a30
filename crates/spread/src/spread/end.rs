//! The end of a transfer: servers without work take over unsent work of the slowest one.

use super::{Spread, Target, server_id};
use crate::ask::{Hold, Part, Reach};
use crate::command::Command;
use crate::segments::{Run, SEGMENT_BYTES};
use crate::server::Server;
use crate::settings::Asking;
use crate::stock::Piece;
use alloc::collections::VecDeque;
use alloc::vec;
use alloc::vec::Vec;
use core::time::Duration;
use hikyaku_units::{DataSize, Instant};

/// The work of a server is left alone if it is done within two round trips and this time.
const TAKE_OVER_TIME_MIN: Duration = Duration::from_millis(200);

/// A segment that is under way is taken over if it is done that many times sooner than the rest of its server's work.
const BEGUN_GAIN_MIN: f64 = 1.5;

/// This holds between connections with ranges: packet loss halves the rate of a connection for a while.
const BEGUN_GAIN_MIN_RANGES: f64 = 3.0;

impl Spread {
    /// Each server that is about to have nothing to do takes over from the one that would be done last.
    pub(super) fn end(&mut self, now: Instant) {
        if self.client.target == Target::Busy || self.stock.unfinished() == 0 {
            return;
        }
        let rates: Vec<f64> = self.servers.iter().map(|server| server.rate(now)).collect();
        for server in 0..self.servers.len() {
            let found = &self.servers[server];
            let is_idle = found.finish(rates[server], 0) <= found.rtt.as_secs_f64();
            if found.is_ready() && is_idle && found.has_room(rates[server]) {
                self.take_over(server, &rates, now);
            }
        }
    }

    /// Takes a share of the unsent work of the slowest server that has work for this one: what it can be done
    /// with when the other one is done with the rest.
    fn take_over(&mut self, server: usize, rates: &[f64], now: Instant) {
        let is_other = |&other: &usize| {
            let found = &self.servers[other];
            other != server && found.is_up() && found.left > 0 && found.gives_back()
        };
        let finish = |other: usize| self.servers[other].finish(rates[other], 0);
        let mut others: Vec<(usize, f64)> =
            (0..self.servers.len()).filter(is_other).map(|other| (other, finish(other))).collect();
        others.sort_by(|a, b| b.1.total_cmp(&a.1));
        for (other, last) in others {
            let (mine, its) = (&self.servers[server], &self.servers[other]);
            let patience = 2.0 * its.rtt.max(mine.rtt).as_secs_f64();
            if last <= patience + TAKE_OVER_TIME_MIN.as_secs_f64() {
                return;
            }
            // The other one goes on while a request is on its way, and a connection opened for it.
            let unsent = its.left as f64 - rates[other] * its.rtt.as_secs_f64();
            let opening = mine.opening(rates[server], unsent.max(0.0) as u64);
            let bytes =
                (unsent - rates[other] * opening) * rates[server] / (rates[server] + rates[other]);
            let most = match mine.settings.asking {
                Asking::Timed | Asking::Ranges(_) => u64::MAX,
                Asking::Pieces(size) => size.bytes(),
            };
            let bytes = (bytes as u64).min(most).max(SEGMENT_BYTES);
            // At least a segment, if it is done sooner here than there. One that is under way there has to be done
            // much sooner: not every caller keeps what has come of it.
            let here = mine.finish(rates[server], SEGMENT_BYTES);
            let is_worth_it = bytes > SEGMENT_BYTES || here < last;
            let untouched = is_worth_it.then_some(Reach::Untouched);
            let gain_min = match its.settings.asking {
                Asking::Ranges(_) => BEGUN_GAIN_MIN_RANGES,
                Asking::Timed | Asking::Pieces(_) => BEGUN_GAIN_MIN,
            };
            let begun = (here * gain_min < last).then_some(Reach::Begun);
            for reach in untouched.into_iter().chain(begun) {
                let stock = &self.stock;
                let may_cut = |part: &Part| {
                    part.hold == Hold::Copy || stock.group(part.file).replicas().contains(server)
                };
                let (found, commands) = (&mut self.servers[other], &mut self.commands);
                let parts = cut(other, found, commands, Amount { bytes, reach, now }, may_cut);
                let pieces = self.pieces(server, parts);
                if !pieces.is_empty() {
                    self.ask(server, pieces, Hold::Owned, now);
                    return;
                }
            }
        }
    }

    /// Parts as pieces for a server, in the order in which they were asked for; small files together. Proven segments are left
    /// out, and what would be more asks than the server may have goes back.
    fn pieces(&mut self, server: usize, parts: Vec<Part>) -> Vec<Piece> {
        let (found, small) = (&self.servers[server], self.small_file(server));
        let asks_max = found.settings.asks_max.saturating_sub(found.asks.len());
        let mut pieces: Vec<Piece> = Vec::new();
        for part in parts.into_iter().rev() {
            for run in self.stock.unproven(part.file, part.run) {
                match pieces.last_mut() {
                    Some(Piece::Batch(files)) if self.stock.is_within(part.file, small) => {
                        files.push(part.file);
                    }
                    _ if self.stock.is_within(part.file, small) => {
                        pieces.push(Piece::Batch(vec![part.file]));
                    }
                    Some(Piece::Part(file, last))
                        if *file == part.file && last.end == run.first =>
                    {
                        last.end = run.end;
                    }
                    _ => pieces.push(Piece::Part(part.file, run)),
                }
            }
        }
        for piece in pieces.drain(asks_max.min(pieces.len())..) {
            match piece {
                Piece::Part(file, run) => self.stock.give_back(file, run),
                Piece::Batch(files) => {
                    files.into_iter().for_each(|file| self.stock.give_back(file, Run::new(0, 1)));
                }
            }
        }
        pieces
    }
}

/// How much to cut.
pub(super) struct Amount {
    pub(super) bytes: u64,
    pub(super) reach: Reach,
    pub(super) now: Instant,
}

/// Cuts about this much work off the requests to a server, the latest ask first. The caller has the
/// returned parts, the last one first; they are the owned ones.
pub(super) fn cut(
    server: usize,
    found: &mut Server,
    commands: &mut VecDeque<Command>,
    amount: Amount,
    may_cut: impl Fn(&Part) -> bool,
) -> Vec<Part> {
    let (mut parts, mut wanted) = (Vec::new(), amount.bytes);
    for ask in found.asks.iter_mut().rev() {
        let left = ask.left();
        let cut = ask.cut(wanted, amount.reach, &may_cut);
        found.left -= left - ask.left();
        let bytes: u64 = cut.iter().map(|part| part.bytes).sum();
        if bytes > 0 {
            wanted = wanted.saturating_sub(bytes);
            let from = DataSize::from_bytes(ask.bytes());
            commands.push_back(Command::Cut { server: server_id(server), ask: ask.id, from });
        }
        parts.extend(cut.into_iter().filter(|part| part.hold == Hold::Owned));
        if wanted == 0 {
            break;
        }
    }
    found.drop_empty(amount.now);
    parts
}
