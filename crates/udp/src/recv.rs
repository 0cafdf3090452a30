//! Receiving many messages in one system call, each of which may hold many datagrams.

use crate::address::RawAddress;
use crate::bind::UdpSocket;
use crate::control::{self, Control, Received};
use crate::ecn::Ecn;
use crate::send::errno;
use crate::sys::{self, Cut, Filled, Slot};
use rustix::io::Errno;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsFd;

/// The size of a buffer for one message in bytes. UDP messages have at most 65,535.
pub const MESSAGE_BYTES: usize = 1 << 16;

/// Buffers for the messages of one receive call, allocated once and reused.
///
/// The contents are mutable, so that packets can be decrypted in place. They are valid until the
/// next receive into the same batch. A caller can keep a message's buffer by exchanging it for
/// another ([`RecvBatch::buffers`]).
pub struct RecvBatch {
    buffers: Box<[Vec<u8>]>,
    sources: Box<[RawAddress]>,
    controls: Box<[Control]>,
    filled: Box<[Filled]>,
    received: usize,
}

/// Metadata of a received message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RecvMeta {
    /// The sender. An IPv4 peer has an IPv4 address here on IPv6 sockets as well.
    pub source: SocketAddr,
    /// The local address that it was sent to; `None` if the kernel does not report it.
    pub destination: Option<IpAddr>,
    /// The ECN field of its datagrams; `None` for "not ECN-capable".
    pub ecn: Option<Ecn>,
    /// Length in bytes.
    pub len: usize,
    /// Length of each datagram but the last, which may be shorter. Equal to `len` for a single
    /// datagram.
    pub stride: usize,
    /// How many messages the kernel had dropped because the receive buffer was full, from the
    /// binding of the socket to this message's arrival (`SO_RXQ_OVFL`, socket(7)). A message of
    /// coalesced datagrams counts once. The counter wraps.
    pub overflows: u32,
    /// Arrival of the first datagram in nanoseconds since 1970 (`CLOCK_REALTIME`); `None` if the
    /// kernel does not report it.
    pub arrived: Option<u64>,
}

/// A received message.
pub struct Message<'a> {
    /// Its metadata.
    pub meta: RecvMeta,
    /// Its bytes.
    pub contents: &'a mut [u8],
}

impl Message<'_> {
    /// The datagrams in the message.
    pub fn datagrams(&mut self) -> impl ExactSizeIterator<Item = &mut [u8]> {
        // An empty datagram has stride 0 and yields no item.
        self.contents.chunks_mut(self.meta.stride.max(1))
    }
}

impl RecvBatch {
    /// Buffers for `messages` messages of 64 KiB each; the count is clamped to 1..=64.
    pub fn new(messages: usize) -> Self {
        let messages = messages.clamp(1, sys::MAX_MESSAGES);
        Self {
            buffers: vec![vec![0; MESSAGE_BYTES]; messages].into(),
            sources: vec![RawAddress::empty(); messages].into(),
            controls: vec![Control::new(); messages].into(),
            filled: vec![Filled::default(); messages].into(),
            received: 0,
        }
    }

    /// The messages of the last receive call.
    pub fn messages(&mut self) -> impl Iterator<Item = Message<'_>> {
        self.buffers().map(|(meta, buffer)| Message { meta, contents: &mut buffer[..meta.len] })
    }

    /// The messages of the last receive call with their buffers. A caller that takes a buffer
    /// leaves another one; one shorter than [`MESSAGE_BYTES`] is extended at the next receive.
    pub fn buffers(&mut self) -> impl Iterator<Item = (RecvMeta, &mut Vec<u8>)> {
        let metadata =
            self.sources.iter().zip(&self.controls).zip(&self.filled).take(self.received);
        self.buffers.iter_mut().zip(metadata).filter_map(
            move |(buffer, ((source, control), filled))| {
                let source = source.decode()?;
                Some((meta(source, control, *filled)?, buffer))
            },
        )
    }

    fn slots(&mut self) -> (impl Iterator<Item = Slot<'_>>, &mut [Filled]) {
        let metadata = self.sources.iter_mut().zip(&mut self.controls);
        let slots = self.buffers.iter_mut().zip(metadata).map(|(buffer, (from, control))| {
            if buffer.len() < MESSAGE_BYTES {
                buffer.resize(MESSAGE_BYTES, 0);
            }
            Slot { contents: buffer, from, control }
        });
        (slots, &mut self.filled)
    }
}

impl UdpSocket {
    /// Receives the waiting messages without blocking and returns their count; 0 if none waits.
    pub fn recv(&self, batch: &mut RecvBatch) -> io::Result<usize> {
        batch.received = 0;
        loop {
            let (slots, filled) = batch.slots();
            match sys::receive(self.as_fd(), slots, filled) {
                Ok(received) => {
                    batch.received = received;
                    return Ok(received);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(0),
                Err(error) if is_ignorable(&error) => {}
                Err(error) => return Err(error),
            }
        }
    }
}

/// `None` for a truncated message, which no caller can use.
fn meta(source: SocketAddr, control: &Control, filled: Filled) -> Option<RecvMeta> {
    if filled.cut == Cut::Truncated {
        return None;
    }
    let metadata = control::parse(control.received(filled.control));
    let len = filled.contents;
    let stride = metadata.segment_size.map_or(len, |size| size.min(len));
    let Received { destination, ecn, overflows, arrived, .. } = metadata;
    Some(RecvMeta { source, destination, ecn, len, stride, overflows, arrived })
}

/// Whether an error can be ignored: an interrupting signal, or an ICMP error for a packet sent
/// earlier. The kernel reports such an ICMP error once, and anyone can forge it, so it must not end
/// a connection.
fn is_ignorable(error: &io::Error) -> bool {
    let ignorable = [
        Errno::INTR,
        Errno::CONNREFUSED,
        Errno::HOSTUNREACH,
        Errno::NETUNREACH,
        Errno::MSGSIZE,
        Errno::PROTO,
    ];
    errno(error).is_some_and(|error| ignorable.contains(&error))
}
