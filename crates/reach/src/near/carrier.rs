//! Which carrier a session takes: UDP where it gets through, and TCP where it does not.

use super::{Carriers, ReachError, UDP_PATIENCE, UDP_SILENCE, Way, spawn};
use crate::blocked::note_udp;
use crate::carrier::Connection;
use crate::closed::ClosedPort;
use crate::dial::Address;
use crate::hello::Hello;
use crate::meet::{Door, MeetError};
use crate::race::{Met, NotMet, Race};
use crate::service::PathMemory;
use crate::tcp::Call;
use crate::watch::{Fate, watch_udp};
use hikyaku_console::{Tone, say};
use hikyaku_crypto::{ClientCredentials, Trust};
use hikyaku_net::blocking::{Cut, Stop, wait};
use hikyaku_net::{Memory, UdpSeen, code};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// From the beginning on, TCP may take so long.
const TCP_PATIENCE: Duration = Duration::from_millis(3000);
/// The same if nothing else is tried first.
const TCP_PATIENCE_ALONE: Duration = Duration::from_secs(8);

impl Way {
    /// How to connect to the far side over TCP: it listens at the port that it has for UDP.
    pub(super) fn call(
        &self,
        host: &str,
        door: &Door,
        hello: &Hello,
        addresses: &[SocketAddr],
        fate: &Fate,
    ) -> Result<Call, ReachError> {
        let key = hello.door.key.parse().map_err(MeetError::from)?;
        Ok(Call {
            address: Address { host: host.to_owned(), port: hello.door.port },
            at: addresses.to_vec(),
            credentials: ClientCredentials::new(Trust::Pinned(key)).with_identity(door.identity()),
            patience: TCP_PATIENCE_ALONE,
            config: self.tuning.of_pipes(&self.service),
            pipes: self.pipes,
            silence: self.tuning.silence(),
            fate: fate.clone(),
            memory: self.memory_of_paths(),
            decisions: self.decisions.clone(),
        })
    }

    /// A connection over TCP, if one comes about.
    pub(super) fn by_tcp(&self, call: Call) -> Option<Met> {
        say(Tone::Detail, format_args!("dialling by TCP"));
        match call.dial() {
            Ok(called) => Some(Met::Tcp(called)),
            Err(error) => {
                say(Tone::Detail, format_args!("{error}"));
                None
            }
        }
    }

    /// The connection that comes about, UDP first; `None` if neither carrier that is allowed gets through.
    pub(super) fn by_udp_or_tcp(
        &self,
        udp: impl Future<Output = Result<hikyaku_net::Connection, MeetError>>,
        call: &Call,
        addresses: &[SocketAddr],
    ) -> Result<Option<Met>, ReachError> {
        if self.carriers != Carriers::Auto {
            let until = Some(Instant::now() + UDP_PATIENCE);
            return match wait(udp, &Stop::default(), until) {
                Ok(connection) => Ok(Some(Met::Udp(connection?))),
                Err(Cut::TooLate | Cut::Stopped) => Ok(None),
            };
        }
        let race = Race {
            memory: self.memory_of_paths(),
            at: addresses,
            // A firewall of the far side may refuse the port, and still let the far side connect to this end.
            closed: ClosedPort::default(),
            udp_time: Some(UDP_PATIENCE),
        };
        // An attempt that is met with silence goes on waiting for the far side.
        let call = Call { patience: TCP_PATIENCE, ..call.clone() };
        match race.run(udp, call, |_| false) {
            Ok(met) => Ok(Some(met)),
            Err(NotMet::Both { .. }) => Ok(None),
            Err(NotMet::Udp(error)) => Err(error.into()),
            Err(NotMet::Thread(error)) => Err(ReachError::Thread(error)),
        }
    }

    /// Lets the session begin anew over TCP when UDP dies in the middle, and TCP does not.
    pub(super) fn watch_udp(
        &self,
        connection: &Connection,
        call: Call,
        addresses: &[SocketAddr],
        fate: Fate,
    ) -> Result<(), ReachError> {
        let (watched, addresses) = (connection.clone(), addresses.to_vec());
        let memory = self.memory_of_paths();
        let call = Call { patience: TCP_PATIENCE, fate: Fate::default(), ..call };
        let is_there = move || {
            let Ok(called) = call.clone().dial() else { return false };
            called.connection.close(code::DONE, "");
            say(Tone::Detail, format_args!("nothing comes by UDP any more, and TCP gets through"));
            note_udp(&memory, &addresses, UdpSeen::Blocked);
            true
        };
        spawn("reach-udp", move || watch_udp(&watched, UDP_SILENCE, &fate, is_there))
    }

    fn memory_of_paths(&self) -> Memory {
        match self.service.path_memory {
            PathMemory::OfUser => Memory::of_user(),
            PathMemory::Off => Memory::Off,
        }
    }
}
