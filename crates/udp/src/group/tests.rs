//! Groups of sockets on loopback.

use super::*;
use crate::{Interest, Poller, RecvBatch, Transmit};
use std::collections::BTreeMap;
use std::time::Duration;

/// A datagram whose id has this lowest byte, with its number behind the id.
fn datagram(byte: u8, number: u32) -> Vec<u8> {
    let mut datagram = vec![0xff; STEERING_BYTE];
    datagram.push(byte);
    datagram.extend([0; 7]);
    datagram.extend(number.to_le_bytes());
    datagram
}

fn group(address: &str, count: u8) -> Vec<UdpSocket> {
    let options = SocketOptions::default();
    UdpSocket::bind_group(address.parse().unwrap(), &options, count.try_into().unwrap()).unwrap()
}

/// The datagrams that came to a socket.
fn received(socket: &UdpSocket) -> Vec<Vec<u8>> {
    let (poller, mut batch) = (Poller::new().unwrap(), RecvBatch::new(8));
    let mut all = Vec::new();
    while poller.wait(socket, Interest::Readable, Some(Duration::ZERO)).unwrap().is_readable() {
        socket.recv(&mut batch).unwrap();
        for mut message in batch.messages() {
            all.extend(message.datagrams().map(|datagram| datagram.to_vec()));
        }
    }
    all
}

#[test]
fn each_datagram_comes_to_the_socket_that_its_id_names() {
    for (address, from) in
        [("127.0.0.1:0", "127.0.0.1:0"), ("[::1]:0", "[::1]:0"), ("[::]:0", "127.0.0.1:0")]
    {
        for count in [1, 2, 3, 8] {
            let sockets = group(address, count);
            assert_eq!(sockets.len(), usize::from(count), "{address}");
            let mut to = sockets[0].local_addr();
            assert!(sockets.iter().all(|socket| socket.local_addr() == to));
            let sender = UdpSocket::bind(from.parse().unwrap(), &SocketOptions::default()).unwrap();
            to.set_ip(sender.local_addr().ip());
            let mut wanted = BTreeMap::<usize, Vec<Vec<u8>>>::new();
            for number in 0..256 {
                let byte = (number * 37) as u8;
                let bytes = datagram(byte, number);
                sender.send(&Transmit::to(to, &bytes)).unwrap();
                wanted.entry(usize::from(byte % count)).or_default().push(bytes);
            }
            sender.send(&Transmit::to(to, b"short")).unwrap();
            wanted.entry(0).or_default().push(b"short".to_vec());
            for (at, socket) in sockets.iter().enumerate() {
                assert_eq!(received(socket), wanted[&at], "{address} {at} of {count}");
            }
        }
    }
}

#[test]
fn a_port_of_a_group_is_taken() {
    let sockets = group("127.0.0.1:0", 4);
    let address = sockets[0].local_addr();
    for count in [1, 4] {
        let options = SocketOptions::default();
        let second = UdpSocket::bind_group(address, &options, count.try_into().unwrap());
        assert!(matches!(second, Err(BindError::PortTaken { .. })), "{second:?}");
    }
    drop(sockets);
    assert_eq!(group(&address.to_string(), 2).len(), 2);
}
