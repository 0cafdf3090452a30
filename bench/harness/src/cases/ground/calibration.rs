//! The lab, measured: are its delays, rates and losses what it says?

use crate::bench::{ALONE, Bench, Order};
use crate::record::row::{Bar, Cell, Row};
use crate::rig::contender::Contender;
use crate::rig::context::Ctx;
use crate::rig::line::{End, Place};
use crate::rig::link::{Link, host, path};
use crate::rig::trial::{self, Surroundings};
use crate::rig::veth::{Segmentation, Veth};
use anyhow::{Context, Result, bail};
use hikyaku_lab::{DirectionReport, Lab, LabSpec};
use std::time::Duration;

#[cfg(test)]
mod tests;

pub(crate) const BENCH: Bench = Bench {
    id: "cal",
    title: "The lab's calibration",
    method: "Delay: the median of 20 pings. Rate: TCP's goodput in the second half of 20 s, as a \
             share of what fits into the rate (1448 bytes of payload for every 1538 on the wire), \
             in the lab and through the kernel's token bucket on a veth. Loss: what the \
             lab says it lost of 400 Mbit/s of UDP, and what iperf3 missed. Unimpaired: TCP through a lab with no limits, and 10 Gbit/s of \
             250 MB under way.",
    cells,
    run,
    order: Order::ByCell,
    compare: ALONE,
};

fn cells(_: &Ctx) -> Vec<Cell> {
    let delay =
        [20, 200, 500].map(|ms| Cell::new(format!("rtt-{ms}")).with("set", format!("{ms} ms")));
    let rate = ["100", "1000"].map(|mbit| {
        ["lab", "tbf"]
            .map(|by| Cell::new(format!("rate-{mbit}-{by}")).with("set", format!("{mbit} Mbit/s")))
    });
    let loss = ["0.1", "1", "5", "10"]
        .map(|loss| Cell::new(format!("loss-{loss}")).with("set", format!("{loss} %")));
    let tcp = ["1500", "9000", "inflight"].map(|kind| Cell::new(format!("tcp-{kind}")));
    delay.into_iter().chain(rate.into_iter().flatten()).chain(loss).chain(tcp).collect()
}

fn run(ctx: &Ctx, cell: &Cell) -> Result<Row> {
    match cell.id().split('-').collect::<Vec<_>>()[..] {
        ["rtt", ms] => delay(ctx, ms.parse()?),
        ["rate", mbit, "lab"] => rate_of_lab(ctx, mbit.parse()?),
        ["rate", mbit, _] => rate_of_kernel(ctx, mbit.parse()?),
        ["loss", percent] => loss(ctx, percent.parse()?),
        ["tcp", "inflight"] => in_flight(ctx),
        ["tcp", mtu] => unimpaired(ctx, mtu),
        _ => bail!("no such cell"),
    }
}

fn delay(ctx: &Ctx, ms: f64) -> Result<Row> {
    let lab = Lab::up(Link::gigabit(ms, 0.0).lab(ctx.round())?)?;
    let mut ping = Place::command(&lab, End::Client, "ping".as_ref());
    ping.args(["-c", "20", "-i", "0.2", &Place::server(&lab)]);
    let said = ctx.output(&mut ping, Duration::from_secs(60))?;
    let median = median_ping(&said).context("ping tells no times")?;
    Ok(Row::new().with("measured", median, "ms").held_to(
        "off by",
        (median - ms).abs(),
        "ms",
        Bar::AtMost(0.2),
    ))
}

/// The middle of the times that ping prints.
fn median_ping(said: &str) -> Option<f64> {
    let times =
        said.lines().filter_map(|line| line.split_once("time=")?.1.split(' ').next()?.parse().ok());
    let times: Vec<f64> = times.collect();
    (!times.is_empty()).then(|| crate::record::row::median(times))
}

const TCP_SECONDS: f64 = 20.0;

/// What TCP can carry at most: 1448 bytes of payload take 1538 on the wire.
fn tcp_fits(rate: f64) -> f64 {
    rate * 1448.0 / 1538.0
}

fn rate_row(measured: f64, rate: f64) -> Row {
    let off = 100.0 * (measured / tcp_fits(rate) - 1.0).abs();
    Row::new().with("measured", measured * 1538.0 / 1448.0 / 1e6, "Mbit/s").held_to(
        "off by",
        off,
        "%",
        Bar::AtMost(0.5),
    )
}

