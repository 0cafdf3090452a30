//! Tests of the NAT at the client's end: flows get new ports, packets to old ones are dropped, and
//! contents are unchanged.

use crate::common::{DATAGRAM_BYTES, blast, lab_with};
use hikyaku_lab::{LabSpec, Side};
use std::net::UdpSocket;
use std::thread::sleep;
use std::time::Duration;

fn spec() -> LabSpec {
    LabSpec { rebind_every: Some(Duration::from_millis(400)), ..LabSpec::default() }
}

#[test]
fn only_the_latest_port_of_a_flow_reaches_the_client() {
    let Some(lab) = lab_with(&["rtt 2ms"], spec()) else { return };
    let bind = |side, port: u32| {
        let address = (hikyaku_lab::ipv4(port), 9000);
        lab.within(side, || UdpSocket::bind(address)).unwrap()
    };
    let (server, client) = (bind(Side::Server(1), 1), bind(Side::Client, 0));
    server.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    client.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
    let mut seen = Vec::new();
    let mut buffer = [0; 2000];
    for number in 0..20_u8 {
        client.send_to(&[number; DATAGRAM_BYTES], (hikyaku_lab::ipv4(1), 9000)).unwrap();
        let (len, from) = server.recv_from(&mut buffer).unwrap();
        assert_eq!(buffer[..len], [number; DATAGRAM_BYTES]);
        assert_eq!(from.ip(), hikyaku_lab::ipv4(0));
        if seen.last() != Some(&from) {
            assert!(!seen.contains(&from), "{from} again");
            seen.push(from);
        }
        sleep(Duration::from_millis(100));
        // To all ports used so far: at most one of them leads back to the client.
        for to in &seen {
            server.send_to(&[number; 10], to).unwrap();
        }
        let heard = (0..2).filter(|_| client.recv_from(&mut buffer).is_ok()).count();
        assert!(heard <= 1, "{heard} of {}", seen.len());
    }
    assert!(seen.len() >= 4, "{seen:?}");
}

#[test]
fn super_packets_pass_the_nat_whole() {
    let Some(lab) = lab_with(&["rtt 2ms"], spec()) else { return };
    let pause = Duration::from_millis(1);
    let (seen, damaged) = blast(&lab, 40_000, pause, Duration::from_millis(500));
    assert_eq!((seen.len(), damaged), (40_000, 0));
}
