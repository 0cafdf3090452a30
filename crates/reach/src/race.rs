//! Which of UDP and TCP carries a connection: UDP where it gets through, TCP where it does not.

use crate::blocked::{is_udp_blocked, note_udp};
use crate::closed::ClosedPort;
use crate::tcp::{Call, Called, TcpError};
use hikyaku_console::{Tone, say};
use hikyaku_net::blocking::{Cut, Stop, wait};
use hikyaku_net::{Connection, Memory, UdpSeen, code};
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SendError, TryRecvError, channel};
use std::thread;
use std::time::{Duration, Instant};

/// TCP is dialled after this time, so that it costs nothing where UDP gets through. A handshake over UDP takes one round trip.
const HEAD_START: Duration = Duration::from_secs(1);
/// A connection over TCP is used after this time: a handshake over UDP whose first packet is lost takes a second and a
/// round trip. Where UDP was blocked the last time, the connection that is made first is used.
const UDP_PREFERRED: Duration = Duration::from_secs(2);
/// How often the other attempt is looked at.
const LOOK: Duration = Duration::from_millis(20);

/// A race for a connection to one host.
pub(crate) struct Race<'a> {
    /// Knows where UDP was blocked, and records what this race finds.
    pub(crate) memory: Memory,
    /// The addresses of the host.
    pub(crate) at: &'a [SocketAddr],
    /// Whether the kernel of the host refuses the UDP port.
    pub(crate) closed: ClosedPort,
    /// UDP counts as silent after this time; `None` if the attempt over UDP ends by itself.
    pub(crate) udp_time: Option<Duration>,
}

/// The connection that is used.
pub(crate) enum Met {
    Udp(Connection),
    Tcp(Called),
}

/// Why there is no connection.
pub(crate) enum NotMet<E> {
    /// UDP gets through, and the attempt over it has failed.
    Udp(E),
    /// UDP is silent, with the error of the attempt if it has ended, and TCP has failed as well.
    Both { udp: Option<E>, tcp: TcpError },
    /// The system has no room for another thread.
    Thread(io::Error),
}

/// The attempt over TCP.
enum Tcp {
    NotBegun(Call),
    Begun(Receiver<Result<Called, TcpError>>),
    Connected(Called),
    Failed(TcpError),
}

impl Race<'_> {
    /// Runs the race until one has connected or both have failed. `udp` is the attempt over UDP. With an error that
    /// `is_silence` it may be blocked, and TCP decides. `call` is the attempt over TCP.
    pub(crate) fn run<E>(
        self,
        udp: impl Future<Output = Result<Connection, E>>,
        call: Call,
        is_silence: impl Fn(&E) -> bool,
    ) -> Result<Met, NotMet<E>> {
        let (begin, mut udp, stop) = (Instant::now(), pin!(udp), Stop::default());
        let was_blocked = is_udp_blocked(&self.memory, self.at);
        let mut tcp = Tcp::NotBegun(call);
        let (mut is_over, mut failed) = (false, None);
        loop {
            let elapsed = begin.elapsed();
            is_over |= self.udp_time.is_some_and(|time| elapsed >= time);
            let is_silent = is_over || self.closed.is_found();
            tcp = match tcp {
                Tcp::NotBegun(call) if is_silent || was_blocked || elapsed >= HEAD_START => {
                    let tell = "nothing came back by UDP yet: dialling by TCP as well";
                    say(Tone::Detail, format_args!("{tell}"));
                    let patience = call.patience.saturating_sub(elapsed);
                    Tcp::Begun(dial(Call { patience, ..call }).map_err(NotMet::Thread)?)
                }
                Tcp::Connected(called) if is_silent || was_blocked || elapsed >= UDP_PREFERRED => {
                    note_udp(&self.memory, &[called.peer], UdpSeen::Blocked);
                    return Ok(Met::Tcp(called));
                }
                Tcp::Failed(tcp) if is_silent => return Err(NotMet::Both { udp: failed, tcp }),
                tcp => tcp,
            };
            if is_over {
                tcp = self.look(tcp, LOOK);
                continue;
            }
            match wait(udp.as_mut(), &stop, Some(Instant::now() + LOOK)) {
                Ok(Ok(connection)) => {
                    if !matches!(tcp, Tcp::NotBegun(_)) {
                        note_udp(&self.memory, &[connection.remote_addr()], UdpSeen::Works);
                    }
                    if let Tcp::Connected(called) = tcp {
                        called.connection.close(code::DONE, "");
                    }
                    return Ok(Met::Udp(connection));
                }
                Ok(Err(error)) if is_silence(&error) => (is_over, failed) = (true, Some(error)),
                Ok(Err(error)) => return Err(NotMet::Udp(error)),
                Err(Cut::TooLate | Cut::Stopped) => {}
            }
            tcp = self.look(tcp, Duration::ZERO);
        }
    }

    /// The attempt over TCP after waiting for its end for at most `time`.
    fn look(&self, tcp: Tcp, time: Duration) -> Tcp {
        let Tcp::Begun(ended) = tcp else { return tcp };
        let ended_by = match time.is_zero() {
            true => ended.try_recv().map_err(|error| error == TryRecvError::Disconnected),
            false => ended.recv_timeout(time).map_err(|e| e == RecvTimeoutError::Disconnected),
        };
        match ended_by {
            Ok(Ok(called)) => Tcp::Connected(called),
            Ok(Err(error)) => {
                say(Tone::Detail, format_args!("TCP: {error}"));
                Tcp::Failed(error)
            }
            // The thread has panicked.
            Err(true) => Tcp::Failed(TcpError::System(io::ErrorKind::Other.into())),
            Err(false) => Tcp::Begun(ended),
        }
    }
}

/// Begins the attempt over TCP on a thread of its own.
fn dial(call: Call) -> io::Result<Receiver<Result<Called, TcpError>>> {
    let (say, ended) = channel();
    let dial = move || {
        if let Err(SendError(Ok(called))) = say.send(call.dial()) {
            // UDP has connected meanwhile.
            called.connection.close(code::DONE, "");
        }
    };
    thread::Builder::new().name("tcp-dial".to_owned()).spawn(dial)?;
    Ok(ended)
}

#[cfg(test)]
mod tests;
