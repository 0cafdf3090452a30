//! Whatever the link does, TCP has to deliver every byte. This shows that super-packets are split
//! correctly.

use crate::common::{lab, pattern};
use hikyaku_lab::{Access, Lab, Side, ipv4, ipv6};
use std::io::{Read, Write};
use std::net::{IpAddr, TcpListener, TcpStream};
use std::thread;

const IMPAIRMENTS: [&str; 7] = [
    "rate 500mbit",
    "rtt 4ms",
    "loss 0.5%",
    "corrupt 0.5%",
    "dup 1%",
    "reorder 1%:2ms",
    "jitter 1ms",
];

fn transfer(lab: &Lab, server: u32, address: IpAddr, bytes: u64) {
    let listener = lab.within(Side::Server(server), || TcpListener::bind((address, 9001))).unwrap();
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut stream =
                lab.within(Side::Client, || TcpStream::connect((address, 9001))).unwrap();
            let contents: Vec<u8> = (0..bytes).map(pattern).collect();
            stream.write_all(&contents).unwrap();
        });
        let (mut stream, _) = listener.accept().unwrap();
        let mut received = Vec::new();
        stream.read_to_end(&mut received).unwrap();
        assert_eq!(received.len() as u64, bytes);
        assert!(received.iter().zip(0..).all(|(byte, offset)| *byte == pattern(offset)));
    });
}

#[test]
fn ipv4_delivers_every_byte_over_an_impaired_link() {
    let Some(lab) = lab(&IMPAIRMENTS) else { return };
    transfer(&lab, 1, ipv4(1).into(), 20_000_000);
    let up = lab.report().unwrap().up;
    assert!(up.lost > 20 && up.corrupted > 20 && up.duplicated > 20 && up.reordered > 20, "{up}");
}

#[test]
fn ipv6_delivers_every_byte_over_an_impaired_link() {
    let Some(lab) = lab(&IMPAIRMENTS) else { return };
    transfer(&lab, 1, ipv6(1).into(), 20_000_000);
}

#[test]
fn a_link_without_impairments_loses_nothing() {
    let Some(lab) = lab(&["rtt 1ms"]) else { return };
    transfer(&lab, 1, ipv4(1).into(), 100_000_000);
    let report = lab.report().unwrap();
    assert_eq!(report.up.delivered, report.up.segments);
    assert_eq!((report.relay.device_drops, report.relay.refused), (0, 0));
    // 100 MB in segments of 1448 bytes, plus a few others.
    assert!((69_060..69_500).contains(&report.up.segments), "{}", report.up.segments);
}

#[test]
fn each_server_has_the_rate_of_its_access_link() {
    let slow = Access { rate: Some("50mbit".parse().unwrap()), ..Access::default() };
    let spec = hikyaku_lab::LabSpec {
        servers: vec![Access::default(), slow, Access::default()],
        ..hikyaku_lab::LabSpec::default()
    };
    let Some(lab) = crate::common::lab_with(&["rtt 2ms"], spec) else { return };
    for server in [1, 3] {
        transfer(&lab, server, ipv4(server).into(), 1_000_000);
    }
    let start = std::time::Instant::now();
    transfer(&lab, 2, ipv4(2).into(), 5_000_000);
    // 5 MB of payload are 5.3 MB on the wire, which take 848 ms at 50 Mbit/s.
    let took = start.elapsed().as_secs_f64();
    assert!((0.8..1.5).contains(&took), "{took}");
    assert!(lab.report().unwrap().servers[0].up_delivered_bytes > 5_000_000);
}
