//! The commands of applications, carried out by the driver.

use super::entry::{Entry, Role};
use super::race::{Attempt, Race, RaceId};
use super::{COMMANDS, Core, Stage};
use crate::command::{Command, Key, Order};
use crate::link::Link;
use hikyaku_proto::{Connection, code};
use hikyaku_units::Instant;

impl Core {
    /// Carries out the commands that wait, up to a bound for each turn.
    pub(super) fn obey(&mut self, now: Instant) {
        for _ in 0..COMMANDS {
            let Some(command) = self.mailbox.receive() else { break };
            match command {
                Command::For(key, order) => self.obey_order(now, key, order),
                Command::Connect(request, reply) => {
                    self.next_race = RaceId(self.next_race.0 + 1);
                    self.races.push(Race::new(now, self.next_race, *request, reply));
                }
                Command::StopListening => {
                    if let Some(door) = self.door.take() {
                        door.lobby.close();
                        door.lobby.clear();
                    }
                }
                Command::Stop => self.stop(now),
            }
        }
    }

    fn obey_order(&mut self, now: Instant, key: Key, order: Order) {
        // The handles of a removed connection were notified. Dropping the command answers its
        // request, if it has one.
        let Some(entry) = self.table.get(key) else { return };
        match order {
            Order::Touch => entry.attend(now),
            Order::Open(kind, reply) => entry.open(kind, reply),
            Order::Stats(reply) => reply.send(entry.stats()),
            Order::Hint(reply) => reply.send(entry.proto.hint()),
            Order::Silence(reply) => reply.send(entry.proto.silence(now)),
            Order::SetPayloadRate(rate) => entry.proto.set_payload_rate(rate),
            Order::Close(code, reason) => entry.proto.close(code, &reason),
            Order::Abandon => entry.abandon(),
        }
        self.list(key.slot);
    }

    fn stop(&mut self, now: Instant) {
        // `shutdown` and the drop that follows it both ask. The second does not begin a new wait.
        if self.stage != Stage::Running {
            return;
        }
        self.stage = Stage::Stopping(now + self.linger);
        if let Some(door) = self.door.take() {
            door.lobby.close();
            door.lobby.clear();
        }
        self.races.clear();
        let slots: Vec<u32> = self.table.iter().map(|entry| entry.key.slot).collect();
        for slot in slots {
            if let Some(entry) = self.table.at(slot) {
                // A connection without handles first delivers what was finished. A connection with
                // handles is closed, since the endpoint that carries it ends.
                if !entry.still_delivers() {
                    entry.proto.close(code::DONE, "the program ends");
                }
                self.list(slot);
            }
        }
    }

    /// Starts the attempts that are due, and ends races that are over.
    pub(super) fn run_races(&mut self, now: Instant) {
        let mut at = 0;
        while at < self.races.len() {
            while let Some(attempt) = self.races[at].next_attempt(now) {
                self.attempt(now, at, attempt);
            }
            if self.races[at].is_open() {
                at += 1;
            } else {
                let race = self.races.swap_remove(at);
                self.close_losers(&race.others(None));
                race.lose();
            }
        }
    }

    fn attempt(&mut self, now: Instant, at: usize, attempt: Attempt) {
        let Attempt { address, config, ids, token, session, trust, path } = attempt;
        let key = self.table.reserve();
        let timeout = config.connect_timeout;
        let link = Link::new(key, self.mailbox.clone(), address, &config);
        let mut proto = Connection::client(now, config, session, address, ids);
        if let Some(token) = token {
            proto.set_token(token);
        }
        let role = Role::Client(self.races[at].id);
        let mut entry = Entry::new(key, proto, link, role);
        entry.path = path;
        entry.drops_before = self.overflows.total;
        self.races[at].on_started(key, trust, timeout);
        self.adopt(entry);
    }
}
