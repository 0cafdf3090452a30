//! Forged ICMP messages about a connection's own addresses and ports: unreachable hosts and ports, prohibited traffic,
//! packets that are too big.

use super::*;
use hikyaku_tun::in_namespace;
use rustix::net::{AddressFamily, Protocol, SendFlags, SocketType, ipproto};
use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket};
use std::path::PathBuf;
use std::process::Command;
use std::sync::mpsc::{self, RecvTimeoutError};

/// Of each family.
const FORGED: usize = 500_000;
/// More transfers than there is time for while these are sent.
const MOST_TRANSFERS: usize = 2000;
const BYTES: u64 = 20_000_000;
/// For one transfer. A kernel that believes the messages lets small packets pass only, so that the connection goes on.
const PATIENCE: Duration = Duration::from_secs(60);

/// The ICMP messages of an address family.
struct Family {
    here: IpAddr,
    protocol: Protocol,
    /// "Port unreachable": the message that a socket with error reports accepts.
    refused: Message,
    messages: &'static [Message],
}

/// Type, code, and the reported MTU (RFC 792, RFC 1191, RFC 4443).
type Message = (u8, u8, u16);

const V4: Family = Family {
    here: IpAddr::V4(Ipv4Addr::LOCALHOST),
    protocol: ipproto::ICMP,
    refused: (3, 3, 0),
    messages: &[(3, 1, 0), (3, 3, 0), (3, 13, 0), (3, 4, 68), (3, 4, 600), (3, 4, 1300)],
};

const V6: Family = Family {
    here: IpAddr::V6(Ipv6Addr::LOCALHOST),
    protocol: ipproto::ICMPV6,
    refused: (1, 4, 0),
    messages: &[(1, 0, 0), (1, 1, 0), (1, 4, 0), (4, 1, 0), (2, 0, 68), (2, 0, 1280), (2, 0, 1300)],
};

/// The beginning of a datagram that `from` is to have sent `to`.
fn quoted(from: SocketAddr, to: SocketAddr) -> Vec<u8> {
    let mut packet = match from {
        SocketAddr::V4(_) => vec![0x45, 0, 5, 0, 0, 0, 0x40, 0, 64, 17, 0, 0],
        SocketAddr::V6(_) => vec![0x60, 0, 0, 0, 4, 0xec, 17, 64],
    };
    for address in [from, to] {
        match address.ip() {
            IpAddr::V4(address) => packet.extend_from_slice(&address.octets()),
            IpAddr::V6(address) => packet.extend_from_slice(&address.octets()),
        }
    }
    for port in [from.port(), to.port()] {
        packet.extend_from_slice(&port.to_be_bytes());
    }
    packet.extend_from_slice(&[4, 0xec, 0x12, 0x34]);
    packet
}

/// A message about it.
fn icmp((kind, code, mtu): Message, from: SocketAddr, to: SocketAddr) -> Vec<u8> {
    let mut packet = vec![kind, code, 0, 0, 0, 0];
    packet.extend_from_slice(&mtu.to_be_bytes());
    packet.extend_from_slice(&quoted(from, to));
    // The kernel sums up by itself what is sent over IPv6.
    let words = packet.chunks(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]])));
    let sum: u32 = words.sum();
    let sum = !((sum & 0xffff) + (sum >> 16)) as u16;
    packet[2..4].copy_from_slice(&sum.to_be_bytes());
    packet
}

/// A network of the test's own, because the kernel caches reports about an address for minutes.
struct Network(String);

impl Network {
    /// Or `None` where there is no root to make one.
    fn new(name: &str) -> Option<Self> {
        let name = format!("hikyaku-{name}-{}", std::process::id());
        let ip = |line: &[&str]| Command::new("ip").args(line).status().unwrap().success();
        if !ip(&["netns", "add", &name]) {
            println!("\n*** SKIPPED, because forging messages of the network needs root ***\n");
            return None;
        }
        let network = Self(name);
        assert!(ip(&["-n", &network.0, "link", "set", "lo", "up"]));
        Some(network)
    }

