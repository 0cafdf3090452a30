//! Which port a far side opens.

use super::*;
use crate::service::{PathMemory, Readers, Service};
use crate::tuning::Tuning;
use hikyaku_units::DataSize;
use std::net::TcpListener;
use std::ops::RangeInclusive;

const SERVICE: Service = Service {
    name: "test",
    streams_max: 16,
    readers: Readers::One,
    path_memory: PathMemory::Off,
    loss: crate::Loss::Ends,
};

fn open_of(ports: &RangeInclusive<u16>) -> (Door, Option<TcpDoor>) {
    let (tuning, service) = (&Tuning::default(), &SERVICE);
    let (memory, closing) = (DataSize::from_bytes(1 << 30), Duration::from_millis(20));
    open(&DoorConfig { ports, tuning, service, memory, closing }).unwrap()
}

/// A port that is taken for TCP, and that the kernel gives to nobody else.
fn taken() -> (TcpListener, u16) {
    let taken = TcpListener::bind((Ipv6Addr::UNSPECIFIED, 0)).unwrap();
    let port = taken.local_addr().unwrap().port();
    (taken, port)
}

/// Each port of which another program has the TCP half is passed over.
#[test]
fn a_port_that_is_taken_for_tcp_is_not_chosen() {
    let (_taken, port) = taken();
    let others = port.saturating_sub(3)..=port.saturating_add(3);
    for _ in 0..12 {
        let (door, tcp) = open_of(&others);
        assert!(tcp.is_some());
        assert_ne!(door.invitation().port, port);
    }
}

#[test]
fn udp_alone_serves_where_no_port_is_free_for_tcp() {
    let (_taken, port) = taken();
    let (door, tcp) = open_of(&(port..=port));
    assert!(tcp.is_none());
    assert_eq!(door.invitation().port, port);
}
