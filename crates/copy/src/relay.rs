//! Datagrams through the channel of ssh, where UDP is blocked.
//!
//! Each end talks to a socket on its own loopback, and what arrives there goes through the channel:
//! two bytes of length, least first, and the datagram. So there is one transport and one encryption,
//! whatever carries it; the rate control sees a path like any other.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::{Arc, OnceLock};
use std::thread;

/// No datagram is longer.
const LONGEST: usize = 65_535;
const PREFIX: usize = 2;

/// A socket whose datagrams go through a channel and come out of it.
pub(crate) struct Relay {
    socket: Arc<UdpSocket>,
    /// Who talks to us: known from the start, or from the first datagram.
    peer: Arc<OnceLock<SocketAddr>>,
}

impl Relay {
    /// A relay to whoever sends the first datagram to it.
    pub(crate) fn for_first() -> io::Result<Self> {
        let socket = Arc::new(UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?);
        Ok(Self { socket, peer: Arc::default() })
    }

    /// A relay to the socket with this port on our loopback.
    pub(crate) fn to(port: u16) -> io::Result<Self> {
        let relay = Self::for_first()?;
        relay.peer.get_or_init(|| (Ipv4Addr::LOCALHOST, port).into());
        Ok(relay)
    }

    /// Where it listens.
    pub(crate) fn address(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// Carries what the peer sends into `channel`, on a thread of its own, until that is closed.
    pub(crate) fn carry_out(&self, channel: impl Write + Send + 'static) -> io::Result<()> {
        let (socket, peer) = (self.socket.clone(), self.peer.clone());
        let work = move || drop(out(&socket, &peer, channel));
        thread::Builder::new().name("copy-relay".to_owned()).spawn(work).map(drop)
    }

    /// Carries what comes out of `channel` to the peer, until it ends.
    pub(crate) fn carry_in(&self, mut channel: impl Read) {
        let mut datagram = vec![0; LONGEST];
        while let Some(length) = next(&mut channel, &mut datagram) {
            if let Some(peer) = self.peer.get() {
                // What does not get through is lost, as on any path.
                let _ = self.socket.send_to(&datagram[..length], peer);
            }
        }
    }
}

fn out(socket: &UdpSocket, peer: &OnceLock<SocketAddr>, mut channel: impl Write) -> io::Result<()> {
    let mut frame = vec![0; PREFIX + LONGEST];
    loop {
        let (length, from) = socket.recv_from(&mut frame[PREFIX..])?;
        // Another program on this machine is no part of it.
        if *peer.get_or_init(|| from) != from {
            continue;
        }
        frame[..PREFIX].copy_from_slice(&(length as u16).to_le_bytes());
        channel.write_all(&frame[..PREFIX + length])?;
        channel.flush()?;
    }
}

/// The next datagram's length; `None` at the end of the channel.
fn next(channel: &mut impl Read, datagram: &mut [u8]) -> Option<usize> {
    let mut prefix = [0; PREFIX];
    channel.read_exact(&mut prefix).ok()?;
    let length = usize::from(u16::from_le_bytes(prefix));
    channel.read_exact(&mut datagram[..length]).ok()?;
    Some(length)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixStream;
    use std::time::Duration;

    #[test]
    fn datagrams_go_there_and_back() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let server = UdpSocket::bind("127.0.0.1:0").unwrap();
        let near = Relay::for_first().unwrap();
        let far = Relay::to(server.local_addr().unwrap().port()).unwrap();
        near.carry_out(ours.try_clone().unwrap()).unwrap();
        far.carry_out(theirs.try_clone().unwrap()).unwrap();
        let at = near.address().unwrap();
        thread::spawn(move || near.carry_in(ours));
        thread::spawn(move || far.carry_in(theirs));
        let client = UdpSocket::bind("127.0.0.1:0").unwrap();
        for socket in [&client, &server] {
            socket.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        }
        let mut buffer = [0; 65_535];
        for length in [0, 1, 1452, 60_000] {
            client.send_to(&vec![7; length], at).unwrap();
            let (found, from) = server.recv_from(&mut buffer).unwrap();
            assert_eq!(buffer[..found], vec![7; length]);
            server.send_to(&vec![8; length], from).unwrap();
            let (found, _) = client.recv_from(&mut buffer).unwrap();
            assert_eq!(buffer[..found], vec![8; length]);
        }
    }
}
