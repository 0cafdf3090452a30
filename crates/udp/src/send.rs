//! Sending a batch: cut by the kernel where that works, one datagram each where it does not.

use crate::address::{RawAddress, SocketFamily};
use crate::bind::UdpSocket;
use crate::control::Control;
use crate::sys;
use crate::transmit::{Transmit, segments_in_batch};
use rustix::io::Errno;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsFd;
use thiserror::Error;

/// How much of a [`Transmit`] left.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SendOutcome {
    /// All of it.
    Sent,
    /// Only the first `sent` bytes, which are whole datagrams. The socket is full, or the next
    /// datagram meets an error that sending it again reports.
    Stopped {
        /// Bytes of the contents that left; may be zero.
        sent: usize,
    },
}

/// Why nothing of a [`Transmit`] left. None of these makes the socket unusable.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SendError {
    /// A datagram is larger than the interface's MTU, or than UDP allows.
    #[error("a datagram of {size} bytes is larger than the interface takes")]
    TooBig {
        /// Its size.
        size: usize,
    },
    /// No route, or the interface is down.
    #[error("no way to {destination}: {source}")]
    Unreachable {
        /// Where it should have gone.
        destination: SocketAddr,
        /// What the kernel said.
        source: io::Error,
    },
    /// A firewall of this machine drops the packet.
    #[error("this machine does not permit packets to {destination}: {source}")]
    NotPermitted {
        /// Where it should have gone.
        destination: SocketAddr,
        /// What the kernel said.
        source: io::Error,
    },
    /// The local address to send from is no longer one of this machine's.
    #[error("cannot send from {address}: no interface has it")]
    SourceUnavailable {
        /// The address.
        address: IpAddr,
    },
    /// An IPv6 destination on a socket that is bound to IPv4.
    #[error("a socket bound to IPv4 cannot send to {destination}")]
    WrongFamily {
        /// Where it should have gone.
        destination: SocketAddr,
    },
    /// The kernel is out of memory for packets; waiting for room does not tell when it ends.
    #[error("the kernel has no memory for packets")]
    NoMemory,
    /// Something else.
    #[error("sending to {destination}: {source}")]
    Other {
        /// Where it should have gone.
        destination: SocketAddr,
        /// What the kernel said.
        source: io::Error,
    },
}

impl UdpSocket {
    /// Sends `transmit`, without blocking.
    pub fn send(&self, transmit: &Transmit<'_>) -> Result<SendOutcome, SendError> {
        let destination = canonical(transmit.destination);
        let transmit = &Transmit { destination, ..*transmit };
        let (address, length) = RawAddress::encode(destination, self.family())
            .ok_or(SendError::WrongFamily { destination })?;
        let batch = Batch {
            socket: self,
            to: (&address, length),
            control: self.control_for(transmit),
            size: transmit.datagram_size(),
        };
        let mut sent = 0;
        loop {
            match batch.send_first(&transmit.contents[sent..]) {
                Ok(count) => sent += count,
                Err(error) if is_passing(&error) => continue,
                Err(error) if sent > 0 || error.kind() == io::ErrorKind::WouldBlock => {
                    return Ok(SendOutcome::Stopped { sent });
                }
                Err(error) => return Err(send_error(error, transmit, batch.size)),
            }
            if sent >= transmit.contents.len() {
                return Ok(SendOutcome::Sent);
            }
        }
    }

    fn control_for(&self, transmit: &Transmit<'_>) -> Control {
        let mut control = Control::new();
        if let Some(ecn) = transmit.ecn {
            // The message replaces the whole byte, so it must repeat the code point.
            let byte = self.base_traffic_class() | ecn.bits();
            let family = match transmit.destination {
                SocketAddr::V4(_) => SocketFamily::V4,
                SocketAddr::V6(_) => SocketFamily::V6,
            };
            control.push_traffic_class(family, byte);
        }
        if let Some(source) = transmit.source {
            control.push_source(source);
        }
        control
    }
}

