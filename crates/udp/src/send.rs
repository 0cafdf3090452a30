//! Sending a batch: with segmentation offload where it works, otherwise one datagram each.

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

/// How much of a [`Transmit`] was sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SendOutcome {
    /// All of it.
    Sent,
    /// Only the first `sent` bytes, which are whole datagrams. Either the socket buffer is full, or
    /// the next datagram failed with an error that a repeated send will report.
    Stopped {
        /// Bytes that were sent; may be zero.
        sent: usize,
    },
}

/// Why nothing of a [`Transmit`] was sent. The socket remains usable after each of these.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SendError {
    /// A datagram exceeds the interface's MTU or the limit of UDP.
    #[error("a datagram of {size} bytes exceeds the MTU of the interface")]
    TooBig {
        /// Its size in bytes.
        size: usize,
    },
    /// There is no route to the destination, or the interface is down.
    #[error("no route to {destination}: {source}")]
    Unreachable {
        /// The destination.
        destination: SocketAddr,
        /// The kernel's error.
        source: io::Error,
    },
    /// A local firewall rule or a prohibiting route refuses the packet (`EPERM`, `EACCES`).
    #[error("this machine does not permit packets to {destination}: {source}")]
    NotPermitted {
        /// The destination.
        destination: SocketAddr,
        /// The kernel's error.
        source: io::Error,
    },
    /// No interface has the source address any more.
    #[error("cannot send from {address}: no interface has it")]
    SourceUnavailable {
        /// The source address.
        address: IpAddr,
    },
    /// An IPv6 destination on a socket bound to an IPv4 address.
    #[error("a socket bound to IPv4 cannot send to {destination}")]
    WrongFamily {
        /// The destination.
        destination: SocketAddr,
    },
    /// The kernel has no memory for packets. Polling the socket does not report when there is
    /// memory again.
    #[error("the kernel is out of memory for packets")]
    NoMemory,
    /// Any other error.
    #[error("cannot send to {destination}: {source}")]
    Other {
        /// The destination.
        destination: SocketAddr,
        /// The kernel's error.
        source: io::Error,
    },
}

impl UdpSocket {
    /// Sends `transmit` without blocking.
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
                Err(error) if is_ignorable(&error) => continue,
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
            // The control message replaces the whole traffic class byte, so it repeats the DSCP.
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

/// Whether an error can be ignored: an interrupting signal, or an ICMP error for an earlier packet. The kernel reports
/// such an ICMP error once, and anyone can forge it.
fn is_ignorable(error: &io::Error) -> bool {
    matches!(errno(error), Some(Errno::INTR | Errno::CONNREFUSED))
}

/// Converts `::ffff:a.b.c.d` to the IPv4 address. The packets to it are IPv4 and need the IPv4
/// control messages.
fn canonical(address: SocketAddr) -> SocketAddr {
    match address.ip().to_canonical() {
        IpAddr::V4(v4) => SocketAddr::new(v4.into(), address.port()),
        // Returned unchanged, to preserve its scope id.
        IpAddr::V6(_) => address,
    }
}

/// The values common to all system calls for one [`Transmit`].
struct Batch<'a> {
    socket: &'a UdpSocket,
    to: (&'a RawAddress, usize),
    control: Control,
    size: usize,
}

impl Batch<'_> {
    /// Sends as many datagrams of `rest` as one call takes, and returns their bytes.
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
        // The offload is at fault only if the same datagrams can be sent without it. A segment
        // above the MTU or a wrong source address fails in both ways.
        if refusal.is_some() {
            self.socket.stop_segmenting();
        }
        Ok(rest.len().min(count * self.size))
    }
}

/// Whether the error may come from the segmentation of a batch. The kernel returns EIO if no device
/// computes checksums, and EINVAL or EMSGSIZE for batches that it cannot segment.
fn may_be_the_offload(error: &io::Error) -> bool {
    matches!(errno(error), Some(Errno::IO | Errno::INVAL | Errno::MSGSIZE))
}

fn send_error(source: io::Error, transmit: &Transmit<'_>, size: usize) -> SendError {
    let destination = transmit.destination;
    // Kernels report a missing source address by different errors, some of them as a missing route.
    if let Some(address) = transmit.source
        && matches!(errno(&source), Some(Errno::INVAL | Errno::ADDRNOTAVAIL | Errno::NETUNREACH))
        && !is_local(address)
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
fn is_local(address: IpAddr) -> bool {
    // Binding also fails for other reasons, such as a link-local address without its interface.
    let bound = std::net::UdpSocket::bind((address, 0));
    !bound.is_err_and(|error| error.kind() == io::ErrorKind::AddrNotAvailable)
}

pub(crate) fn errno(error: &io::Error) -> Option<Errno> {
    Errno::from_io_error(error)
}
