//! The lab of many sites, measured: is each of its links what it says?

use crate::bench::{ALONE, Bench, Order};
use crate::record::row::{Bar, Cell, Row};
use crate::rig::context::Ctx;
use crate::rig::link::settings;
use anyhow::{Result, anyhow};
use hikyaku_lab::{Layout, PairName, SiteLab, SitesSpec, WayCheck, check};
use hikyaku_link::PathSpec;
use std::time::Duration;

pub(crate) const BENCH: Bench = Bench {
    id: "sites",
    title: "The calibration of a lab of sites",
    method: "`hikyaku lab check` on five sites of two to four hosts: both ways of each of the ten links, one after the \
             other, from host to host. Delay: 40 single datagrams. Rate: a flood of a tenth more than the rate for \
             10 s. Loss: what the link says it lost of that; what its datagrams do not explain is unaccounted for. \
             The worst of all twenty ways is shown.",
    cells: |_| KINDS.map(|kind| Cell::new(kind.id).with("links", kind.links)).to_vec(),
    run,
    order: Order::ByCell,
    compare: ALONE,
};

/// Ten links that have something in common.
struct Kind {
    id: &'static str,
    links: &'static str,
    common: &'static [(&'static str, &'static str)],
    /// What is different about some.
    pairs: &'static [(&'static str, &'static [(&'static str, &'static str)])],
}

const KINDS: [Kind; 3] = [
    Kind {
        id: "mixed",
        links: "100 Mbit/s to 1 Gbit/s, 2 to 300 ms, 0 to 1 %",
        common: &[("rate", "500mbit"), ("rtt", "20ms")],
        pairs: &[
            (
                "tokyo-nict",
                &[("rate", "1gbit"), ("rtt", "100ms"), ("loss", "0.1%"), ("queue", "500p")],
            ),
            ("tokyo-osaka", &[("rtt", "8ms"), ("loss", "0.01%")]),
            ("tokyo-nagoya", &[("rate", "1gbit"), ("rtt", "2ms"), ("queue", "2MB")]),
            ("nict-osaka", &[("rate", "100mbit"), ("rtt", "300ms"), ("loss", "1%")]),
            (
                "osaka-kyoto",
                &[("delay-up", "10ms"), ("delay-down", "40ms"), ("rate-down", "200mbit")],
            ),
        ],
    },
    Kind {
        id: "gigabit",
        links: "1 Gbit/s, 150 ms",
        common: &[("rate", "1gbit"), ("rtt", "150ms")],
        pairs: &[],
    },
    Kind {
        id: "slow",
        links: "10 Mbit/s, 40 ms, 0.5 %",
        common: &[("rate", "10mbit"), ("rtt", "40ms"), ("loss", "0.5%")],
        pairs: &[],
    },
];

const SITES: [&str; 5] = ["tokyo:4", "nict:2", "osaka:3", "nagoya:2", "kyoto:2"];
const SECONDS: f64 = 10.0;

fn run(ctx: &Ctx, cell: &Cell) -> Result<Row> {
    let kind = KINDS.iter().find(|kind| kind.id == cell.id());
    let kind = kind.ok_or_else(|| anyhow!("no such cell"))?;
    let lab = SiteLab::up(spec(kind, u64::from(ctx.round()))?)?;
    let check = check(&lab, Duration::from_secs_f64(ctx.seconds(SECONDS)))?;
    let worst = |off: &dyn Fn(&WayCheck) -> f64| check.ways.iter().map(off).fold(0.0, f64::max);
    let delay = worst(&|way| (way.delay_ms.unwrap_or(f64::INFINITY) - way.delay_asked_ms).abs());
    let rate = worst(&|way| match (way.rate, way.rate_asked) {
        (Some(rate), Some(asked)) => 100.0 * (rate / asked as f64 - 1.0).abs(),
        _ => f64::INFINITY,
    });
    let unaccounted = worst(&|way| way.unaccounted.unsigned_abs() as f64);
    let bad = check.ways.iter().filter(|way| !way.is_as_asked()).count();
    let relay = lab.report()?.relay;
    let row = Row::new()
        .held_to("not as asked", bad as f64, "ways", Bar::AtMost(0.0))
        .held_to("delay off by", delay, "ms", Bar::AtMost(0.2))
        .held_to("rate off by", rate, "%", Bar::AtMost(0.5))
        .held_to("unaccounted for", unaccounted, "", Bar::AtMost(0.0))
        .with("late p99", relay.late_p99_us / 1e3, "ms")
        .with("late max", relay.late_max_us / 1e3, "ms");
    let faults = check.ways.iter().flat_map(|way| {
        way.faults.iter().map(|fault| format!("{} to {}: {fault}", way.from, way.to))
    });
    let row = faults.fold(row, Row::note);
    let invalid = check.problems.iter().map(|problem| format!("INVALID: {problem}"));
    Ok(invalid.fold(row, Row::note))
}

fn spec(kind: &Kind, seed: u64) -> Result<SitesSpec> {
    let sites: Result<Vec<_>, String> = SITES.iter().map(|site| site.parse()).collect();
    let layout = Layout::new(sites.map_err(|text| anyhow!(text))?).map_err(|text| anyhow!(text))?;
    let link: PathSpec = crate::rig::link::path(kind.common)?;
    let mut spec = SitesSpec { seed, ..SitesSpec::new(layout, link) };
    for (pair, changes) in kind.pairs {
        let pair: PairName = pair.parse().map_err(|text: String| anyhow!(text))?;
        for setting in settings(changes)? {
            spec.set(&pair, setting).map_err(|text| anyhow!(text))?;
        }
    }
    Ok(spec)
}
