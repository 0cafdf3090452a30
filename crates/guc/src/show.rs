//! What the user sees of the tuner.

use hikyaku_console::{Audience, Message, Totals, causes_of};
use hikyaku_gridftp::{FtpError, Server, Transferred};
use hikyaku_tuner::Decision;
use hikyaku_units::counted;
use serde_json::json;

/// A chunk is done.
pub(crate) fn chunk(show: &Totals, asked: &Decision, bytes: u64, done: &Transferred) {
    let goodput = 8.0 * bytes as f64 / done.elapsed.as_secs_f64().max(1e-6);
    let phase = asked.phase.name();
    match show.audience() {
        Audience::Events => {
            let event = json!({
                "event": "chunk",
                "seconds": show.elapsed().as_secs_f64(),
                "connections": done.connections,
                "bytes": bytes,
                "took": done.elapsed.as_secs_f64(),
                "bits_per_second": goodput as u64,
                "phase": phase,
                "retransmitted_packets": done.retransmitted,
            });
            show.tell(Message::Event(event.to_string()));
        }
        Audience::Lines => {
            let connections = counted(done.connections, "connection");
            show.remark(format!("{connections}: {:.1} Mbit/s ({phase})", goodput / 1e6));
        }
        Audience::Person | Audience::Quiet | Audience::Document => {}
    }
}

/// An attempt has failed, and another one follows.
pub(crate) fn retries(show: &Totals, server: &Server, error: &FtpError) {
    let Server { host, port, .. } = server;
    let why = format!("{host}:{port}: {}", causes_of(error));
    show.tell(Message::Remark(format!("{why}; another attempt follows")));
}
