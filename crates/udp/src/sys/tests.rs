//! Both ways to receive and to send give the same.

use super::{Filled, Slot, many, singly};
use crate::address::{RawAddress, SocketFamily};
use crate::control::Control;
use std::net::UdpSocket;
use std::os::fd::AsFd;

#[test]
fn one_message_in_a_call_says_the_same_as_many() {
    let (from, to) =
        (UdpSocket::bind("127.0.0.1:0").unwrap(), UdpSocket::bind("127.0.0.1:0").unwrap());
    let address = to.local_addr().unwrap();
    let (raw, length) = RawAddress::encode(address, SocketFamily::V4).unwrap();
    let contents: Vec<u8> = (0..250).collect();
    for is_single in [false, true] {
        let raw = (&raw, length);
        let (fd, control) = (from.as_fd(), Control::new());
        let sent = match is_single {
            false => many::send_each(fd, raw, &control, &contents, 100),
            true => singly::send_each(fd, raw, &control, &contents, 100),
        };
        assert_eq!(sent.unwrap(), 3);
    }
    for is_single in [true, false] {
        // One place is too short for its message.
        let mut rooms = [vec![0; 200], vec![0; 60], vec![0; 200]];
        let mut sources = [RawAddress::empty(); 3];
        let mut controls = [Control::new(); 3];
        let mut filled = [Filled::default(); 3];
        let places = rooms.iter_mut().zip(&mut sources).zip(&mut controls);
        let slots = places.map(|((contents, from), control)| Slot { contents, from, control });
        let received = match is_single {
            true => singly::receive(to.as_fd(), slots, &mut filled),
            false => many::receive(to.as_fd(), slots, &mut filled),
        };
        assert_eq!(received.unwrap(), 3);
        assert_eq!(
            filled.map(|filled| (filled.contents, filled.cut as u8)),
            [(100, 0), (60, 1), (50, 0)]
        );
        assert_eq!(rooms[0][..100], contents[..100]);
        assert_eq!(rooms[2][..50], contents[200..]);
        assert_eq!(sources[2].decode(), Some(from.local_addr().unwrap()));
    }
    let mut filled = [Filled::default(); 3];
    let none = singly::receive(to.as_fd(), std::iter::empty(), &mut filled);
    assert_eq!(none.unwrap(), 0);
    let (mut room, mut source, mut control) = ([0; 9], RawAddress::empty(), Control::new());
    let slot = Slot { contents: &mut room, from: &mut source, control: &mut control };
    let empty = singly::receive(to.as_fd(), std::iter::once(slot), &mut filled);
    assert_eq!(empty.unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
}
