//! Bench proxy: a download by curl through each way of `hikyaku proxy`, beside `hikyaku perf` and TCP without a proxy.

use super::gateways;
use crate::bench::{Bench, Order};
use crate::record::row::{Bar, Cell, CellResult, Row};
use crate::rig::context::Ctx;
use crate::rig::costs::Busy;
use crate::rig::files::random_file;
use crate::rig::line::{End, Line};
use crate::rig::link::Link;
use crate::rig::ssh::{Medium, Rig};
use anyhow::{Context, Result};
use std::fs;
use std::time::Duration;
use xtask::{Running, workspace};

pub(crate) const BENCH: Bench = Bench {
    id: "proxy",
    title: "Proxy: a download by curl over 1 Gbit/s and 200 ms, carried by `hikyaku proxy`",
    method: "curl asks a web server (Python's `http.server`, the file in RAM) beside the far gateway. `rate` is that of \
             curl from its start to the last byte, connection and request included; `again` is a second download \
             through the same gateways. `perf` carries as many bytes by `hikyaku perf -R -n`. `direct` is curl's own TCP \
             (Debian's settings, CUBIC), stopped after 60 s. `CPU` is what the whole machine worked for a gigabyte, the \
             lab, curl and the web server included. What arrived is compared by `cmp`. 1 GB; 100 MB over 5 % loss.",
    cells,
    run,
    order: Order::ByRound,
    compare,
};

/// How the bytes come.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Who {
    Perf,
    Forward,
    Socks,
    Tunnel,
    Request,
    Direct,
}

const WHO: [(Who, &str); 6] = [
    (Who::Perf, "perf"),
    (Who::Forward, "-L"),
    (Who::Socks, "-D"),
    (Who::Tunnel, "CONNECT"),
    (Who::Request, "http-request"),
    (Who::Direct, "direct"),
];
/// Loss each way in percent, and the bytes that are downloaded.
const PATHS: [(f64, u64); 4] =
    [(0.0, 1_000_000_000), (0.1, 1_000_000_000), (1.0, 1_000_000_000), (5.0, 100_000_000)];
const CAP: Duration = Duration::from_secs(60);
const START: Duration = Duration::from_secs(30);
/// The ports of the near gateway, and that of the web server.
const PORTS: [u16; 3] = [7001, 7002, 7003];
const WEB: u16 = 8000;

fn cells(_: &Ctx) -> Vec<Cell> {
    let of = |&(loss, _): &(f64, u64)| {
        WHO.map(move |(_, name)| {
            Cell::new(format!("{loss}-{name}")).with("loss %", loss).with("who", name)
        })
    };
    PATHS.iter().flat_map(of).collect()
}

fn run(ctx: &Ctx, cell: &Cell) -> Result<Row> {
    let loss = cell.setting("loss %");
    let (loss, bytes) = *PATHS.iter().find(|(of, _)| of.to_string() == loss).context("no loss")?;
    let (who, _) = *WHO.iter().find(|(_, name)| *name == cell.setting("who")).context("nobody")?;
    let bytes = if ctx.is_quick() { bytes / 10 } else { bytes };
    let rig =
        Rig::up(Link::gigabit(200.0, loss / 100.0).lab(ctx.round())?, Medium::Ram, &workspace())?;
    if who == Who::Perf {
        return gateways::perf(ctx, &rig, bytes, CAP * 2);
    }
    let file = rig.at(End::Server, "data");
    random_file(&file, bytes, 1)?;
    let _web = rig.start_far(&gateways::python_web(&rig, WEB))?;
    let _proxy = match who {
        Who::Direct => None,
        _ => Some(proxy(ctx, &rig)?),
    };
    let host = rig.server();
    gateways::wait_for_web(&rig, &host, WEB)?;
    rig.restart()?;
    let busy = Busy::now()?;
    let Some(first) = download(&rig, who, &host)? else {
        let rate = rig.report()?.down.delivered_bytes as f64 * 8.0 / CAP.as_secs_f64();
        return Ok(Row::new().with("rate", rate / 1e6, "Mbit/s").note("stopped"));
    };
    let cpu = busy.since()? / (bytes as f64 / 1e9);
    let rate = |seconds: f64| bytes as f64 * 8.0 / seconds / 1e6;
    let row = Row::new().with("rate", rate(first), "Mbit/s").with("CPU", cpu, "s/GB");
    let row = match who {
        Who::Direct => row,
        _ => {
            let again = download(&rig, who, &host)?.context("the second download was stopped")?;
            row.with("again", rate(again), "Mbit/s")
        }
    };
    let report = rig.report()?;
    Ok(if report.valid {
        row
    } else {
        row.note(format!("INVALID: {}", report.problems.join(", ")))
    })
}

/// Starts both gateways.
fn proxy(ctx: &Ctx, rig: &Rig) -> Result<Running> {
    let [forward, socks, http] = PORTS;
    let target = format!("127.0.0.1:{forward}:{}:{WEB}", rig.server());
    let options = format!("-L {target} -D 127.0.0.1:{socks} --http 127.0.0.1:{http}");
    gateways::start(ctx, rig, &options, PORTS.len())
}

/// Downloads the file; the seconds that curl counted, or `None` if it had to be stopped.
fn download(rig: &Rig, who: Who, host: &str) -> Result<Option<f64>> {
    let to = rig.at(End::Client, "copy");
    let [forward, socks, http] = PORTS;
    let line = Line::new("curl").words("-sSf -w %{time_total} -o").arg(&to);
    let url = format!("http://{host}:{WEB}/data");
    let line = match who {
        Who::Forward => line.arg(format!("http://127.0.0.1:{forward}/data")),
        Who::Socks => line.arg("--socks5-hostname").arg(format!("127.0.0.1:{socks}")).arg(url),
        Who::Tunnel => line.arg("-p").arg("-x").arg(format!("http://127.0.0.1:{http}")).arg(url),
        Who::Request => line.arg("-x").arg(format!("http://127.0.0.1:{http}")).arg(url),
        Who::Direct | Who::Perf => line.arg(url),
    };
    let Some(finished) = rig.timed(&line, CAP)?.finished else { return Ok(None) };
    let seconds = finished.success()?.trim().parse().context("curl tells no time")?;
    let both = [rig.at(End::Server, "data"), to.clone()];
    let same = rig.timed(&Line::new("cmp").args(both), START)?.finished.context("cmp hangs")?;
    same.success()?;
    fs::remove_file(to)?;
    Ok(Some(seconds))
}

/// Beside `hikyaku perf`.
fn compare(results: &mut [CellResult]) {
    for (loss, _) in PATHS {
        let id = |name: &str| format!("{loss}-{name}");
        let of_perf = |name| {
            let perf = results.iter().find(|result| result.cell == id("perf"))?;
            perf.median.value(name)
        };
        let (Some(rate), Some(cpu)) = (of_perf("rate"), of_perf("CPU")) else { continue };
        for (_, name) in WHO.iter().filter(|(who, _)| !matches!(who, Who::Perf | Who::Direct)) {
            let Some(cell) = results.iter_mut().find(|result| result.cell == id(name)) else {
                continue;
            };
            if let Some(ours) = cell.median.value("rate") {
                cell.median.push("of perf", 100.0 * ours / rate, "%", Some(Bar::AtLeast(97.0)));
            }
            if let Some(ours) = cell.median.value("CPU") {
                cell.median.push("more CPU", ours - cpu, "s/GB", None);
            }
        }
    }
}
