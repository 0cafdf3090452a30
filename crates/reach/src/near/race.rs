//! Which carrier a session takes: UDP where it gets through, and TCP where it does not.

use super::{Carriers, ReachError, UDP_PATIENCE, UDP_SILENCE, Way, spawn};
use crate::blocked::{is_udp_blocked, note_udp};
use crate::carrier::Connection;
use crate::dial::Address;
use crate::hello::Hello;
use crate::meet::{Door, MeetError};
use crate::service::PathMemory;
use crate::tcp::{Call, Called};
use crate::watch::{Fate, watch_udp};
use hikyaku_crypto::{ClientCredentials, Trust};
use hikyaku_net::blocking::{Cut, Stop, wait};
use hikyaku_net::{Memory, UdpSeen, code};
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::mpsc::{SendError, TryRecvError, channel};
use std::time::{Duration, Instant};

/// What has connected.
pub(super) enum Met {
    Udp(hikyaku_net::Connection),
    Tcp(Called),
}

/// TCP is dialled after so long, so that it costs nothing where UDP gets through.
const HEAD_START: Duration = Duration::from_millis(500);
/// From the beginning on, TCP may take so long.
const TCP_PATIENCE: Duration = Duration::from_millis(3000);
/// The same if nothing else is tried first.
const TCP_PATIENCE_ALONE: Duration = Duration::from_secs(8);
/// How often it is looked whether TCP has connected.
const LOOK: Duration = Duration::from_millis(20);

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
            at: Some(addresses.to_vec()),
            credentials: ClientCredentials::new(Trust::Pinned(key)).with_identity(door.identity()),
            patience: TCP_PATIENCE_ALONE,
            config: self.tuning.of_pipes(&self.service),
            pipes: self.pipes,
            silence: self.tuning.silence(),
            fate: fate.clone(),
        })
    }

    /// A connection over TCP, if one comes about.
    pub(super) fn by_tcp(&self, call: Call) -> Option<Met> {
        self.observer.tell(format_args!("dialling by TCP"));
        match call.dial() {
            Ok(called) => Some(Met::Tcp(called)),
            Err(error) => {
                self.observer.tell(format_args!("{error}"));
                None
            }
        }
    }

    /// The connection that comes about, UDP first. Where UDP did not get through the last time, whichever comes first is
    /// taken.
    pub(super) fn by_udp_or_tcp(
        &self,
        udp: impl Future<Output = Result<hikyaku_net::Connection, MeetError>>,
        call: &Call,
        addresses: &[SocketAddr],
    ) -> Result<Option<Met>, ReachError> {
        let (begin, mut udp, stop) = (Instant::now(), pin!(udp), Stop::default());
        let memory = self.memory_of_paths();
        let was_blocked = is_udp_blocked(&memory, addresses);
        let alone = match (self.carriers, was_blocked) {
            (Carriers::Auto, true) => Duration::ZERO,
            (Carriers::Auto, false) => HEAD_START,
            _ => UDP_PATIENCE,
        };
        match wait(udp.as_mut(), &stop, Some(begin + alone)) {
            Ok(connection) => return Ok(Some(Met::Udp(connection?))),
            Err(Cut::TooLate | Cut::Stopped) => {}
        }
        if self.carriers != Carriers::Auto {
            return Ok(None);
        }
        self.observer.tell(format_args!("nothing came back by UDP yet: dialling by TCP as well"));
        let (say, tcp) = channel();
        let call = Call { patience: TCP_PATIENCE.saturating_sub(alone), ..call.clone() };
        let dial = move || {
            if let Err(SendError(Ok(called))) = say.send(call.dial()) {
                // UDP has connected meanwhile.
                called.connection.close(code::DONE, "");
            }
        };
        spawn("tcp-dial", dial)?;
        let mut called = None;
        loop {
            match wait(udp.as_mut(), &stop, Some(Instant::now() + LOOK)) {
                Ok(connection) => {
                    let connection = connection?;
                    let at = [connection.remote_addr()];
                    note_udp(&memory, &at, UdpSeen::Works);
                    return Ok(Some(Met::Udp(connection)));
                }
                Err(Cut::TooLate | Cut::Stopped) => {}
            }
            let is_over = match tcp.try_recv() {
                Ok(Ok(connected)) => {
                    called = Some(connected);
                    false
                }
                Ok(Err(error)) => {
                    self.observer.tell(format_args!("TCP: {error}"));
                    true
                }
                Err(TryRecvError::Disconnected) => called.is_none(),
                Err(TryRecvError::Empty) => false,
            };
            let is_late = begin.elapsed() >= UDP_PATIENCE;
            if let Some(called) = called.take_if(|_| is_late || was_blocked) {
                note_udp(&memory, addresses, UdpSeen::Blocked);
                return Ok(Some(Met::Tcp(called)));
            }
            if is_late && (is_over || begin.elapsed() >= TCP_PATIENCE) {
                return Ok(None);
            }
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
        let (memory, observer) = (self.memory_of_paths(), self.observer.clone());
        let call = Call { patience: TCP_PATIENCE, fate: Fate::default(), ..call };
        let is_there = move || {
            let Ok(called) = call.clone().dial() else { return false };
            called.connection.close(code::DONE, "");
            observer.tell(format_args!("nothing comes by UDP any more, and TCP gets through"));
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
