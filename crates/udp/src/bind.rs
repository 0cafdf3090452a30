//! A socket from its options, and what can go wrong on the way.

use crate::address::SocketFamily;
use crate::configure::{self, Configured};
use crate::granted::{Granted, Support};
use crate::options::SocketOptions;
use rustix::io::Errno;
use rustix::net::{self, AddressFamily, SocketFlags, SocketType};
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use thiserror::Error;

/// A UDP socket that does not block.
///
/// One thread may send while another receives: every method takes `&self`.
#[derive(Debug)]
pub struct UdpSocket {
    fd: OwnedFd,
    family: SocketFamily,
    local: SocketAddr,
    configured: Configured,
    /// Whether sends are cut by the kernel. A device may turn out to refuse it at any time.
    segmenting: AtomicBool,
}

/// Why there is no socket.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum BindError {
    /// Another socket has the port.
    #[error("UDP port {} is taken: another program is bound to {address}", address.port())]
    PortTaken {
        /// What was asked for.
        address: SocketAddr,
    },
    /// The port is one of those that only privileged programs get.
    #[error("UDP port {} needs privileges that this program does not have", address.port())]
    PortForbidden {
        /// What was asked for.
        address: SocketAddr,
    },
    /// No interface has the address.
    #[error("this machine has no address {}", address.ip())]
    AddressUnavailable {
        /// What was asked for.
        address: SocketAddr,
    },
    /// The system does not speak the address's family, as when IPv6 is switched off.
    #[error("this system has no sockets for {}", address.ip())]
    FamilyUnsupported {
        /// What was asked for.
        address: SocketAddr,
    },
    /// The interface does not exist or is not ours to use.
    #[error("cannot use the network interface '{device}': {source}")]
    Device {
        /// The interface asked for.
        device: String,
        /// What the kernel said.
        source: io::Error,
    },
    /// The kernel refused something that it should not.
    #[error("cannot set up a UDP socket on {address} ({step}): {source}")]
    Refused {
        /// What was asked for.
        address: SocketAddr,
        /// The step that failed.
        step: &'static str,
        /// What the kernel said.
        source: io::Error,
    },
}

impl UdpSocket {
    /// Binds to `address`. `[::]` receives IPv4 too unless the options say otherwise.
    pub fn bind(address: SocketAddr, options: &SocketOptions) -> Result<Self, BindError> {
        let (family, domain) = match address {
            SocketAddr::V4(_) => (SocketFamily::V4, AddressFamily::INET),
            SocketAddr::V6(_) => (SocketFamily::V6, AddressFamily::INET6),
        };
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let fd = net::socket_with(domain, SocketType::DGRAM, flags, None)
            .map_err(|error| bind_error(error, address, "socket"))?;
        let configured = configure::configure(fd.as_fd(), family, address, options)?;
        net::bind(&fd, &address).map_err(|error| bind_error(error, address, "bind"))?;
        let local = net::getsockname(&fd)
            .and_then(SocketAddr::try_from)
            .map_err(|error| bind_error(error, address, "local address"))?;
        let segmenting = AtomicBool::new(configured.gso == Support::Present);
        Ok(Self { fd, family, local, configured, segmenting })
    }

    /// The address bound to, with the port that the kernel chose if none was asked for.
    pub fn local_addr(&self) -> SocketAddr {
        self.local
    }

    /// What the socket has of what was asked.
    pub fn granted(&self) -> Granted {
        Granted {
            recv_buffer: self.configured.recv_buffer,
            send_buffer: self.configured.send_buffer,
            gso: if self.is_segmenting() { Support::Present } else { Support::Absent },
            gro: self.configured.gro,
        }
    }

    pub(crate) fn family(&self) -> SocketFamily {
        self.family
    }

    /// The traffic class byte of a packet with an ECN field of zero.
    pub(crate) fn base_traffic_class(&self) -> u8 {
        self.configured.traffic_class
    }

    pub(crate) fn is_segmenting(&self) -> bool {
        self.segmenting.load(Ordering::Relaxed)
    }

    /// Gives up segmentation offload for the life of the socket.
    pub(crate) fn stop_segmenting(&self) {
        self.segmenting.store(false, Ordering::Relaxed);
    }
}

impl AsFd for UdpSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

fn bind_error(error: Errno, address: SocketAddr, step: &'static str) -> BindError {
    match error {
        Errno::ADDRINUSE => BindError::PortTaken { address },
        Errno::ACCESS => BindError::PortForbidden { address },
        Errno::ADDRNOTAVAIL => BindError::AddressUnavailable { address },
        Errno::AFNOSUPPORT => BindError::FamilyUnsupported { address },
        other => BindError::Refused { address, step, source: other.into() },
    }
}
