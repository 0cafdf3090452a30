//! One connection's share of a turn: its news, its packets, its next timer.

use super::Core;
use super::entry::{Entry, Listed, Role, Stage, Turn};
use super::news::{log_down, log_up};
use super::transmit::Stopped;
use crate::link::Handle;
use crate::lobby::Guest;
use crate::paths::Memory;
use hikyaku_crypto::PeerKey;
use hikyaku_proto::{CloseReason, ConnectionId, code};
use hikyaku_units::Instant;
use std::net::SocketAddr;
use std::thread;
use std::time::{Duration, SystemTime};

/// A timer that is due again at once may not keep the driver from sleeping.
const LEAST_WAIT: Duration = Duration::from_micros(20);

impl Core {
    /// Serves the listed connections. Those with more work are listed again.
    pub(super) fn serve(&mut self) {
        let mut is_full = !self.unstick();
        for _ in 0..self.listed.len() {
            let Some(slot) = self.listed.pop_front() else { break };
            let Some(entry) = self.table.at(slot) else { continue };
            entry.listed = Listed::No;
            let now = self.clock.now();
            entry.proto.set_calendar(self.clock.offset());
            entry.proto.set_sharers(self.sharers.number(now));
            let turn = entry.pump(now, &mut self.wakes);
            self.on_turn(slot, turn);
            if !is_full {
                is_full = self.send_of(slot) == Stopped::Full;
            } else {
                // All waiting connections are served when the socket has room again.
                self.outgoing.waiting.push(slot);
            }
            self.set_timer(now, slot);
        }
        if !is_full {
            for slot in std::mem::take(&mut self.outgoing.waiting) {
                self.list(slot);
            }
        }
    }

    fn send_of(&mut self, slot: u32) -> Stopped {
        let stopped = self.transmit(slot);
        match &stopped {
            Stopped::Idle => {}
            Stopped::Share => self.list(slot),
            Stopped::Full => self.outgoing.waiting.push(slot),
            Stopped::Unreachable(text) => self.on_unreachable(slot, text.clone()),
        }
        stopped
    }

    fn set_timer(&mut self, now: Instant, slot: u32) {
        let Some(entry) = self.table.at(slot) else { return };
        if entry.proto.is_closed() {
            let due = entry.due.take();
            self.timers.remove(&(due.unwrap_or_default(), slot));
            self.forget(slot);
            return;
        }
        let due = entry.proto.poll_timeout().map(|(at, _)| at.max(now + LEAST_WAIT));
        if entry.due != due {
            if let Some(old) = entry.due {
                self.timers.remove(&(old, slot));
            }
            entry.due = due;
            self.timers.extend(due.map(|at| (at, slot)));
        }
    }

    fn forget(&mut self, slot: u32) {
        if let Some(entry) = self.table.at(slot) {
            let turn = entry.pump(Instant::ZERO, &mut self.wakes);
            self.on_turn(slot, turn);
            if let Some(entry) = self.table.at(slot) {
                entry.end(CloseReason::Local);
            }
            self.table.remove(slot);
        }
    }

    fn on_turn(&mut self, slot: u32, turn: Turn) {
        let Some(entry) = self.table.at(slot) else { return };
        match turn {
            Turn::Same => {}
            Turn::Connected => self.on_connected(slot),
            Turn::Closed(reason) => {
                log_down(slot, &entry.proto, &reason);
                let (key, role, before) = (entry.key, entry.role, entry.stage_before.clone());
                self.remember(slot);
                match (role, before) {
                    (Role::Server(from, id), Stage::Connecting) => self.on_half_open_done(from, id),
                    (Role::Client(id), Stage::Connecting) => {
                        if let Some(race) = self.races.iter_mut().find(|race| race.id == id) {
                            race.on_failed(key, reason);
                        }
                    }
                    _ => {}
                }
            }
        }
    }

    fn on_half_open_done(&mut self, from: SocketAddr, id: ConnectionId) {
        if let Some(door) = &self.door {
            door.half_open.end(from, id);
        }
    }

    fn on_connected(&mut self, slot: u32) {
        let Some(entry) = self.table.at(slot) else { return };
        entry.stage = Stage::Live;
        log_up(slot, &entry.proto);
        let (key, role) = (entry.key, entry.role);
        let shown = entry.shown.as_ref().and_then(PeerKey::fingerprint);
        let handle = Handle { link: entry.link.clone() };
        match role {
            Role::Client(id) => {
                if let Some(at) = self.races.iter().position(|race| race.id == id) {
                    let race = self.races.swap_remove(at);
                    self.close_losers(&race.others(Some(key)));
                    race.win(key, handle);
                }
            }
            Role::Server(from, id) => {
                self.on_half_open_done(from, id);
                if let Some(door) = &self.door {
                    // Dropped, it ends the connection.
                    drop(door.lobby.enter(Guest { handle, shown }));
                }
            }
        }
    }

    pub(super) fn close_losers(&mut self, losers: &[crate::command::Key]) {
        for key in losers {
            if let Some(entry) = self.table.get(*key) {
                entry.proto.close(code::DONE, "");
                self.list(key.slot);
            }
        }
    }

    fn on_unreachable(&mut self, slot: u32, text: String) {
        let Some(entry) = self.table.at(slot) else { return };
        if let Role::Client(id) = entry.role {
            let (key, address) = (entry.key, entry.proto.remote());
            entry.proto.close(code::DONE, "");
            if let Some(race) = self.races.iter_mut().find(|race| race.id == id) {
                race.on_unreachable(key, address, text);
            }
            self.list(slot);
        }
    }

    /// Remembers the path of a connection that has ended.
    fn remember(&mut self, slot: u32) {
        let Some(entry) = self.table.at(slot) else { return };
        let (Memory::File(cache), Some(path)) = (&self.memory, entry.path.take()) else { return };
        let Some(hint) = entry.proto.hint() else { return };
        let cache = cache.clone();
        let write = move || {
            // A path that is not remembered is found out again.
            let _ = cache.record(&path, hint, SystemTime::now());
        };
        self.writers.retain(|writer| !writer.is_finished());
        let writer = thread::Builder::new().name("hikyaku-paths".to_owned()).spawn(write);
        self.writers.extend(writer);
    }
}

impl Entry {
    pub(super) fn set_host_drops(&mut self, total: u64) {
        self.proto.set_host_drops(total - self.drops_before);
    }
}
