//! Creating a UDP socket from its options, and the errors of doing so.

use crate::address::SocketFamily;
use crate::configure::{self, Configured};
use crate::granted::{Granted, Support};
use crate::options::SocketOptions;
use rustix::io::Errno;
use rustix::net::{self, AddressFamily, SocketType};
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use thiserror::Error;

/// A non-blocking UDP socket.
///
/// All methods take `&self`, so one thread can send while another receives.
#[derive(Debug)]
pub struct UdpSocket {
    fd: OwnedFd,
    family: SocketFamily,
    local: SocketAddr,
    configured: Configured,
    /// Whether sends use segmentation offload. It is cleared when a device refuses a segmented
    /// send, which can happen at any time.
    segmenting: AtomicBool,
}

/// Whether the port is that of other sockets of this process as well.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Port {
    Own,
    Shared,
}

/// Why a socket could not be bound.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum BindError {
    /// Another socket is bound to the port.
    #[error("UDP port {} is in use: another program is bound to {address}", address.port())]
    PortTaken {
        /// The address asked for.
        address: SocketAddr,
    },
    /// The port is privileged and this process lacks `CAP_NET_BIND_SERVICE`.
    #[error("no permission for UDP port {}: it needs root or CAP_NET_BIND_SERVICE", address.port())]
    PortForbidden {
        /// The address asked for.
        address: SocketAddr,
    },
    /// No interface of this machine has the address.
    #[error("this machine has no address {}", address.ip())]
    AddressUnavailable {
        /// The address asked for.
        address: SocketAddr,
    },
    /// The kernel does not support the address family; for example, IPv6 is disabled.
    #[error("this system does not support the address family of {}", address.ip())]
    FamilyUnsupported {
        /// The address asked for.
        address: SocketAddr,
    },
    /// The interface does not exist, or this process may not bind to it.
    #[error("cannot use the network interface '{device}': {source}")]
    Device {
        /// The interface asked for.
        device: String,
        /// The kernel's error.
        source: io::Error,
    },
    /// Another system call of the setup failed.
    #[error("cannot set up a UDP socket on {address} ({step}): {source}")]
    Refused {
        /// The address asked for.
        address: SocketAddr,
        /// The step that failed, for diagnosis.
        step: &'static str,
        /// The kernel's error.
        source: io::Error,
    },
}

impl UdpSocket {
    /// Binds to `address`; port 0 lets the kernel choose one. A socket bound to `[::]` also
    /// receives IPv4 unless [`Family::OnlyV6`](crate::Family::OnlyV6) is set.
    pub fn bind(address: SocketAddr, options: &SocketOptions) -> Result<Self, BindError> {
        Self::bind_to(address, options, Port::Own)
    }

    pub(crate) fn bind_to(
        address: SocketAddr,
        options: &SocketOptions,
        port: Port,
    ) -> Result<Self, BindError> {
        let (family, domain) = match address {
            SocketAddr::V4(_) => (SocketFamily::V4, AddressFamily::INET),
            SocketAddr::V6(_) => (SocketFamily::V6, AddressFamily::INET6),
        };
        let fd = datagram_socket(domain).map_err(|error| bind_error(error, address, "socket"))?;
        let configured = configure::configure(fd.as_fd(), family, address, options)?;
        if port == Port::Shared {
            let refused =
                |source| BindError::Refused { address, step: "a port for several sockets", source };
            configure::share_port(fd.as_fd()).map_err(refused)?;
        }
        net::bind(&fd, &address).map_err(|error| bind_error(error, address, "bind"))?;
        let local = net::getsockname(&fd)
            .and_then(SocketAddr::try_from)
            .map_err(|error| bind_error(error, address, "local address"))?;
        let segmenting = AtomicBool::new(configured.gso == Support::Present);
        Ok(Self { fd, family, local, configured, segmenting })
    }

    /// The address that the socket is bound to, with the port that the kernel chose if none was
    /// asked for.
    pub fn local_addr(&self) -> SocketAddr {
        self.local
    }

    /// The buffer sizes and offloads that the kernel granted.
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

    /// The traffic class byte with the DSCP of the options and an ECN field of zero.
    pub(crate) fn base_traffic_class(&self) -> u8 {
        self.configured.traffic_class
    }

    pub(crate) fn is_segmenting(&self) -> bool {
        self.segmenting.load(Ordering::Relaxed)
    }

    /// Disables segmentation offload for the lifetime of the socket.
    pub(crate) fn stop_segmenting(&self) {
        self.segmenting.store(false, Ordering::Relaxed);
    }
}

impl AsFd for UdpSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// A socket that does not block, and that programs which are started do not get.
#[cfg(target_os = "linux")]
fn datagram_socket(domain: AddressFamily) -> Result<OwnedFd, Errno> {
    let flags = net::SocketFlags::NONBLOCK | net::SocketFlags::CLOEXEC;
    net::socket_with(domain, SocketType::DGRAM, flags, None)
}

/// A socket that does not block, and that programs which are started do not get.
#[cfg(not(target_os = "linux"))]
fn datagram_socket(domain: AddressFamily) -> Result<OwnedFd, Errno> {
    let fd = net::socket(domain, SocketType::DGRAM, None)?;
    rustix::io::fcntl_setfd(&fd, rustix::io::FdFlags::CLOEXEC)?;
    rustix::io::ioctl_fionbio(&fd, true)?;
    Ok(fd)
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
