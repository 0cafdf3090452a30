//! Bench `interrupted`: what a copy does when something fails.

mod kills;
mod refusals;

use crate::bench::{ALONE, Bench, Order};
use crate::record::row::{Bar, Cell, Row};
use crate::rig::context::Ctx;
use crate::rig::files::{random_file, same};
use crate::rig::line::{End, Line};
use crate::rig::link::{Link, settings};
use crate::rig::ssh::{Medium, Rig, Timed};
use anyhow::{Context, Result, ensure};
use std::fs;
use std::time::Duration;
use xtask::workspace;

pub(crate) const BENCH: Bench = Bench {
    id: "interrupted",
    title: "Copies that are hit",
    method: "Killed: a tree over 1 Gbit/s and 20 ms is copied over an older one, and one end is killed \
             (SIGKILL) after a random time; whatever has a final name then is the old or the whole new \
             file, or it counts as `wrong`; and the same command must finish it. Resumed: a file of \
             1 GB over 200 ms, the near end killed half-way; `sent again` is what both runs sent \
             beyond the file. Outages begin three seconds in; if the command ends by one, it is given \
             again until it is done. The others must fail, keep what was there, and say why.",
    cells,
    run,
    order: Order::ByCell,
    compare: ALONE,
};

const GIGABYTE: u64 = 1_000_000_000;
/// Half of a gigabyte has gone by then.
const UNDER_WAY: Duration = Duration::from_secs(6);
const CAP: Duration = Duration::from_secs(300);
/// Payload in a full packet and what that takes of the link: bytes of both (docs/internals/protocol.md).
const PAYLOAD: f64 = 1444.0 / 1538.0;
/// A window as it is at first, and a segment: what may be sent again (docs/copy.md).
const MAY_BE_SENT_AGAIN: f64 = 64e6 + 1e6;

fn cells(_: &Ctx) -> Vec<Cell> {
    let ids = ["killed-near", "killed-far", "resumed", "outage-10s", "outage-120s"];
    ids.into_iter()
        .chain(refusals::IDS)
        .chain(["memory-64MiB-put", "memory-64MiB-get"])
        .map(|id| Cell::new(id).once())
        .collect()
}

fn run(ctx: &Ctx, cell: &Cell) -> Result<Row> {
    match cell.id() {
        "killed-near" => kills::killed(ctx, End::Client),
        "killed-far" => kills::killed(ctx, End::Server),
        "resumed" => resumed(ctx),
        "outage-10s" => outage(ctx, 10),
        "outage-120s" => outage(ctx, 120),
        "memory-64MiB-put" => with_little_memory(ctx, End::Server),
        "memory-64MiB-get" => with_little_memory(ctx, End::Client),
        refusal => refusals::refused(ctx, refusal),
    }
}

/// `hikyaku cp` from here to `copy` there, with the far side started by a script that leaves its
/// process number.
fn put(ctx: &Ctx, rig: &Rig, from: &str) -> Result<Line> {
    let line = Line::new(ctx.hikyaku()?).words("cp -rp -F").arg(rig.config());
    let line = line.arg("--remote-path").arg(rig.far_script(ctx.hikyaku()?, "")?);
    Ok(line.arg(rig.at(End::Client, from)).arg(rig.far("copy")))
}

/// A file of a gigabyte at the near end of a link of 200 ms.
fn with_a_file(ctx: &Ctx, medium: Medium) -> Result<(Rig, u64)> {
    let link = Link::gigabit(200.0, 0.001);
    let rig = Rig::up(link.lab(ctx.round())?, medium, &workspace())?;
    let size = if ctx.is_quick() { GIGABYTE / 5 } else { GIGABYTE };
    random_file(&rig.at(End::Client, "file"), size, 1)?;
    Ok((rig, size))
}

/// Payload that the link carried towards the far end, less the file: bytes of headers taken off.
fn sent_beyond(rig: &Rig, size: u64) -> Result<f64> {
    let up = rig.report()?.up;
    // What TCP and acknowledgements take is little beside it, and is counted against us.
    let payload = up.delivered_bytes as f64 * PAYLOAD;
    Ok((payload - size as f64).max(0.0))
}

fn resumed(ctx: &Ctx) -> Result<Row> {
    let (rig, size) = with_a_file(ctx, Medium::Ram)?;
    let line = put(ctx, &rig, "file")?;
    rig.restart()?;
    let half = size as f64 * 8.0 / 0.93e9 / 2.0 + 1.5;
    let mut first = rig.start(&line)?;
    ensure!(first.wait_for(Duration::from_secs_f64(half))?.is_none(), "it was done too early");
    first.kill()?;
    let timed = rig.timed(&line, CAP)?;
    done(&timed)?;
    same(&rig.at(End::Client, "file"), &rig.at(End::Server, "copy"))?;
    let again = sent_beyond(&rig, size)?;
    let row = Row::new().with("second command", timed.seconds, "s");
    Ok(row.held_to("sent again", again / 1e6, "MB", Bar::AtMost(MAY_BE_SENT_AGAIN / 1e6)))
}

