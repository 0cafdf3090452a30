//! What the benches of carried connections have in common: the gateways, the web server and `hikyaku perf`.

use crate::record::row::Row;
use crate::rig::context::Ctx;
use crate::rig::costs::Busy;
use crate::rig::line::{End, Line};
use crate::rig::ssh::Rig;
use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::thread::sleep;
use std::time::{Duration, Instant};
use xtask::Running;

const START: Duration = Duration::from_secs(30);

/// A gateway's control socket is here, so that the switch of no other one is turned.
const RUNTIME: &str = "XDG_RUNTIME_DIR";

/// Starts both gateways, of which the near one has so many listeners.
pub(super) fn start(ctx: &Ctx, rig: &Rig, options: &str, listeners: usize) -> Result<Running> {
    let (program, said) = (ctx.hikyaku()?, rig.at(End::Client, "said"));
    let script = format!(
        "exec {} proxy -F {} --remote-path {} far {options} >{}",
        program.display(),
        rig.config(),
        program.display(),
        said.display()
    );
    let line = Line::new("sh").args(["-c", &script]);
    let mut running = rig.start(&line.variable(RUNTIME, rig.at(End::Client, "run")))?;
    let began = Instant::now();
    while fs::read_to_string(&said).unwrap_or_default().matches("listening").count() < listeners {
        if let Some(finished) = running.wait_for(Duration::from_millis(50))? {
            finished.success()?;
        }
        ensure!(began.elapsed() < START, "the gateways are not connected");
    }
    Ok(running)
}

/// Turns the switch of the gateway that [`start`] has started.
pub(super) fn turn(ctx: &Ctx, rig: &Rig, word: &str) -> Result<()> {
    let line = Line::new(ctx.hikyaku()?).args(["proxy", word]);
    let line = line.variable(RUNTIME, rig.at(End::Client, "run"));
    let finished = rig.timed(&line, START)?.finished.context("the switch hangs")?;
    finished.success().map(drop)
}

/// A web server for the folder of the far end.
pub(super) fn python_web(rig: &Rig, port: u16) -> Line {
    let line = Line::new("python3").words("-m http.server --directory");
    line.arg(rig.at(End::Server, "")).arg(port.to_string())
}

/// Waits until the web server answers, be it with an error.
pub(super) fn wait_for_web(rig: &Rig, host: &str, port: u16) -> Result<()> {
    let began = Instant::now();
    let line = Line::new("curl").words("-s -o /dev/null -I").arg(format!("http://{host}:{port}/"));
    while rig.timed(&line, START)?.finished.is_none_or(|finished| !finished.status.success()) {
        ensure!(began.elapsed() < START, "the web server does not answer");
        sleep(Duration::from_millis(100));
    }
    Ok(())
}

/// So many bytes by `hikyaku perf`.
pub(super) fn perf(ctx: &Ctx, rig: &Rig, bytes: u64, cap: Duration) -> Result<Row> {
    let program = ctx.hikyaku()?;
    let ssh = rig.at(End::Client, "ssh");
    fs::write(&ssh, format!("#!/bin/sh\nexec ssh -F {} \"$@\"\n", rig.config()))?;
    fs::set_permissions(&ssh, fs::Permissions::from_mode(0o755))?;
    let line = Line::new(program).words("perf ssh://far -R -J -n").arg(bytes.to_string());
    let line = line.arg("--ssh").arg(&ssh).arg("--remote-path").arg(program);
    let busy = Busy::now()?;
    let timed = rig.timed(&line, cap)?;
    let cpu = busy.since()? / (bytes as f64 / 1e9);
    let said = timed.finished.context("the test was stopped")?.success()?;
    let report: Value = serde_json::from_str(&said)?;
    let rate = report["end"]["sum_received"]["bits_per_second"].as_f64().context("no rate")?;
    Ok(Row::new().with("rate", rate / 1e6, "Mbit/s").with("CPU", cpu, "s/GB"))
}
