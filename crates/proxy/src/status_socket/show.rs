//! The status of a gateway as a text.

use crate::board::limit::Limit;
use crate::board::status::{FlowStatus, Status};
use crate::switch::{Far, Mode, Route};
use hikyaku_units::{DataSize, Rate, counted};
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
        "process {process}: far gateway {} ({}, round trip {:.1} ms), {} open; receives {}, sends {}",
        status.far,
        status.carrier,
        round_trip.as_secs_f64() * 1e3,
        counted(status.open, "connection"),
        rate(status.received_bits_per_second),
        rate(status.sent_bits_per_second),
    );
    if let Some(line) = position(status) {
        let _ = writeln!(out, "  {line}");
    }
    if let Some(transport) = &status.transport {
        let (unread, window) = (size(transport.unread_bytes), size(transport.window_bytes));
        let _ = writeln!(out, "  in the transport, of all connections: {unread} of {window}");
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
        (Mode::Draining, _) => {
            "draining: no new connections, and it ends with the last one".to_owned()
        }
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
            // A web site may have chosen the name.
            file.name.escape_debug(),
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
        Limit::Program => "limited by the program of this host",
        Limit::Processor => "limited by the processor of the program of this host",
        Limit::Disk => "limited by the disk of this host",
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
mod tests;
