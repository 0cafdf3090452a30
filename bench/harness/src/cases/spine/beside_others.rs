//! Bench `transports`: ours beside TCP, UDT4 and QUIC on the same links.

use crate::bench::{Bench, Order};
use crate::cases::spine::filling;
use crate::record::row::{Bar, Cell, CellResult, Row};
use crate::rig::contender::Contender;
use crate::rig::context::Ctx;
use crate::rig::link::host;
use crate::rig::trial::{self, Surroundings};
use anyhow::{Context, Result};

#[cfg(test)]
mod tests;

pub(crate) const BENCH: Bench = Bench {
    id: "transports",
    title: "Beside other transports on a 1 Gbit/s link",
    method: "The whole run at the receiver, 30 s (60 s at 500 ms). TCP is iperf3's, with Debian's \
             buffers or with up to 1 GB, on 1 or 8 connections; UDT4 is Debian's libudt, with \
             buffers of 256 MB; s2n-quic has windows of 256 MB and one stream. Peers run once; one \
             that does not end by itself is `stopped`, and what the link delivered stands for it. \
             `queue` and `overflow` are of the second half, `all overflow` of the whole run.",
    cells,
    run,
    order: Order::ByCell,
    compare,
};

/// RTT in ms and loss in percent.
const LINKS: [(f64, f64); 6] =
    [(20.0, 0.0), (200.0, 0.0), (500.0, 0.0), (200.0, 0.1), (200.0, 1.0), (200.0, 5.0)];

const OURS: &str = "hikyaku";

/// When a peer is stopped.
const CAP: f64 = 60.0;

/// Everybody else, by name and how to run them.
const PEERS: [(&str, Peer); 11] = [
    ("tcp-cubic-debian-1", Peer::tcp("cubic", false, 1)),
    ("tcp-cubic-debian-8", Peer::tcp("cubic", false, 8)),
    ("tcp-cubic-tuned-1", Peer::tcp("cubic", true, 1)),
    ("tcp-cubic-tuned-8", Peer::tcp("cubic", true, 8)),
    ("tcp-bbr-debian-1", Peer::tcp("bbr", false, 1)),
    ("tcp-bbr-debian-8", Peer::tcp("bbr", false, 8)),
    ("tcp-bbr-tuned-1", Peer::tcp("bbr", true, 1)),
    ("tcp-bbr-tuned-8", Peer::tcp("bbr", true, 8)),
    ("udt4", Peer::Program("peer-udt", "--window 268435456")),
    ("s2n-cubic", Peer::Program("peer-s2n", "--window 268435456 --control cubic")),
    ("s2n-bbr", Peer::Program("peer-s2n", "--window 268435456 --control bbr")),
];

#[derive(Clone, Copy)]
enum Peer {
    Tcp { control: &'static str, is_tuned: bool, streams: u32 },
    Program(&'static str, &'static str),
}

impl Peer {
    const fn tcp(control: &'static str, is_tuned: bool, streams: u32) -> Self {
        Self::Tcp { control, is_tuned, streams }
    }
}

fn cells(_: &Ctx) -> Vec<Cell> {
    let of_link = |(rtt, loss): (f64, f64)| {
        let cell = move |who: &str| {
            Cell::new(format!("rtt{rtt}-loss{loss}.{who}"))
                .with("RTT ms", rtt)
                .with("loss %", loss)
                .with("who", who)
        };
        let peers = PEERS.into_iter().map(move |(who, _)| cell(who).once());
        std::iter::once(cell(OURS)).chain(peers)
    };
    LINKS.into_iter().flat_map(of_link).collect()
}

fn run(ctx: &Ctx, cell: &Cell) -> Result<Row> {
    let link = filling::link(cell)?;
    let seconds = filling::seconds(ctx, &link);
    let mut around = Surroundings::new(link.lab(ctx.round())?, seconds);
    let who = cell.setting("who");
    let contender = if who == OURS {
        Contender::perf(ctx, seconds)?
    } else {
        // The longest run is as long as the cap: what counts is not to go on after it.
        around.cap = CAP.max(seconds) + 5.0;
        let peer = PEERS.into_iter().find(|(name, _)| *name == who);
        match peer.context("no peer has this name")?.1 {
            Peer::Tcp { control, is_tuned, streams } => {
                around.spec.host = host(is_tuned, control);
                Contender::iperf3(&format!("-P {streams}"), seconds)?
            }
            Peer::Program(program, options) => Contender::peer(ctx, program, options, seconds)?,
        }
    };
    let outcome = trial::measure(ctx, &around, &contender)?;
    let whole = outcome.transfer.whole();
    let queue = outcome.counters.queue(&link, outcome.origin, seconds);
    let up = &outcome.counters.end().up;
    let all = 100.0 * up.overflowed as f64 / (up.segments as f64).max(1.0);
    let mut row = Row::new()
        .with("goodput", whole / 1e6, "Mbit/s")
        .with("of Eff", 100.0 * whole / link.eff(), "%")
        .with("queue", queue.mean_ms, "ms")
        .with("overflow", queue.overflow_percent, "%")
        .with("all overflow", all, "%");
    row.notes = outcome.notes;
    Ok(row)
}

/// Ours against the best of the others on the same link.
fn compare(results: &mut [CellResult]) {
    let setting = |result: &CellResult, name: &str| -> String {
        let found = result.settings.iter().find(|(key, _)| key == name);
        found.map_or_else(String::new, |(_, value)| value.clone())
    };
    for (rtt, loss) in LINKS {
        let is_here = |result: &CellResult| {
            setting(result, "RTT ms") == rtt.to_string()
                && setting(result, "loss %") == loss.to_string()
        };
        let peers =
            results.iter().filter(|result| is_here(result) && setting(result, "who") != OURS);
        let figures =
            peers.filter_map(|peer| Some((setting(peer, "who"), peer.median.value("goodput")?)));
        let Some((name, best)) = figures.max_by(|a, b| a.1.total_cmp(&b.1)) else { continue };
        let ours =
            results.iter_mut().find(|result| is_here(result) && setting(result, "who") == OURS);
        let Some(ours) = ours else { continue };
        let Some(goodput) = ours.median.value("goodput") else { continue };
        let bar = if rtt >= 200.0 && loss >= 0.1 { 1.0 } else { 0.97 };
        ours.median.push("of best peer", goodput / best, "x", Some(Bar::AtLeast(bar)));
        ours.median.notes.push(format!("best peer: {name}"));
    }
}
