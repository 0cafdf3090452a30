//! What the servers of a session tell.

use super::Session;
use crate::census::ServerId;
use hikyaku_net::blocking::{Stop, wait};
use hikyaku_reach::daemon::UPLOADS;
use hikyaku_reach::dial::{Address, Carrier};
use hikyaku_remote::RemoteError;
use hikyaku_store::Space;
use hikyaku_units::Rate;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

/// How long a server may take to answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// A server of a session.
#[derive(Clone, PartialEq, Debug)]
pub struct HostStatus {
    /// Where it listens.
    pub address: Address,
    /// How it is.
    pub state: HostState,
}

/// How a server is.
#[derive(Clone, PartialEq, Debug)]
pub enum HostState {
    /// It answers.
    Up(Up),
    /// It does not, for this reason.
    Away(String),
}

/// What a server that answers has told.
#[derive(Clone, PartialEq, Debug)]
pub struct Up {
    /// What carries the connection.
    pub carrier: Carrier,
    /// How often it was connected in this session: once, unless the connection was lost.
    pub connections: u32,
    /// Whether this client may write there.
    pub is_writable: bool,
    /// The smoothed round-trip time.
    pub round_trip: Duration,
    /// The space of its disk; `None` if it cannot tell.
    pub space: Option<Space>,
    /// The mean rate at which it sent or got bytes of files in the last transfer; `None` before the first one.
    pub rate: Option<Rate>,
}

impl Session {
    /// Asks all servers at once how they are: those that were reached, in their order, and then those that could not be
    /// reached at the start. A server that does not answer within 10 s is away.
    pub fn status(&self) -> Vec<HostStatus> {
        let _ = self.clients();
        let mut all: Vec<HostStatus> = thread::scope(|scope| {
            let ask = |server| scope.spawn(move || self.ask(ServerId(server)));
            let asked: Vec<_> = (0..self.members.len()).map(ask).collect();
            let panicked = |_| HostState::Away("a thread panicked".to_owned());
            let states = asked.into_iter().map(|one| one.join().unwrap_or_else(panicked));
            let status = |(state, member): (HostState, &super::Member)| HostStatus {
                address: member.address.clone(),
                state,
            };
            states.zip(&self.members).map(status).collect()
        });
        all.extend(self.missing.iter().map(|missing| HostStatus {
            address: missing.address.clone(),
            state: HostState::Away(missing.source.to_string()),
        }));
        all
    }

    fn ask(&self, server: ServerId) -> HostState {
        let (client, mut up) = {
            let line = self.members[server.0].line();
            let rate = line.moved.map(|(bytes, time)| {
                Rate::from_bits_per_sec((bytes as f64 * 8.0 / time.as_secs_f64().max(1e-3)) as u64)
            });
            let up = Up {
                carrier: line.carrier,
                connections: line.connections,
                is_writable: line.client.has(UPLOADS),
                round_trip: Duration::ZERO,
                space: None,
                rate,
            };
            (line.client.clone(), up)
        };
        let until = Instant::now() + PATIENCE;
        let (say, answers) = mpsc::channel();
        // Nobody listens any more if it comes too late.
        client.space_then(move |space| drop(say.send(space)));
        up.space = match answers.recv_timeout(PATIENCE) {
            Ok(Ok(space)) => Some(space),
            Ok(Err(RemoteError::Refused { .. })) => None,
            Ok(Err(error)) => return HostState::Away(error.to_string()),
            Err(_) => return HostState::Away("the server does not answer".to_owned()),
        };
        match wait(client.connection().seen(), &Stop::default(), Some(until)) {
            Ok(Some(seen)) => up.round_trip = seen.round_trip,
            _ => return HostState::Away("the connection has ended".to_owned()),
        }
        HostState::Up(up)
    }
}