fn outage(ctx: &Ctx, seconds: u32) -> Result<Row> {
    let (rig, size) = with_a_file(ctx, Medium::Ram)?;
    let line = put(ctx, &rig, "file")?;
    rig.restart()?;
    let begin = std::time::Instant::now();
    let mut running = rig.start(&line)?;
    // ssh alone takes 3 s: the path goes while bytes are on it.
    ensure!(running.wait_for(UNDER_WAY)?.is_none(), "it was done too early");
    rig.set(settings(&[("outage", &format!("{seconds}s"))])?)?;
    let mut commands = 1;
    let mut ended = running.wait_for(CAP)?;
    let mut said = String::new();
    while let Some(finished) = &ended
        && !finished.status.success()
    {
        said.clone_from(&finished.stderr);
        ensure!(begin.elapsed() < CAP, "it does not get done: {said}");
        commands += 1;
        ended = rig.timed(&line, CAP)?.finished;
    }
    let took = begin.elapsed().as_secs_f64();
    ended.context("it does not end")?.success()?;
    same(&rig.at(End::Client, "file"), &rig.at(End::Server, "copy"))?;
    let undisturbed = size as f64 * 8.0 / 0.93e9;
    let row = Row::new()
        .with("commands", f64::from(commands), "")
        .with("beyond file and outage", took - undisturbed - f64::from(seconds), "s")
        .with("sent again", sent_beyond(&rig, size)? / 1e6, "MB");
    Ok(match said.lines().next() {
        Some(line) => row.note(line.to_owned()),
        None => row,
    })
}

/// Copies a file while the control group of one end limits its memory to 64 MiB. Both files are on disk, because the pages
/// of a RAM disk count towards that limit.
fn with_little_memory(ctx: &Ctx, end: End) -> Result<Row> {
    let (rig, size) = with_a_file(ctx, Medium::Disk)?;
    let group = Group::new(64 << 20)?;
    let program = ctx.hikyaku()?;
    // A namespace of the lab sees no control groups: the process waits to be put into one.
    let (pid, go) = (rig.at(End::Client, "pid"), rig.at(End::Client, "go"));
    let (pid_name, go_name) = (pid.display(), go.display());
    let wait = format!("echo $$ > {pid_name}; while [ ! -e {go_name} ]; do sleep 0.02; done;");
    let (near, far) = match end {
        End::Server => (String::new(), rig.far_script(program, &wait)?),
        End::Client => (wait, rig.far_script(program, "")?),
    };
    let script = format!("{near} exec \"$@\"");
    let line = Line::new("sh").args(["-c", &script, "sh"]).arg(program).words("cp -F");
    let line = line.arg(rig.config()).arg("--remote-path").arg(far);
    let line = match end {
        End::Server => line.arg(rig.at(End::Client, "file")).arg(rig.far("copy")),
        End::Client => {
            fs::rename(rig.at(End::Client, "file"), rig.at(End::Server, "file"))?;
            line.arg(rig.far("file")).arg(rig.at(End::Client, "copy"))
        }
    };
    let begin = std::time::Instant::now();
    let mut running = rig.start(&line)?;
    while !fs::read_to_string(&pid).is_ok_and(|pid| pid.ends_with('\n')) {
        ensure!(begin.elapsed() < CAP, "it does not start");
        std::thread::sleep(Duration::from_millis(20));
    }
    group.take(&fs::read_to_string(&pid)?)?;
    fs::write(&go, "")?;
    let finished = running.wait_for(CAP)?;
    let timed = Timed { seconds: begin.elapsed().as_secs_f64(), finished };
    done(&timed)?;
    let other = if end == End::Server { End::Client } else { End::Server };
    same(&rig.at(other, "file"), &rig.at(end, "copy"))?;
    let rate = size as f64 * 8.0 / timed.seconds / 1e6;
    Ok(Row::new().with("command", timed.seconds, "s").with("rate", rate, "Mbit/s"))
}

fn done(timed: &Timed) -> Result<()> {
    let finished = timed.finished.as_ref().context("it does not end")?;
    ensure!(finished.status.success(), "it failed: {}", finished.stderr);
    Ok(())
}

/// A control group with a limit of memory. Removed when dropped.
struct Group {
    folder: std::path::PathBuf,
}

impl Group {
    fn new(bytes: u64) -> Result<Self> {
        let root = std::path::Path::new("/sys/fs/cgroup");
        let (parent, limit) = match root.join("memory").is_dir() {
            true => (root.join("memory"), "memory.limit_in_bytes"),
            false => (root.to_path_buf(), "memory.max"),
        };
        let folder = parent.join(format!("hikyaku-bench-{}", std::process::id()));
        fs::create_dir(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
        let group = Self { folder };
        fs::write(group.folder.join(limit), bytes.to_string())?;
        Ok(group)
    }

    fn take(&self, pid: &str) -> Result<()> {
        Ok(fs::write(self.folder.join("cgroup.procs"), pid.trim())?)
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // Whoever was in it has ended, or it stays and does no harm.
        let _ = fs::remove_dir(&self.folder);
    }
}
