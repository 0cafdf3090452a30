//! One connection to a host of several addresses: each address is tried a little later than the one before, the families in
//! turn, and the first connection wins (RFC 8305, "Happy Eyeballs").

use crate::socket::{ConnectError, Options, begin, finish};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io::{self, ErrorKind};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

/// The time between the beginnings of two attempts (RFC 8305, section 8).
pub const ATTEMPT_DELAY: Duration = Duration::from_millis(250);
/// The time between two checks whether the connection is still wanted.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// A connection of a race.
#[derive(Debug)]
pub struct Won {
    /// The connection. It is blocking.
    pub stream: TcpStream,
    /// Its address.
    pub address: SocketAddr,
    /// The time that its handshake took.
    pub handshake: Duration,
}

/// The addresses with their families in turn, beginning with the family of the first one, at most `most` of them (RFC 8305,
/// section 4).
pub fn in_turn(addresses: &[SocketAddr], most: usize) -> Vec<SocketAddr> {
    let is_first = |address: &&SocketAddr| address.is_ipv4() == addresses[0].is_ipv4();
    let mut first = addresses.iter().filter(is_first);
    let mut second = addresses.iter().filter(|address| !is_first(address));
    let (mut all, most) = (Vec::new(), addresses.len().min(most));
    while all.len() < most {
        all.extend(first.next());
        all.extend(second.next());
    }
    all.truncate(most);
    all
}

/// Connects to one of the addresses. Each attempt may take `within`. `goes_on` is asked ten times a second.
///
/// # Errors
///
/// No address accepts a connection: the error of the last one. `Interrupted` if `goes_on` has returned false.
pub fn connect_first(
    addresses: &[SocketAddr],
    options: &Options,
    within: Duration,
    goes_on: &dyn Fn() -> bool,
) -> Result<Won, ConnectError> {
    let mut rest = addresses.iter().copied();
    let mut attempts: Vec<Attempt> = Vec::new();
    let mut last = ConnectError::Io(ErrorKind::NotFound.into());
    let mut next_at = Instant::now();
    loop {
        let now = Instant::now();
        if attempts.is_empty() || now >= next_at {
            match rest.next() {
                Some(address) => {
                    match begin(address, options) {
                        Ok(socket) => attempts.push(Attempt { socket, address, begun: now }),
                        Err(error) => last = error,
                    }
                    next_at = now + ATTEMPT_DELAY;
                    continue;
                }
                None if attempts.is_empty() => return Err(last),
                None => {}
            }
        }
        if !goes_on() {
            return Err(io::Error::from(ErrorKind::Interrupted).into());
        }
        let until = attempts.iter().map(|attempt| attempt.begun + within).min();
        let mut wait = until.map_or(LOOK_EVERY, |at| at.saturating_duration_since(now));
        if rest.len() > 0 {
            wait = wait.min(next_at.saturating_duration_since(now));
        }
        let ready = ready(&attempts, wait.min(LOOK_EVERY))?;
        let (now, is_ready) = (Instant::now(), |at: usize| ready.get(at).is_some_and(|it| *it));
        for at in (0..attempts.len()).rev() {
            if is_ready(at) {
                let Attempt { socket, address, begun } = attempts.remove(at);
                match finish(socket) {
                    Ok(stream) => return Ok(Won { stream, address, handshake: now - begun }),
                    Err(error) => last = error,
                }
                // The next address need not wait for one that has failed.
                next_at = now;
            } else if now >= attempts[at].begun + within {
                attempts.remove(at);
                last = io::Error::from(ErrorKind::TimedOut).into();
            }
        }
    }
}

/// A handshake under way.
struct Attempt {
    socket: OwnedFd,
    address: SocketAddr,
    begun: Instant,
}

/// Which of the handshakes have ended, after `wait` at most.
fn ready(attempts: &[Attempt], wait: Duration) -> io::Result<Vec<bool>> {
    let mut sockets: Vec<PollFd<'_>> =
        attempts.iter().map(|attempt| PollFd::new(&attempt.socket, PollFlags::OUT)).collect();
    // Rounded up: a wait of nothing would be repeated until the instant has come.
    let wait = wait + Duration::from_millis(1);
    let wait = Timespec {
        tv_sec: wait.as_secs().try_into().unwrap_or(i64::MAX),
        tv_nsec: wait.subsec_nanos().into(),
    };
    match poll(&mut sockets, Some(&wait)) {
        // A signal handler ran.
        Ok(_) | Err(rustix::io::Errno::INTR) => {}
        Err(error) => return Err(error.into()),
    }
    Ok(sockets.iter().map(|socket| !socket.revents().is_empty()).collect())
}

#[cfg(test)]
mod tests;
