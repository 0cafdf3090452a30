//! A TUN device.

use crate::header::Header;
use crate::netns::in_namespace;
use crate::stats::DeviceStats;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use std::fs::File;
use std::io::{self, IoSlice};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::Path;

/// An open TUN device. It vanishes from its namespace when this is dropped.
#[derive(Debug)]
pub struct Tun {
    fd: OwnedFd,
    name: String,
    offload: Offload,
    /// The namespace's `/proc/net/dev`.
    table: File,
}

/// What the kernel leaves to the other end of the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Offload {
    /// Nothing: each packet is one wire segment with its checksum made.
    None,
    /// Checksums, and cutting TCP super-packets.
    Tcp,
    /// Cutting UDP super-packets as well (Linux 6.2 and later).
    TcpAndUdp,
}

const CHECKSUM: u32 = 0x01;
const TSO4: u32 = 0x02;
const TSO6: u32 = 0x04;
const TSO_ECN: u32 = 0x08;
const USO4: u32 = 0x20;
const USO6: u32 = 0x40;

impl Tun {
    /// The most that one read returns: the header and the largest packet.
    pub const LARGEST: usize = Header::LEN + 65_536;

    /// Makes the device `name` in the network namespace at `namespace`, with as much offload as the
    /// kernel gives. Reads do not block.
    pub fn create(namespace: &Path, name: &str) -> io::Result<Self> {
        in_namespace(namespace, || {
            let flags = OFlags::RDWR | OFlags::CLOEXEC | OFlags::NONBLOCK;
            let fd = rustix::fs::open("/dev/net/tun", flags, Mode::empty())?;
            set_interface(fd.as_fd(), name)?;
            set_header_len(fd.as_fd())?;
            let offload = set_offload(fd.as_fd());
            let table = File::open("/proc/thread-self/net/dev")?;
            Ok(Self { fd, name: name.to_owned(), offload, table })
        })
    }

    /// The name of the device.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What the kernel has agreed to leave to us.
    pub fn offload(&self) -> Offload {
        self.offload
    }

    /// What the kernel has counted.
    pub fn stats(&self) -> io::Result<DeviceStats> {
        DeviceStats::read(&self.table, &self.name)
    }

    /// Takes one packet that the namespace sent, behind its [`Header`], into `buffer`, which has
    /// room for [`Self::LARGEST`]. `None` if there is none.
    #[inline]
    pub fn read(&self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        match rustix::io::read(&self.fd, buffer) {
            Ok(len) => Ok(Some(len)),
            Err(Errno::AGAIN | Errno::INTR) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Gives the namespace one packet, behind its [`Header`], in up to two parts.
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

/// Asks for the most, and for less when the kernel refuses.
fn set_offload(fd: BorrowedFd<'_>) -> Offload {
    let tcp = CHECKSUM | TSO4 | TSO6 | TSO_ECN;
    for (flags, offload) in [(tcp | USO4 | USO6, Offload::TcpAndUdp), (tcp, Offload::Tcp)] {
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