fn rate_of_lab(ctx: &Ctx, mbit: f64) -> Result<Row> {
    let seconds = ctx.seconds(TCP_SECONDS);
    // A queue that TCP never empties: what is measured is the link.
    let rate = format!("{mbit}mbit");
    let path = path(&[("rate", &rate), ("rtt", "2ms"), ("queue", "2MB")])?;
    let around = Surroundings::new(LabSpec { path, ..LabSpec::default() }, seconds);
    let outcome = trial::measure(ctx, &around, &Contender::iperf3("", seconds)?)?;
    let mut row = rate_row(outcome.transfer.goodput.second_half(seconds), mbit * 1e6);
    row.notes = outcome.notes;
    Ok(row)
}

fn rate_of_kernel(ctx: &Ctx, mbit: f64) -> Result<Row> {
    let veth = Veth::up(1500, Segmentation::None)?;
    veth.shape(mbit * 1e6)?;
    let seconds = ctx.seconds(TCP_SECONDS);
    let who = Contender::iperf3("", seconds)?;
    let (transfer, notes) = trial::unimpaired(ctx, &veth, &who, seconds)?;
    let row = rate_row(transfer.goodput.second_half(seconds), mbit * 1e6);
    Ok(Row { notes, ..row })
}

fn loss(ctx: &Ctx, percent: f64) -> Result<Row> {
    let seconds = ctx.seconds(TCP_SECONDS);
    // iperf3 does not survive the loss of its first datagram, so the loss begins later.
    let schedule = format!("at 1s loss {percent}%").parse()?;
    let seed = u64::from(ctx.round());
    let path = path(&[("rtt", "2ms")])?;
    let spec = LabSpec { path, schedule, seed, ..LabSpec::default() };
    let who = Contender::iperf3("-u -b 400M -l 1400", seconds)?;
    let outcome = trial::measure(ctx, &Surroundings::new(spec, seconds), &who)?;
    let (from, to) = (2.0, seconds - 0.5);
    let counters = &outcome.counters;
    let during =
        |sum: &dyn Fn(&DirectionReport) -> f64| counters.at(to, sum) - counters.at(from, sum);
    let sent = during(&|up| up.segments as f64);
    let counted = 100.0 * during(&|up| up.lost as f64) / sent;
    let received = outcome.transfer.goodput.mean(from, to) * (to - from) / 8.0 / 1400.0;
    let off = 100.0 * (counted / percent - 1.0).abs();
    let mut row = Row::new()
        .with("measured", counted, "%")
        .with("missed by iperf3", 100.0 * (1.0 - received / sent), "%")
        .held_to("off by", off, "%", Bar::AtMost(5.0));
    row.notes = outcome.notes;
    Ok(row)
}

fn unimpaired(ctx: &Ctx, mtu: &str) -> Result<Row> {
    let spec = LabSpec { path: path(&[("mtu", mtu)])?, ..LabSpec::default() };
    tcp(ctx, spec, "")
}

fn in_flight(ctx: &Ctx) -> Result<Row> {
    let link = [("rate", "10gbit"), ("rtt", "200ms"), ("queue", "unlimited"), ("mtu", "9000")];
    let spec = LabSpec { path: path(&link)?, host: host(true, "cubic"), ..LabSpec::default() };
    tcp(ctx, spec, "-P 4")
}

fn tcp(ctx: &Ctx, spec: LabSpec, options: &str) -> Result<Row> {
    let seconds = ctx.seconds(TCP_SECONDS);
    let who = Contender::iperf3(options, seconds)?;
    let outcome = trial::measure(ctx, &Surroundings::new(spec, seconds), &who)?;
    let goodput = outcome.transfer.goodput.second_half(seconds) / 1e9;
    let end = outcome.counters.end();
    let mut row = Row::new()
        .held_to(
            "TCP",
            goodput,
            "Gbit/s",
            Bar::AtLeast(if options.is_empty() { 10.0 } else { 9.0 }),
        )
        .with("late p99", end.relay.late_p99_us / 1e3, "ms")
        .with("late max", end.relay.late_max_us / 1e3, "ms");
    row.notes = outcome.notes;
    Ok(row)
}
