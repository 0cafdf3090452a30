//! A Linux TUN device.

use crate::header::Header;
use crate::netns::in_namespace;
use crate::stats::{DeviceStats, DeviceTable};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use std::io::{self, IoSlice};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::Path;

/// An open TUN device. The kernel removes it from its namespace when this value is dropped.
#[derive(Debug)]
pub struct Tun {
    fd: OwnedFd,
    name: String,
    offload: Offload,
    /// `/proc/net/dev` of the namespace.
    table: DeviceTable,
}

/// The offloads of a device: what the kernel leaves to this process for packets that it reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Offload {
    /// None: each packet is one wire segment with a complete checksum.
    None,
    /// Checksums and TCP segmentation: a read can return a TCP super-packet of up to 64 KB.
    Tcp,
    /// UDP segmentation as well (`TUN_F_USO4`, Linux 6.2).
    TcpAndUdp,
}

const TUN_F_CSUM: u32 = 0x01;
const TUN_F_TSO4: u32 = 0x02;
const TUN_F_TSO6: u32 = 0x04;
const TUN_F_TSO_ECN: u32 = 0x08;
const TUN_F_USO4: u32 = 0x20;
const TUN_F_USO6: u32 = 0x40;

impl Tun {
    /// The size of the largest read in bytes: the header and the largest packet.
    pub const LARGEST: usize = Header::LEN + 65_536;

    /// Creates the device `name` in the network namespace `namespace` (a path such as
    /// `/run/netns/NAME`), with as many offloads as the kernel supports. Reads do not block. Needs
    /// `CAP_NET_ADMIN` in that namespace.
    pub fn create(namespace: &Path, name: &str) -> io::Result<Self> {
        in_namespace(namespace, || {
            let flags = OFlags::RDWR | OFlags::CLOEXEC | OFlags::NONBLOCK;
            let fd = rustix::fs::open("/dev/net/tun", flags, Mode::empty())?;
            set_interface(fd.as_fd(), name)?;
            set_header_len(fd.as_fd())?;
            let offload = set_offload(fd.as_fd());
            let table = DeviceTable::here()?;
            Ok(Self { fd, name: name.to_owned(), offload, table })
        })
    }

    /// The name of the device.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The offloads that the kernel accepted.
    pub fn offload(&self) -> Offload {
        self.offload
    }

    /// The kernel's packet counters of the device.
    pub fn stats(&self) -> io::Result<DeviceStats> {
        DeviceStats::read(&self.table, &self.name)
    }

    /// Reads one packet that the namespace sent, preceded by its [`Header`], into `buffer` of at
    /// least [`Self::LARGEST`] bytes. Returns its length, or `None` if no packet waits.
    #[inline]
    pub fn read(&self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        match rustix::io::read(&self.fd, buffer) {
            Ok(len) => Ok(Some(len)),
            Err(Errno::AGAIN | Errno::INTR) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Delivers one packet to the namespace: the [`Header`] followed by the packet, in one or two
    /// parts.
    #[inline]
    pub fn write(&self, head: &[u8], body: &[u8]) -> io::Result<()> {
        loop {
            let written = if body.is_empty() {
                rustix::io::write(&self.fd, head)
            } else {
                rustix::io::writev(&self.fd, &[IoSlice::new(head), IoSlice::new(body)])
            };
            match written {
                Err(Errno::INTR) => {}
                result => return Ok(result.map(drop)?),
            }
        }
    }
}

impl AsFd for Tun {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

fn set_interface(fd: BorrowedFd<'_>, name: &str) -> io::Result<()> {
    // SAFETY: `ifreq` is plain data, for which all zeroes are a value.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    if name.len() >= request.ifr_name.len() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "device name too long"));
    }
    for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
        *to = from.cast_signed() as libc::c_char;
    }
    let flags = libc::IFF_TUN | libc::IFF_NO_PI | libc::IFF_VNET_HDR;
    request.ifr_ifru.ifru_flags = flags as libc::c_short;
    // SAFETY: the descriptor is open for the call, TUNSETIFF reads and writes one `ifreq`, and
    // `request` is one.
    check(unsafe { libc::ioctl(fd.as_raw_fd(), libc::TUNSETIFF, &raw mut request) })
}

fn set_header_len(fd: BorrowedFd<'_>) -> io::Result<()> {
    let len = Header::LEN as libc::c_int;
    // SAFETY: the descriptor is open for the call, and TUNSETVNETHDRSZ reads one int.
    check(unsafe { libc::ioctl(fd.as_raw_fd(), libc::TUNSETVNETHDRSZ, &raw const len) })
}

/// Requests the most offloads, and fewer if the kernel refuses.
fn set_offload(fd: BorrowedFd<'_>) -> Offload {
    let tcp = TUN_F_CSUM | TUN_F_TSO4 | TUN_F_TSO6 | TUN_F_TSO_ECN;
    for (flags, offload) in
        [(tcp | TUN_F_USO4 | TUN_F_USO6, Offload::TcpAndUdp), (tcp, Offload::Tcp)]
    {
        // SAFETY: the descriptor is open for the call, and TUNSETOFFLOAD takes its argument by
        // value.
        let result =
            unsafe { libc::ioctl(fd.as_raw_fd(), libc::TUNSETOFFLOAD, libc::c_ulong::from(flags)) };
        if result == 0 {
            return offload;
        }
    }
    Offload::None
}

fn check(result: libc::c_int) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