    fn path(&self) -> PathBuf {
        PathBuf::from(format!("/run/netns/{}", self.0))
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        let _ = Command::new("ip").args(["netns", "del", &self.0]).status();
    }
}

/// Runs this in such a network.
fn in_a_network(name: &str, test: impl FnOnce() + Send) {
    if let Some(network) = Network::new(name) {
        let done = in_namespace(&network.path(), || {
            test();
            Ok(())
        });
        done.unwrap();
    }
}

/// Gives what sends a message about a datagram from one address to another.
fn forger(family: &Family) -> impl Fn(Message, SocketAddr, SocketAddr) + Send + use<> {
    let domain = match family.here {
        IpAddr::V4(_) => AddressFamily::INET,
        IpAddr::V6(_) => AddressFamily::INET6,
    };
    let socket = rustix::net::socket(domain, SocketType::RAW, Some(family.protocol)).unwrap();
    let here = SocketAddr::new(family.here, 0);
    move |message, from, to| {
        let packet = icmp(message, from, to);
        rustix::net::sendto(&socket, &packet, SendFlags::empty(), &here).unwrap();
    }
}

fn they_end_nothing(family: &Family) {
    let forge = forger(family);
    let address = SocketAddr::new(family.here, 0);
    // The kernel believes them: a socket that asks for such messages gets them.
    let [one, other] = [(); 2].map(|()| UdpSocket::bind(address).unwrap());
    one.connect(other.local_addr().unwrap()).unwrap();
    one.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    forge(family.refused, one.local_addr().unwrap(), other.local_addr().unwrap());
    let error = one.recv(&mut [0; 10]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionRefused, "{error}");

    let lab = Lab::with(&address.to_string(), |_| {});
    let (client, server) = lab.connect();
    let transfer = || {
        let (transferring, ended) = mpsc::channel::<()>();
        let late = client.clone();
        thread::spawn(move || {
            if ended.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout) {
                late.close(AppCode::FIRST, "the transfer does not end");
            }
        });
        let mut stream = block_on(client.open_stream()).unwrap();
        let sender = thread::spawn(move || block_on(send_pattern(stream.halves().0, BYTES)));
        let mut other = block_on(server.accept_stream()).unwrap();
        assert_eq!(block_on(receive_pattern(other.halves().1)).unwrap(), BYTES);
        sender.join().unwrap();
        drop(transferring);
    };
    // The transfer without forged messages.
    transfer();
    transfer();
    let datagrams = || [&client, &server].map(|end| block_on(end.stats()).unwrap().datagram);
    let calm = datagrams();
    assert!(calm[0] > 1300, "{calm:?}");
    let ends = [lab.endpoint.local_addr(), lab.listener.local_addr()];
    let messages = family.messages;
    let forging = thread::spawn(move || {
        for (index, message) in (0..FORGED / 2).zip(messages.iter().cycle()) {
            forge(*message, ends[0], ends[1]);
            forge(*message, ends[1], ends[0]);
            // The receiver of the forged messages needs time, too.
            if index % 50 == 0 {
                thread::yield_now();
            }
        }
    });
    let mut transfers = 0;
    while transfers == 0 || !forging.is_finished() && transfers < MOST_TRANSFERS {
        transfer();
        transfers += 1;
    }
    forging.join().unwrap();
    println!("{transfers} transfers");
    for end in [&client, &server] {
        assert_eq!(end.close_reason(), None);
    }
    assert_eq!(datagrams(), calm);
    // And who comes later gets in.
    lab.connect();
}

#[test]
fn forged_messages_of_the_network_end_nothing() {
    in_a_network("icmp", || they_end_nothing(&V4));
}

#[test]
fn forged_messages_of_ipv6_end_nothing() {
    in_a_network("icmp6", || they_end_nothing(&V6));
}
