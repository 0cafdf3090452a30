//! Receiving many messages in one call, each of which may be many datagrams.

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

/// Room for the largest message: 64 KiB, which is more than UDP allows.
pub const MESSAGE_BYTES: usize = 1 << 16;

/// Room for the messages of one receive, allocated once and used again.
///
/// The contents are the caller's to change, so packets can be decrypted where they lie. They stand
/// until the next receive into the same batch, unless the caller takes a message's buffer away and
/// leaves another ([`RecvBatch::buffers`]).
pub struct RecvBatch {
    buffers: Box<[Vec<u8>]>,
    sources: Box<[RawAddress]>,
    controls: Box<[Control]>,
    filled: Box<[Filled]>,
    received: usize,
}

/// What the kernel says about a received message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RecvMeta {
    /// Who sent it. An IPv4 peer has an IPv4 address here, whatever the socket is.
    pub source: SocketAddr,
    /// The local address that it was sent to; `None` if the kernel does not say.
    pub destination: Option<IpAddr>,
    /// The ECN field of its datagrams; `None` is "not capable".
    pub ecn: Option<Ecn>,
    /// Bytes in all.
    pub len: usize,
    /// Bytes of each datagram but the last, which may be shorter; equal to `len` if it is only one.
    pub stride: usize,
    /// How many messages the kernel has dropped since the socket was bound because the receive
    /// buffer was full, as of this message's arrival. A message of joined datagrams counts as one,
    /// and the count wraps.
    pub overflows: u32,
    /// When the first of its datagrams arrived, in nanoseconds of the system's calendar clock
    /// since 1970; `None` if the kernel does not say.
    pub arrived: Option<u64>,
}

/// A received message.
pub struct Message<'a> {
    /// What the kernel says about it.
    pub meta: RecvMeta,
    /// Its bytes.
    pub contents: &'a mut [u8],
}

impl Message<'_> {
    /// The datagrams of which the message consists.
    pub fn datagrams(&mut self) -> impl ExactSizeIterator<Item = &mut [u8]> {
        // An empty datagram has a stride of zero and no bytes, and gives no item.
        self.contents.chunks_mut(self.meta.stride.max(1))
    }
}

impl RecvBatch {
    /// Room for `messages` messages, 64 KiB each; at least one and at most 64.
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

    /// The messages of the last receive.
    pub fn messages(&mut self) -> impl Iterator<Item = Message<'_>> {
        self.buffers().map(|(meta, buffer)| Message { meta, contents: &mut buffer[..meta.len] })
    }

    /// The messages of the last receive, in their buffers. Whoever takes a buffer leaves another;
    /// one of less than [`MESSAGE_BYTES`] bytes is filled up at the next receive.
    pub fn buffers(&mut self) -> impl Iterator<Item = (RecvMeta, &mut Vec<u8>)> {
        let said = self.sources.iter().zip(&self.controls).zip(&self.filled).take(self.received);
        self.buffers.iter_mut().zip(said).filter_map(|(buffer, ((source, control), filled))| {
            Some((meta(source, control, *filled)?, buffer))
        })
    }

    fn slots(&mut self) -> (impl Iterator<Item = Slot<'_>>, &mut [Filled]) {
        let said = self.sources.iter_mut().zip(&mut self.controls);
        let slots = self.buffers.iter_mut().zip(said).map(|(buffer, (from, control))| {
            if buffer.len() < MESSAGE_BYTES {
                buffer.resize(MESSAGE_BYTES, 0);
            }
            Slot { contents: buffer, from, control }
        });
        (slots, &mut self.filled)
    }
}

impl UdpSocket {
    /// Receives what waits, without blocking, and gives the count of messages; zero if none waits.
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
                Err(error) if is_passing(&error) => {}
                Err(error) => return Err(error),
            }
        }
    }
}

/// `None` for what no caller could use: a message that did not fit, or one from no address.
fn meta(source: &RawAddress, control: &Control, filled: Filled) -> Option<RecvMeta> {
    if filled.cut == Cut::Short {
        return None;
    }
    let source = source.decode()?;
    let said = control::parse(control.received(filled.control));
    let len = filled.contents;
    let stride = said.segment_size.map_or(len, |size| size.min(len));
    let Received { destination, ecn, overflows, arrived, .. } = said;
    Some(RecvMeta { source, destination, ecn, len, stride, overflows, arrived })
}

/// A signal, or an ICMP answer to a packet sent earlier: each is reported once and means nothing,
/// since anyone on the path can send one.
fn is_passing(error: &io::Error) -> bool {
    let passing = [
        Errno::INTR,
        Errno::CONNREFUSED,
        Errno::HOSTUNREACH,
        Errno::NETUNREACH,
        Errno::MSGSIZE,
        Errno::PROTO,
    ];
    errno(error).is_some_and(|error| passing.contains(&error))
}