/// `::ffff:a.b.c.d` as the IPv4 address it stands for: its packets are IPv4, and so must be the
/// control messages with them.
fn canonical(address: SocketAddr) -> SocketAddr {
    match address.ip().to_canonical() {
        IpAddr::V4(v4) => SocketAddr::new(v4.into(), address.port()),
        // As it was, with its scope.
        IpAddr::V6(_) => address,
    }
}

/// What all calls for one [`Transmit`] share.
struct Batch<'a> {
    socket: &'a UdpSocket,
    to: (&'a RawAddress, usize),
    control: Control,
    size: usize,
}

impl Batch<'_> {
    /// Sends the first datagrams of `rest`, as many as one call takes. Gives their bytes.
    fn send_first(&self, rest: &[u8]) -> io::Result<usize> {
        let fd = self.socket.as_fd();
        if rest.len() <= self.size {
            return sys::send_one(fd, self.to, &self.control, rest).map(|()| rest.len());
        }
        let many = rest.len().min(segments_in_batch(self.size) * self.size);
        let refusal = match u16::try_from(self.size) {
            Ok(size) if self.socket.is_segmenting() && many > self.size => {
                let mut control = self.control;
                control.push_segment_size(size);
                match sys::send_one(fd, self.to, &control, &rest[..many]) {
                    Ok(()) => return Ok(many),
                    Err(error) if may_be_the_offload(&error) => Some(error),
                    Err(error) => return Err(error),
                }
            }
            _ => None,
        };
        let count = sys::send_each(fd, self.to, &self.control, rest, self.size)?;
        // The refusal was about cutting only if the same datagrams pass uncut: a segment larger
        // than the MTU or a wrong source address is refused either way.
        if refusal.is_some() {
            self.socket.stop_segmenting();
        }
        Ok(rest.len().min(count * self.size))
    }
}

/// Whether the kernel answers so when it or a device cannot cut a message. It says EIO where no
/// device computes checksums, EINVAL or EMSGSIZE for what it deems an impossible cut.
fn may_be_the_offload(error: &io::Error) -> bool {
    matches!(errno(error), Some(Errno::IO | Errno::INVAL | Errno::MSGSIZE))
}

/// Whether the error is not about this call: a signal, or an ICMP answer to an earlier packet,
/// which is reported once. Anyone on the path can send those, so they mean nothing.
fn is_passing(error: &io::Error) -> bool {
    matches!(errno(error), Some(Errno::INTR | Errno::CONNREFUSED))
}

fn send_error(source: io::Error, transmit: &Transmit<'_>, size: usize) -> SendError {
    let destination = transmit.destination;
    // Kernels name a source address that is gone differently, some as if there were no route.
    if let Some(address) = transmit.source
        && matches!(errno(&source), Some(Errno::INVAL | Errno::ADDRNOTAVAIL | Errno::NETUNREACH))
        && !is_ours(address)
    {
        return SendError::SourceUnavailable { address };
    }
    match errno(&source) {
        Some(Errno::MSGSIZE) => SendError::TooBig { size },
        Some(Errno::NETUNREACH | Errno::HOSTUNREACH | Errno::NETDOWN) => {
            SendError::Unreachable { destination, source }
        }
        Some(Errno::PERM | Errno::ACCESS) => SendError::NotPermitted { destination, source },
        Some(Errno::NOBUFS | Errno::NOMEM) => SendError::NoMemory,
        _ => SendError::Other { destination, source },
    }
}

/// Whether an interface of this machine has `address`.
fn is_ours(address: IpAddr) -> bool {
    // Binding fails for other reasons too, such as a link-local address without its interface.
    let bound = std::net::UdpSocket::bind((address, 0));
    !bound.is_err_and(|error| error.kind() == io::ErrorKind::AddrNotAvailable)
}

pub(crate) fn errno(error: &io::Error) -> Option<Errno> {
    Errno::from_io_error(error)
}
