//! The kernel's state of any TCP socket of this network namespace: sock_diag(7).
//!
//! A socket is named by its two addresses. So a gateway learns how much the program at the other end of a local
//! connection has not read, without help of that program.

use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netlink, recv, send, socket_with,
};
use std::io::{self, ErrorKind};
use std::net::{IpAddr, SocketAddr};
use std::os::fd::OwnedFd;

#[cfg(test)]
mod tests;

/// Asks the kernel for sockets.
#[derive(Debug)]
pub struct Diag(OwnedFd);

/// The queues of a socket.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Queues {
    /// Bytes that have arrived and that the program has not read.
    pub unread: u64,
    /// Bytes that the program has written and that the other end has not acknowledged, sent or not.
    pub unacknowledged: u64,
    /// The memory that what has arrived takes, and the limit of it (`SO_RCVBUF`, doubled as in socket(7)), in bytes.
    /// `None` if the kernel does not report them.
    pub receive_memory: Option<(u64, u64)>,
    /// The user who made the socket.
    pub uid: u32,
    /// The number of the socket, as in `/proc/PID/fd`. 0 if no process has it any more.
    pub inode: u32,
}

/// `SOCK_DIAG_BY_FAMILY` (linux/sock_diag.h).
const SOCK_DIAG_BY_FAMILY: u16 = 20;
/// `NLM_F_REQUEST` (netlink(7)).
const NLM_F_REQUEST: u16 = 1;
/// `NLMSG_ERROR`.
const NLMSG_ERROR: u16 = 2;
const IPPROTO_TCP: u8 = 6;
const AF_INET: u8 = 2;
const AF_INET6: u8 = 10;
/// `INET_DIAG_SKMEMINFO`, and the bit that asks for it (linux/inet_diag.h).
const SKMEMINFO: u16 = 7;
const SKMEMINFO_BIT: u8 = 1 << (SKMEMINFO - 1);
/// Bytes of `struct nlmsghdr`.
const HEADER_BYTES: usize = 16;
/// Bytes of `struct inet_diag_msg`, and the offset of its field `idiag_rqueue`.
const MESSAGE_BYTES: usize = 72;
const RQUEUE_OFFSET: usize = 56;
/// Bytes of an answer: a message and its attributes.
const ANSWER_BYTES: usize = 1024;

impl Diag {
    /// Opens a way to ask. It is of the network namespace of the calling thread.
    ///
    /// # Errors
    ///
    /// The kernel has no sock_diag, or the process may not use it.
    pub fn new() -> io::Result<Self> {
        let (kind, flags) = (SocketType::DGRAM, SocketFlags::CLOEXEC);
        Ok(Self(socket_with(AddressFamily::NETLINK, kind, flags, Some(netlink::SOCK_DIAG))?))
    }

    /// The queues of the connection that has `local` as its own address and `remote` as that of the other end. `None` if
    /// there is none.
    ///
    /// # Errors
    ///
    /// The kernel's, of sock_diag(7); or it answers something else.
    pub fn queues(&mut self, local: SocketAddr, remote: SocketAddr) -> io::Result<Option<Queues>> {
        send(&self.0, &request(local, remote), SendFlags::empty())?;
        // The kernel has answered when `send` returns.
        let mut answer = [0; ANSWER_BYTES];
        let (length, _) = recv(&self.0, &mut answer[..], RecvFlags::DONTWAIT)?;
        read(&answer[..length])
    }
}

/// `struct inet_diag_req_v2` in a message of netlink.
fn request(local: SocketAddr, remote: SocketAddr) -> Vec<u8> {
    let (local_ip, remote_ip) = (local.ip().to_canonical(), remote.ip().to_canonical());
    let family = if local_ip.is_ipv4() { AF_INET } else { AF_INET6 };
    let mut body = vec![family, IPPROTO_TCP, SKMEMINFO_BIT, 0];
    // All states.
    body.extend(u32::MAX.to_ne_bytes());
    body.extend(local.port().to_be_bytes());
    body.extend(remote.port().to_be_bytes());
    put_address(&mut body, local_ip);
    put_address(&mut body, remote_ip);
    // Any interface, and no cookie (`INET_DIAG_NOCOOKIE`).
    body.extend([0; 4]);
    body.extend([0xff; 8]);
    let mut out = Vec::new();
    // The message has some dozens of bytes.
    out.extend(((HEADER_BYTES + body.len()) as u32).to_ne_bytes());
    out.extend(SOCK_DIAG_BY_FAMILY.to_ne_bytes());
    out.extend(NLM_F_REQUEST.to_ne_bytes());
    // The number of the message, and the sender's: the kernel needs neither.
    out.extend([0; 8]);
    out.extend(body);
    out
}

/// An address in a field of 16 bytes.
fn put_address(out: &mut Vec<u8>, address: IpAddr) {
    match address {
        IpAddr::V4(address) => {
            out.extend(address.octets());
            out.extend([0; 12]);
        }
        IpAddr::V6(address) => out.extend(address.octets()),
    }
}

/// Reads an answer of the kernel.
// fuzz: none, the kernel's own words
fn read(answer: &[u8]) -> io::Result<Option<Queues>> {
    let nonsense = || io::Error::from(ErrorKind::InvalidData);
    let length = word(answer, 0).ok_or_else(nonsense)? as usize;
    let answer = answer.get(..length).ok_or_else(nonsense)?;
    if short(answer, 4) == Some(NLMSG_ERROR) {
        // The number is negative.
        let error = word(answer, HEADER_BYTES).ok_or_else(nonsense)?.wrapping_neg();
        let error = io::Error::from_raw_os_error(i32::try_from(error).unwrap_or_default());
        let is_missing = error.raw_os_error() == Some(Errno::NOENT.raw_os_error());
        return if is_missing { Ok(None) } else { Err(error) };
    }
    let message = answer.get(HEADER_BYTES..).ok_or_else(nonsense)?;
    let field = |number: usize| word(message, RQUEUE_OFFSET + 4 * number).ok_or_else(nonsense);
    Ok(Some(Queues {
        unread: field(0)?.into(),
        unacknowledged: field(1)?.into(),
        uid: field(2)?,
        inode: field(3)?,
        receive_memory: message.get(MESSAGE_BYTES..).and_then(receive_memory),
    }))
}

/// The memory of a socket's receive queue, and its limit, of the attributes of a message.
fn receive_memory(mut attributes: &[u8]) -> Option<(u64, u64)> {
    loop {
        let length = usize::from(short(attributes, 0)?);
        if short(attributes, 2)? == SKMEMINFO {
            return Some((word(attributes, 4)?.into(), word(attributes, 8)?.into()));
        }
        attributes = attributes.get(length.max(4).next_multiple_of(4)..)?;
    }
}

fn short(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..)?.first_chunk().map(|bytes| u16::from_ne_bytes(*bytes))
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().map(|bytes| u32::from_ne_bytes(*bytes))
}
