//! The status of gateways as a text.

use super::*;
use crate::board::status::{FileBuffers, SocketBuffers, Transport};

#[test]
fn a_download_is_told_with_its_three_buffers_and_its_limit() {
    let flow = FlowStatus {
        id: 1,
        program: Some("127.0.0.1:5000".to_owned()),
        target: "http://web/file".to_owned(),
        route: Route::Carried,
        seconds: 4.0,
        received_bytes: 412_000_000,
        sent_bytes: 300,
        received_bits_per_second: 812e6,
        sent_bits_per_second: 0.0,
        limited_by: Limit::Disk,
        socket: Some(SocketBuffers {
            unread_bytes: 3_000_000,
            used_bytes: None,
            limit_bytes: None,
            unacknowledged_bytes: 1_000,
        }),
        file: Some(FileBuffers {
            name: "file.part".to_owned(),
            size_bytes: 400_000_000,
            cached_bytes: 400_000_000,
            dirty_bytes: 90_000_000,
            writeback_bytes: 10_000_000,
        }),
    };
    let status = Status {
        far: "far".to_owned(),
        carrier: "udp".to_owned(),
        round_trip_seconds: 0.2,
        received_bits_per_second: 812e6,
        transport: Some(Transport {
            unread_bytes: 12_000_000,
            held_bytes: 0,
            window_bytes: 512_000_000,
        }),
        open: 30,
        flows: vec![flow],
        ..Status::default()
    };
    let wanted = "\
process 7: far gateway far (udp, round trip 200.0 ms), 30 connections open; receives 812 Mbit/s, sends 0.00 bit/s
  in the transport, of all connections: 12.0 MB of 512.0 MB
  http://web/file: received 412.0 MB at 812 Mbit/s, sent 300 B at 0.00 bit/s; limited by the disk of this host
    in the program's socket: 3.0 MB, in the gateway's: 1.0 kB
    file file.part: 400.0 MB, of which 100.0 MB are not on the disk yet
  and 10 more
";
    assert_eq!(text(7, &status), wanted);
    for (mode, connection, direct, wanted) in [
        (Mode::Off, Far::Up, 0, "\n  off: new connections go direct\n"),
        (Mode::Off, Far::Away, 3, "go direct (3 so far)\n"),
        (Mode::On, Far::Up, 3, "\n  on; connections have gone direct (3 so far)\n"),
        (
            Mode::On,
            Far::Away,
            0,
            "\n  the connection to the far gateway is lost, and is made again\n",
        ),
        (Mode::Draining, Far::Up, 0, "\n  draining: "),
    ] {
        let text = text(7, &Status { mode, connection, direct, ..status.clone() });
        assert!(text.contains(wanted), "{text}");
    }
}
