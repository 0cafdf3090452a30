//! Whose programs may use the listeners, of those of this machine.
//!
//! The kernel tells whose socket the other end of a connection is (sock_diag(7)). A program is admitted only if the kernel says so:
//! whatever cannot be found out is a refusal. A program that has closed its socket has no use for an answer, and its socket
//! may have lost its owner by then (a socket in TIME-WAIT is root's).

use crate::args::AnyUser;
use anyhow::{Context, Result};
use hikyaku_tcp::{Diag, Queues};
use rustix::process::geteuid;
use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::{Mutex, PoisonError};

/// Whose programs may use the listeners.
pub(super) enum Users {
    /// Everybody's.
    Any,
    /// This user's, and root's.
    Own(Mutex<Diag>),
}

impl Users {
    /// As the user says.
    ///
    /// # Errors
    ///
    /// Other users are to be refused, and the kernel does not tell of sockets.
    pub(super) fn of(users: AnyUser) -> Result<Self> {
        match users {
            AnyUser::Allowed => Ok(Self::Any),
            AnyUser::Refused => Ok(Self::Own(Mutex::new(
                Diag::new()
                    .context("try: modprobe inet_diag tcp_diag; or --any-user, where this machine has no other users")
                    .context("the kernel does not tell whose programs use the listeners (sock_diag)")?,
            ))),
        }
    }

    /// Whether a program at this address may use a listener. A program of another machine has come to a listener that is for
    /// other hosts (`-g`).
    pub(super) fn admit(&self, program: SocketAddr, gateway: io::Result<SocketAddr>) -> bool {
        let Self::Own(diag) = self else { return true };
        let Ok(gateway) = gateway else { return false };
        if !is_of_this_machine(program.ip()) {
            return true;
        }
        let mut diag = diag.lock().unwrap_or_else(PoisonError::into_inner);
        is_own(diag.queues(program, gateway), geteuid().as_raw())
    }
}

/// Whether a socket, as the kernel has told of it, is open in a program of this user or of root.
fn is_own(socket: io::Result<Option<Queues>>, own: u32) -> bool {
    let open = socket.ok().flatten().filter(|socket| socket.inode != 0);
    open.is_some_and(|socket| [0, own].contains(&socket.uid))
}

/// Whether an address is one of this machine. What cannot be found out counts as this machine.
fn is_of_this_machine(ip: IpAddr) -> bool {
    let ip = ip.to_canonical();
    let any: IpAddr = match ip {
        IpAddr::V4(_) => [0; 4].into(),
        IpAddr::V6(_) => [0; 16].into(),
    };
    // Nothing is sent. To an address of this machine the kernel chooses the same address as the source, to no other.
    let from = || {
        let socket = UdpSocket::bind((any, 0))?;
        socket.connect((ip, DISCARD))?;
        socket.local_addr()
    };
    from().map_or(true, |from| from.ip().to_canonical() == ip || ip.is_loopback())
}

/// The port of a service that takes what comes (RFC 863). Any port would do.
const DISCARD: u16 = 9;

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::ErrorKind;
    use std::net::{TcpListener, TcpStream};

    fn socket(uid: u32, inode: u32) -> io::Result<Option<Queues>> {
        Ok(Some(Queues { unread: 0, unacknowledged: 0, receive_memory: None, uid, inode }))
    }

    #[test]
    fn only_an_open_socket_of_this_user_or_of_root_is_admitted() {
        for (found, wanted) in [
            (socket(1000, 7), true),
            (socket(0, 7), true),
            (socket(1001, 7), false),
            // In TIME-WAIT, or closed by its program.
            (socket(0, 0), false),
            (socket(1000, 0), false),
            (Ok(None), false),
            (Err(ErrorKind::WouldBlock.into()), false),
        ] {
            assert_eq!(is_own(found, 1000), wanted);
        }
    }

    #[test]
    fn a_program_that_has_closed_its_connection_is_refused() {
        let users = Users::of(AnyUser::Refused).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let admitted = |is_closed: bool| {
            let program = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            let (gateway, from) = listener.accept().unwrap();
            let held = (!is_closed).then_some(program);
            let is_admitted = users.admit(from, gateway.local_addr());
            drop(held);
            is_admitted
        };
        assert_eq!([admitted(false), admitted(true)], [true, false]);
    }

    #[test]
    fn addresses_of_this_machine_are_known() {
        for (ip, wanted) in [
            ("127.0.0.1", true),
            ("127.7.7.7", true),
            ("::ffff:127.0.0.1", true),
            ("192.0.2.7", false),
        ] {
            // Without a route the address could be anything, and counts as this machine's.
            let is_known = wanted || UdpSocket::bind("0.0.0.0:0").unwrap().connect((ip, 9)).is_ok();
            assert_eq!(is_of_this_machine(ip.parse().unwrap()), wanted || !is_known, "{ip}");
        }
    }
}
