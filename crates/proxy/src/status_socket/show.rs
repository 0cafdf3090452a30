//! The status of a gateway as a text.

use crate::board::limit::Limit;
use crate::board::status::{FlowStatus, Status};
use crate::switch::{Far, Mode, Route};
use hikyaku_units::{DataSize, Rate};
use std::fmt::Write;
use std::time::Duration;

/// Flows of a text. A browser may have hundreds of connections that do nothing.
const FLOWS_MAX: usize = 20;

pub(super) fn text(process: u32, status: &Status) -> String {
    let mut out = String::new();
    let round_trip = Duration::from_secs_f64(status.round_trip_seconds.clamp(0.0, 1e6));
    // Writing to a text does not fail.
    let _ = writeln!(
        out,
        "process {process}: far gateway {} ({}, round trip {:.1} ms), {} connections open; receives {}, sends {}",
        status.far,
        status.carrier,
        round_trip.as_secs_f64() * 1e3,
        status.open,
        rate(status.received_bits_per_second),
        rate(status.sent_bits_per_second),
    );
    if let Some(line) = position(status) {
        let _ = writeln!(out, "  {line}");
    }
    if let Some(transport) = &status.transport {
        let (unread, window) = (size(transport.unread_bytes), size(transport.window_bytes));
        let _ = writeln!(out, "  in the transport: {unread} of {window}");
    }
    for flow in status.flows.iter().take(FLOWS_MAX) {
        of_flow(&mut out, flow);
    }
    if let Some(more) = status.open.checked_sub(FLOWS_MAX).filter(|more| *more > 0) {
        let _ = writeln!(out, "  and {more} more");
    }
    out
}

/// What becomes of new connections, unless they are carried as ever.
fn position(status: &Status) -> Option<String> {
    let direct = match status.direct {
        0 => String::new(),
        count => format!(" ({count} so far)"),
    };
    let line = match (status.mode, status.connection) {
        (Mode::Draining, _) => "draining: no new connections, and it ends with the last one".to_owned(),
        (Mode::Off, _) => format!("off: new connections go direct{direct}"),
        (Mode::On, Far::Up) if status.direct == 0 => return None,
        (Mode::On, Far::Up) => format!("on; connections have gone direct{direct}"),
        (Mode::On, Far::Silent) => format!("nothing is heard of the far gateway{direct}"),
        (Mode::On, Far::Away) => {
            format!("the connection to the far gateway is lost, and is made again{direct}")
        }
    };
    Some(line)
}

fn of_flow(out: &mut String, flow: &FlowStatus) {
    let _ = writeln!(
        out,
        "  {}{}: received {} at {}, sent {} at {}; {}",
        match flow.route {
            Route::Carried => "",
            Route::Direct => "direct: ",
        },
        flow.target,
        size(flow.received_bytes),
        rate(flow.received_bits_per_second),
        size(flow.sent_bytes),
        rate(flow.sent_bits_per_second),
        limit(flow.limited_by),
    );
    if let Some(socket) =
        flow.socket.filter(|socket| socket.unread_bytes + socket.unacknowledged_bytes > 0)
    {
        let _ = writeln!(
            out,
            "    in the program's socket: {}, in the gateway's: {}",
            size(socket.unread_bytes),
            size(socket.unacknowledged_bytes),
        );
    }
    if let Some(file) = &flow.file {
        let _ = writeln!(
            out,
            "    file {}: {}, of which {} are not on the disk yet",
            file.name,
            size(file.size_bytes),
            size(file.dirty_bytes + file.writeback_bytes),
        );
    }
}

/// What limits a flow, in words.
const fn limit(limit: Limit) -> &'static str {
    match limit {
        Limit::Idle => "idle",
        Limit::Path => "limited by the path",
        Limit::Program => "limited by the program here",
        Limit::Processor => "limited by the processor of the program here",
        Limit::Disk => "limited by the disk here",
        Limit::FarTcp => "limited by the server or the way to it",
        Limit::PathOrFarTcp => "limited by the path or the server",
    }
}

fn rate(bits_per_second: f64) -> Rate {
    Rate::from_bits_per_sec(bits_per_second as u64)
}

const fn size(bytes: u64) -> DataSize {
    DataSize::from_bytes(bytes)
}

#[cfg(test)]
mod tests {
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
  in the transport: 12.0 MB of 512.0 MB
  http://web/file: received 412.0 MB at 812 Mbit/s, sent 300 B at 0.00 bit/s; limited by the disk here
    in the program's socket: 3.0 MB, in the gateway's: 1.0 kB
    file file.part: 400.0 MB, of which 100.0 MB are not on the disk yet
  and 10 more
";
        assert_eq!(text(7, &status), wanted);
        for (mode, connection, direct, wanted) in [
            (Mode::Off, Far::Up, 0, "\n  off: new connections go direct\n"),
            (Mode::Off, Far::Away, 3, "go direct (3 so far)\n"),
            (Mode::On, Far::Up, 3, "\n  on; connections have gone direct (3 so far)\n"),
            (Mode::On, Far::Away, 0, "\n  the connection to the far gateway is lost, and is made again\n"),
            (Mode::Draining, Far::Up, 0, "\n  draining: "),
        ] {
            let text = text(7, &Status { mode, connection, direct, ..status.clone() });
            assert!(text.contains(wanted), "{text}");
        }
    }
}
