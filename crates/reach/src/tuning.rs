//! What users may set of the transport.

use crate::meet::DoorError;
use crate::service::{Readers, Service};
use crate::watch::KEEP_ALIVE;
use hikyaku_crypto::parse_cipher;
use hikyaku_net::{ListenerConfig, StalledStreams};
use hikyaku_units::{DataSize, Rate};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// What users may set of the transport; for both ends.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Tuning {
    /// The only cipher.
    pub cipher: Option<String>,
    /// The most payload that an end sends, in bits a second.
    pub rate: Option<u64>,
    /// The most memory for data under way, in bytes.
    pub window: Option<u64>,
    /// What the kernel is asked for to hold datagrams that have arrived, in bytes.
    pub buffer: Option<u64>,
    /// `fair`, `scavenger` or `fixed:RATE`.
    pub policy: Option<String>,
    /// The longest silence that is sat out, in seconds.
    pub timeout: Option<u64>,
}

impl Tuning {
    /// After so long without a sign of the other end a connection is given up.
    pub(crate) fn silence(&self) -> Duration {
        self.timeout.map_or(SILENCE, Duration::from_secs)
    }

    /// The most payload that an end sends.
    pub(crate) fn payload_rate(&self) -> Option<Rate> {
        self.rate.map(Rate::from_bits_per_sec)
    }

    /// What of it only data over UDP have, in words for the user; `None` if nothing of that is set.
    pub(crate) fn idle_without_udp(&self) -> Option<String> {
        let set = [
            ("--cipher", self.cipher.is_some()),
            ("--policy", self.policy.is_some()),
            ("--buffer", self.buffer.is_some()),
        ];
        let idle: Vec<&str> =
            set.into_iter().filter(|(_, is_set)| *is_set).map(|(flag, _)| flag).collect();
        (!idle.is_empty())
            .then(|| format!("what is set as {} has no effect without UDP", idle.join(" and ")))
    }

    /// The settings of a connection through a pipe.
    pub(crate) fn of_pipes(&self, service: &Service) -> hikyaku_pipes::Config {
        let usual = hikyaku_pipes::Config::default();
        let stream_window = match service.readers {
            Readers::One => usual.stream_window,
            Readers::Many => PIPE_WINDOW_OF_MANY,
        };
        hikyaku_pipes::Config {
            stream_window,
            window: self.window.unwrap_or(usual.window),
            streams_max: service.streams_max as usize,
            ..usual
        }
    }

    /// Sets what the user has set, and what `service` needs. `memory` is what the process may take.
    pub(crate) fn apply(
        &self,
        config: &mut ListenerConfig,
        service: &Service,
        memory: DataSize,
    ) -> Result<(), DoorError> {
        let transport = &mut config.transport;
        transport.max_streams = service.streams_max;
        transport.keep_alive = KEEP_ALIVE;
        transport.idle_timeout = self.silence();
        transport.payload_rate = self.payload_rate();
        if let Some(cipher) = &self.cipher {
            transport.ciphers = vec![parse_cipher(cipher)?];
        }
        if let Some(policy) = &self.policy {
            transport.policy = policy.parse()?;
        }
        let room = memory.bytes();
        let window = self.window.unwrap_or_else(|| transport.receive_window.bytes());
        transport.receive_window =
            DataSize::from_bytes(window.min(room / WINDOW_SHARE).max(LEAST_WINDOW));
        transport.initial_window = transport.initial_window.min(transport.receive_window);
        match service.readers {
            Readers::One => transport.stream_window = transport.initial_window,
            Readers::Many => {
                transport.stream_window =
                    window_of_many(transport.receive_window).min(transport.initial_window);
                transport.stalled = StalledStreams::Stop;
            }
        }
        let socket = &mut config.endpoint.socket;
        let buffer = self.buffer.unwrap_or_else(|| socket.recv_buffer.bytes());
        socket.recv_buffer = DataSize::from_bytes(buffer.min(room / BUFFER_SHARE));
        Ok(())
    }
}

/// An outage shorter than this is sat out, unless users say otherwise. Whoever is at the terminal sees that nothing
/// arrives, and both ends learn of a killed one from ssh.
const SILENCE: Duration = Duration::from_secs(180);

/// Of the memory that there is, a quarter may hold data under way and a sixteenth what is in the
/// socket: the rest is for the application, and for the kernel's copy of what it writes.
const WINDOW_SHARE: u64 = 4;
const BUFFER_SHARE: u64 = 16;

/// The first window of a stream of many readers, of this receive window.
pub(crate) const fn window_of_many(receive_window: DataSize) -> DataSize {
    DataSize::from_bytes(receive_window.bytes() / WINDOWS_OF_MANY)
}

/// So many streams that nobody reads fill the receive window, if none has earned more than its first window. That is
/// 16 MB of 512 MB: a new stream has 640 Mbit/s over 200 ms at once.
const WINDOWS_OF_MANY: u64 = 32;

/// The first window of a stream of many in a pipe, in bytes: twice as many streams as a service allows may hold one each
/// that nobody reads.
const PIPE_WINDOW_OF_MANY: u64 = 64 << 10;

/// With less nothing moves: no end has so little memory, whatever it says.
pub(crate) const LEAST_WINDOW: u64 = 1 << 20;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::service::PathMemory;
    use hikyaku_net::{Identity, ServerCredentials};

    #[test]
    fn streams_of_many_readers_begin_with_a_part_of_the_window_and_are_stopped_if_unread() {
        let of = |readers| {
            let path_memory = PathMemory::Off;
            let service = Service {
                name: "test",
                streams_max: 1,
                readers,
                path_memory,
                loss: crate::Loss::Ends,
            };
            let identity = Identity::generate().unwrap();
            let mut config = ListenerConfig::new(ServerCredentials::new(&identity));
            let memory = DataSize::from_bytes(8 << 30);
            Tuning::default().apply(&mut config, &service, memory).unwrap();
            (config.transport, Tuning::default().of_pipes(&service).stream_window)
        };
        let ((one, one_pipe), (many, many_pipe)) = (of(Readers::One), of(Readers::Many));
        assert_eq!((one.stream_window, one.stalled), (one.initial_window, StalledStreams::Wait));
        let window = DataSize::from_bytes(many.receive_window.bytes() / WINDOWS_OF_MANY);
        assert_eq!((many.stream_window, many.stalled), (window, StalledStreams::Stop));
        assert!(many.stream_window < one.stream_window && many_pipe < one_pipe);
    }
}
