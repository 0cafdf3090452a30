//! Bench `proxy-switch`: downloads one after another while the switch of the gateway is turned off and on.

use super::gateways;
use crate::bench::{ALONE, Bench, Order};
use crate::record::row::{Bar, Cell, Row};
use crate::rig::context::Ctx;
use crate::rig::files::random_file;
use crate::rig::line::{End, Line};
use crate::rig::link::Link;
use crate::rig::ssh::{Medium, Rig};
use anyhow::{Context, Result, ensure};
use std::fs;
use std::time::Duration;
use xtask::{Finished, workspace};

pub(crate) const BENCH: Bench = Bench {
    id: "proxy-switch",
    title: "Downloads over 1 Gbit/s and 10 ms with 0.1 % loss, while `hikyaku proxy` is turned off and on",
    method: "curl downloads from a web server (Python's `http.server`, the file in RAM) beside the far gateway by an \
             HTTP proxy at the near one, for a set time in each of five phases: off, on, off, on, off. The same \
             gateways run all the time, and curl is not told. `off` and `on` are the medians of their phases: what \
             curl got in that time, connection and request included. `perf` is `hikyaku perf -R` on the same link. \
             Then a download is begun while the switch is on and another one while it is off, the switch is turned \
             twice while they run, and both have to go on. What arrived is compared by `cmp`.",
    cells,
    run,
    order: Order::ByCell,
    compare: ALONE,
};

const PHASES: [&str; 5] = ["off", "on", "off", "on", "off"];
const WEB: u16 = 8000;
const PROXY: u16 = 7003;
const CAP: Duration = Duration::from_secs(120);
/// curl's exit code when its time is over (curl(1)).
const TIME_IS_OVER: i32 = 28;

fn cells(_: &Ctx) -> Vec<Cell> {
    vec![Cell::new("10ms").with("RTT ms", 10).with("loss %", 0.1)]
}

fn run(ctx: &Ctx, _: &Cell) -> Result<Row> {
    let seconds = ctx.seconds(20.0);
    let link = Link::gigabit(10.0, 0.001);
    // More than passes in a phase.
    let bytes = (link.rate / 8.0 * (seconds + 1.0)) as u64;
    let rig = Rig::up(link.lab(ctx.round())?, Medium::Ram, &workspace())?;
    random_file(&rig.at(End::Server, "data"), bytes, 1)?;
    let perf = gateways::perf(ctx, &rig, (link.rate / 8.0 * seconds) as u64, CAP)?;
    let perf = perf.value("rate").context("no rate")?;
    let _web = rig.start_far(&gateways::python_web(&rig, WEB))?;
    gateways::wait_for_web(&rig, &rig.server(), WEB)?;
    let _gateways = gateways::start(ctx, &rig, &format!("--http 127.0.0.1:{PROXY}"), 1)?;
    rig.restart()?;
    let mut rates = Vec::new();
    for phase in PHASES {
        gateways::turn(ctx, &rig, phase)?;
        rates.push((phase, download(&rig, seconds)?));
    }
    let median = |phase: &str| {
        let of = rates.iter().filter(|(of, _)| *of == phase).map(|(_, rate)| *rate);
        crate::record::row::median(of.collect())
    };
    let (off, on) = (median("off"), median("on"));
    across(ctx, &rig, seconds)?;
    let report = rig.report()?;
    let row = Row::new()
        .with("off", off, "Mbit/s")
        .with("on", on, "Mbit/s")
        .with("perf", perf, "Mbit/s")
        .held_to("of perf", 100.0 * on / perf, "%", Bar::AtLeast(97.0))
        .held_to("on / off", on / off, "", Bar::AtLeast(3.0));
    let series: Vec<String> =
        rates.iter().map(|(phase, rate)| format!("{phase} {rate:.0}")).collect();
    let row = row.note(format!("in turn: {}", series.join(", ")));
    Ok(match report.valid {
        true => row,
        false => row.note(format!("INVALID: {}", report.problems.join(", "))),
    })
}

/// A download of so many seconds by the proxy.
fn curl(rig: &Rig, copy: &str, seconds: f64) -> Line {
    let line = Line::new("curl").words("-sS -w %{size_download} -x");
    let line = line.arg(format!("http://127.0.0.1:{PROXY}"));
    let line = line.args(["--max-time", &seconds.to_string(), "-o"]).arg(rig.at(End::Client, copy));
    line.arg(format!("http://{}:{WEB}/data", rig.server()))
}

/// Mbit/s of a download.
fn download(rig: &Rig, seconds: f64) -> Result<f64> {
    let line = curl(rig, "copy", seconds);
    let timed = rig.timed(&line, CAP)?;
    let bytes = arrived(rig, timed.finished.context("curl hangs")?, "copy")?;
    Ok(bytes * 8.0 / timed.seconds.min(seconds) / 1e6)
}

/// Bytes that curl has got, which are those that were sent.
fn arrived(rig: &Rig, finished: Finished, copy: &str) -> Result<f64> {
    let code = finished.status.code();
    ensure!(matches!(code, Some(0 | TIME_IS_OVER)), "curl: {}", finished.stderr.trim());
    let bytes: u64 = finished.stdout.trim().parse().context("curl tells no size")?;
    let copy = rig.at(End::Client, copy);
    let cmp = Line::new("cmp").arg("-n").arg(bytes.to_string());
    let cmp = cmp.arg(rig.at(End::Server, "data")).arg(&copy);
    rig.timed(&cmp, CAP)?.finished.context("cmp hangs")?.success()?;
    fs::remove_file(copy)?;
    Ok(bytes as f64)
}

/// Downloads that run while the switch is turned.
fn across(ctx: &Ctx, rig: &Rig, seconds: f64) -> Result<()> {
    let mut running = Vec::new();
    for (word, copy) in [("on", "carried"), ("off", "direct")] {
        gateways::turn(ctx, rig, word)?;
        running.push((rig.start(&curl(rig, copy, seconds))?, copy));
        // The request has gone.
        std::thread::sleep(Duration::from_secs(1));
    }
    gateways::turn(ctx, rig, "on")?;
    for (mut curl, copy) in running {
        let finished = curl.wait_for(CAP)?.context("curl hangs")?;
        let code = finished.status.code();
        ensure!(
            code == Some(TIME_IS_OVER) || code == Some(0),
            "{copy}: a switch broke it: {code:?}"
        );
        ensure!(arrived(rig, finished, copy)? > 0.0, "{copy}: nothing came");
    }
    Ok(())
}
