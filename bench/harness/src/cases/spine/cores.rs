//! Bench `cores`: what several connections of one program carry, beside as many programs.

use crate::bench::{Bench, Order};
use crate::record::row::{Bar, Cell, CellResult, Row, median};
use crate::rig::contender::{Contender, Perf};
use crate::rig::context::Ctx;
use crate::rig::trial;
use crate::rig::veth::{Segmentation, Veth};
use anyhow::Result;
use std::thread::available_parallelism;

#[cfg(test)]
mod tests;

pub(crate) const BENCH: Bench = Bench {
    id: "cores",
    title: "Many connections on many cores: `perf -P` over veth",
    method: "Memory to memory for 6 s over a plain veth, both ends on this machine, all in turn and round by round: \
             N connections of one program (`perf -P N`), N programs with a connection each, iperf3 with N connections \
             over TCP, which encrypts nothing. `goodput` is the sum; `processor` is the processor time of both ends a \
             gigabyte. `of programs` is that of the connections over that of the programs in the same round, `of one` \
             over that of one connection, `time of one` the processor time over that of one connection. A run during \
             which others took more than 0.15 of a core is repeated.",
    cells,
    run,
    order: Order::ByRound,
    compare,
};

const SECONDS: f64 = 6.0;
const MTUS: [u32; 2] = [1500, 9000];
const NUMBERS: [u32; 4] = [1, 2, 4, 8];
const CONNECTIONS: &str = "connections";
const PROGRAMS: &str = "programs";
const IPERF3: &str = "iperf3";
/// The port of the first program.
const PORT: u32 = 5400;

/// Of the sum of as many programs.
const OF_PROGRAMS: f64 = 0.85;
/// Processor time a gigabyte of eight connections, as a multiple of that of one.
const TIME_OF_ONE: f64 = 1.3;
/// Eight connections on two processors, as a share of one.
const OF_ONE: f64 = 0.95;
/// Gbit/s of eight connections on this number of processors and more, at each MTU.
const MANY_PROCESSORS: usize = 16;
const GBITS: [f64; 2] = [85.0, 100.0];

fn cells(_: &Ctx) -> Vec<Cell> {
    let of = |mtu: u32, n: u32| {
        [CONNECTIONS, PROGRAMS, IPERF3]
            .map(|who| Cell::new(id(mtu, n, who)).with("MTU", mtu).with("N", n).with("who", who))
    };
    MTUS.into_iter().flat_map(|mtu| NUMBERS.into_iter().flat_map(move |n| of(mtu, n))).collect()
}

fn id(mtu: u32, n: u32, who: &str) -> String {
    format!("mtu{mtu}-{n}-{who}")
}

fn run(ctx: &Ctx, cell: &Cell) -> Result<Row> {
    let n: u32 = cell.setting("N").parse()?;
    let perf = |both: String, client: String| {
        let program = ctx.hikyaku()?.to_path_buf();
        Contender::perf_with(Perf { program, both, client, ..Perf::default() }, SECONDS)
    };
    let who = match cell.setting("who") {
        CONNECTIONS => vec![perf(String::new(), format!("-P {n}"))?],
        PROGRAMS => (0..n)
            .map(|at| perf(format!("-p {}", PORT + at), String::new()))
            .collect::<Result<_>>()?,
        _ => vec![Contender::iperf3(&format!("-P {n}"), SECONDS)?],
    };
    let veth = Veth::up(cell.setting("MTU").parse()?, Segmentation::None)?;
    let (transfers, notes) = trial::unimpaired_beside(ctx, &veth, &who, SECONDS)?;
    let goodput: f64 = transfers.iter().map(|transfer| transfer.whole()).sum();
    let mut row = Row::new().with("goodput", goodput / 1e9, "Gbit/s");
    if cell.setting("who") != IPERF3 {
        let time = |transfer: &crate::rig::transfer::Transfer| {
            transfer.ours.client.cpu_seconds + transfer.ours.server.cpu_seconds
        };
        let bytes: f64 = transfers.iter().map(|transfer| transfer.bytes).sum();
        let seconds: f64 = transfers.iter().map(time).sum();
        row = row.with("processor", seconds * 1e9 / bytes, "s/GB");
    }
    row.notes.extend(transfers.into_iter().filter_map(|transfer| transfer.error));
    row.notes.extend(notes);
    Ok(row)
}

fn compare(results: &mut [CellResult]) {
    let processors = available_parallelism().map_or(1, usize::from);
    for (at, mtu) in MTUS.into_iter().enumerate() {
        for n in NUMBERS {
            let runs = |who: &str, n: u32, name: &str| -> Vec<f64> {
                let id = id(mtu, n, who);
                let result = results.iter().find(|result| result.cell == id);
                let runs = result.map_or(&[][..], |result| &result.runs);
                runs.iter().filter_map(|run| run.value(name)).collect()
            };
            let ours = runs(CONNECTIONS, n, "goodput");
            let of_programs = ratio(&ours, &runs(PROGRAMS, n, "goodput"));
            let of_one = ratio(&ours, &runs(CONNECTIONS, 1, "goodput"));
            let time = |n| runs(CONNECTIONS, n, "processor");
            let time_of_one = ratio(&time(n), &time(1));
            let id = id(mtu, n, CONNECTIONS);
            let Some(result) = results.iter_mut().find(|result| result.cell == id) else {
                continue;
            };
            let is_most = n == NUMBERS[NUMBERS.len() - 1];
            let of_most = |bar: Bar| is_most.then_some(bar);
            let few = of_most(Bar::AtLeast(OF_ONE)).filter(|_| processors < MANY_PROCESSORS);
            let measures = [
                ("of programs", of_programs, Some(Bar::AtLeast(OF_PROGRAMS))),
                ("of one", of_one, few),
                ("time of one", time_of_one, of_most(Bar::AtMost(TIME_OF_ONE))),
            ];
            for (name, ratio, bar) in measures {
                if let Some(ratio) = ratio {
                    result.median.push(name, ratio, "x", bar);
                }
            }
            if is_most && processors >= MANY_PROCESSORS {
                for measure in &mut result.median.measures {
                    if measure.name == "goodput" {
                        measure.bar = Some(Bar::AtLeast(GBITS[at]));
                    }
                }
            }
        }
    }
}

/// The median over the rounds of the ratio in each.
fn ratio(mine: &[f64], theirs: &[f64]) -> Option<f64> {
    let ratios: Vec<f64> = mine.iter().zip(theirs).map(|(mine, theirs)| mine / theirs).collect();
    (!ratios.is_empty()).then(|| median(ratios))
}
