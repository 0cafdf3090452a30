//! Bench `shared-files`: two sites write a simulation's steps, two others follow, and a fifth one stores, all at once.

use crate::bench::{ALONE, Bench, Order};
use crate::record::row::{Bar, Cell, Row, median};
use crate::rig::context::Ctx;
use crate::rig::files::random_file;
use crate::rig::link::path;
use crate::rig::ramdisk::RamDisk;
use anyhow::{Context, Result, anyhow, ensure};
use hikyaku_lab::{Layout, SiteLab, SitesSpec};
use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

pub(crate) const BENCH: Bench = Bench {
    id: "shared-files",
    title: "Two sites write, two follow, a fifth one stores",
    method: "Five sites, each two of them joined by 1 Gbit/s with a round trip of 150 ms and 0.5 % loss. The store has two \
             hosts with a daemon each. Two writers each put a picture of 24 MB, a step of a simulation, into a mount of one \
             daemon every two seconds, under a temporary name that is then changed. Two followers mount both daemons: \
             one compares each step with what was written as soon as its name is there, the other one decodes a window of it \
             with `hikyaku view --bench`; each follows both simulations at once. Lag: from the end of the writer's rename to the end of the follower's work. Wrong: \
             steps that differ at a follower or, afterwards, at the store, or that did not come.",
    cells: |_| vec![Cell::new("all").with("link", "1 Gbit/s, 150 ms, 0.5 %")],
    run,
    order: Order::ByCell,
    compare: ALONE,
};

const SITES: [&str; 5] = ["store:2", "sima:1", "simb:1", "labc:1", "labd:1"];
/// A picture of 4000 x 2000 in three colours, and its head.
const PIXELS: u64 = 4000 * 2000 * 3;
const HEAD: &[u8] = b"P6 4000 2000 255\n";
const STEPS: u32 = 30;
const STEPS_QUICK: u32 = 4;
/// The time between two steps of a writer, in seconds.
const PACE: &str = "2";
/// Pictures that the steps are copies of: another one each time, so that a step that comes twice is seen.
const PICTURES: u32 = 4;
/// A follower shows a step within this.
const LAG_SECONDS_MAX: f64 = 5.0;

fn run(ctx: &Ctx, _: &Cell) -> Result<Row> {
    let steps = if ctx.is_quick() { STEPS_QUICK } else { STEPS };
    let program = ctx.hikyaku()?;
    let disk = RamDisk::up()?;
    let lab = SiteLab::up(spec(ctx.round())?)?;
    let at = |name: &str| disk.path().join(name);
    fs::create_dir_all(at("pictures"))?;
    for number in 0..PICTURES {
        picture(&at(&format!("pictures/{number}.ppm")), u64::from(number))?;
    }
    fs::write(at("script"), SCRIPT)?;
    let start = |host: &str, words: &[&str]| -> Result<Child> {
        let host = lab.layout().find(host).with_context(|| format!("no host {host}"))?;
        let mut command = lab.command(host, "bash");
        command.arg(at("script")).arg(program).arg(disk.path()).arg(steps.to_string()).arg(PACE);
        command.args(words).stdin(Stdio::null()).stdout(Stdio::null());
        command.spawn().with_context(|| format!("cannot start {words:?}"))
    };
    let key = own_key(program, disk.path())?;
    fs::write(at("keys"), format!("{key}\n"))?;
    let daemons =
        Running(vec![start("store1", &["serve", "1"])?, start("store2", &["serve", "2"])?]);
    let (one, two) = (address(&lab, "store1")?, address(&lab, "store2")?);
    let both = format!("hikyaku://{one},{two}/");
    for number in ["1", "2"] {
        until(|| {
            fs::read_to_string(at(&format!("serve{number}")))
                .is_ok_and(|text| text.contains(" at "))
        })?;
    }
    lab.restart()?;
    let mut workers = Running(vec![
        start("sima1", &["write", "a", &format!("hikyaku://{one}/")])?,
        start("simb1", &["write", "b", &format!("hikyaku://{two}/")])?,
        start("labc1", &["compare", "c", &both])?,
        start("labd1", &["show", "d", &both])?,
    ]);
    let limit = Duration::from_secs(120 + 10 * u64::from(steps));
    let is_done = workers.wait(limit)?;
    drop(daemons);
    let written = times(&at("log-a"))?.into_iter().chain(times(&at("log-b"))?).collect();
    let mut row = Row::new();
    let mut wrong = 0;
    for (name, what) in [("c", "compared"), ("d", "shown")] {
        let seen = times(&at(&format!("log-{name}")))?;
        let lags = lags(&written, &seen);
        wrong += (2 * steps as usize).saturating_sub(lags.len());
        let most = lags.iter().copied().fold(0.0, f64::max);
        let bar = Bar::AtMost(LAG_SECONDS_MAX);
        let middle = if lags.is_empty() { f64::INFINITY } else { median(lags) };
        row = row.held_to(&format!("{what} after, median"), middle, "s", bar);
        row = row.with(&format!("{what} after, at most"), most, "s");
    }
    for (step, host) in (1..=steps).flat_map(|step| [(step, ("a", "1")), (step, ("b", "2"))]) {
        let (writer, store) = host;
        let stored = at(&format!("root{store}/{writer}.{step:05}.ppm"));
        let picture = at(&format!("pictures/{}.ppm", step % PICTURES));
        wrong += usize::from(fs::read(stored).ok() != fs::read(picture).ok());
    }
    row = row.held_to("wrong", wrong as f64, "steps", Bar::AtMost(0.0));
    let report = lab.report()?;
    let faults = (!is_done).then(|| "stopped".to_owned()).into_iter();
    let problems =
        report.problems.iter().filter(|_| !report.valid).map(|text| format!("INVALID: {text}"));
    Ok(faults.chain(problems).fold(row, Row::note))
}

fn spec(seed: u32) -> Result<SitesSpec> {
    let sites: Result<Vec<_>, String> = SITES.iter().map(|site| site.parse()).collect();
    let layout = Layout::new(sites.map_err(|text| anyhow!(text))?).map_err(|text| anyhow!(text))?;
    let link = path(&[("rate", "1gbit"), ("rtt", "150ms"), ("loss", "0.5%")])?;
    Ok(SitesSpec { seed: u64::from(seed), ..SitesSpec::new(layout, link) })
}

/// A picture of random pixels, which nothing compresses.
fn picture(path: &Path, seed: u64) -> Result<()> {
    random_file(path, HEAD.len() as u64 + PIXELS, seed)?;
    let file = fs::File::options().write(true).open(path)?;
    std::os::unix::fs::FileExt::write_all_at(&file, HEAD, 0)?;
    Ok(())
}

/// The key of the clients, which they have in common.
fn own_key(program: &Path, scratch: &Path) -> Result<String> {
    let mut command = Command::new(program);
    let made =
        command.env("XDG_STATE_HOME", scratch.join("state")).args(["keys", "new"]).output()?;
    let said = String::from_utf8_lossy(&made.stdout).into_owned();
    let key = said.split_whitespace().find(|word| word.starts_with("ed25519:"));
    key.map(str::to_owned).with_context(|| format!("no key in {said:?}"))
}

fn address(lab: &SiteLab, host: &str) -> Result<String> {
    let host = lab.layout().find(host).context("no such host")?;
    Ok(format!("{}:5209", host.ipv4()))
}

/// When each step was there: lines of a name and a time.
fn times(log: &Path) -> Result<HashMap<String, f64>> {
    let text = fs::read_to_string(log).unwrap_or_default();
    let line = |line: &str| -> Result<(String, f64)> {
        let (name, time) = line.split_once(' ').with_context(|| format!("{line:?}"))?;
        Ok((name.to_owned(), time.parse()?))
    };
    text.lines().map(line).collect()
}

fn lags(written: &HashMap<String, f64>, seen: &HashMap<String, f64>) -> Vec<f64> {
    seen.iter().filter_map(|(name, at)| Some(at - written.get(name)?)).collect()
}

fn until(mut is_so: impl FnMut() -> bool) -> Result<()> {
    let end = Instant::now() + Duration::from_secs(20);
    while !is_so() {
        ensure!(Instant::now() < end, "a daemon does not start");
        thread::sleep(Duration::from_millis(50));
    }
    Ok(())
}

/// Programs, which end with it.
struct Running(Vec<Child>);

impl Running {
    /// Waits for all; whether they ended well in time.
    fn wait(&mut self, limit: Duration) -> Result<bool> {
        let end = Instant::now() + limit;
        let mut is_well = true;
        for child in &mut self.0 {
            loop {
                match child.try_wait()? {
                    Some(status) => {
                        is_well &= status.success();
                        break;
                    }
                    None if Instant::now() >= end => return Ok(false),
                    None => thread::sleep(Duration::from_millis(100)),
                }
            }
        }
        Ok(is_well)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// What each host does. A step is logged when it is where it should be.
const SCRIPT: &str = r#"
set -eu
program=$1 scratch=$2 steps=$3 pace=$4 work=$5 name=$6
export XDG_STATE_HOME=$scratch/state
mnt=$scratch/mnt-$name
note() { echo "$1 $(date +%s.%N)" >> "$scratch/log-$name"; }
up() { mkdir -p "$mnt"; "$program" mount --attr-ttl 200ms "$1" "$mnt"; }
down() { "$program" umount "$mnt"; }
follow() {
    for step in $(seq -f %05.0f "$steps"); do
        until [ -e "$mnt/$2.$step.ppm" ]; do sleep 0.1; done
        "$1" "$2.$step" "$((10#$step % 4))"
    done
}
compare() { if cmp -s "$mnt/$1.ppm" "$scratch/pictures/$2.ppm"; then note "$1"; fi; }
show() { if "$program" view --bench 1 --window 1000,500,1920x1080 "$mnt/$1.ppm" > /dev/null; then note "$1"; fi; }
case $work in
serve)
    mkdir -p "$scratch/root$name"
    export XDG_STATE_HOME=$scratch/state$name
    exec "$program" serve --writable --root "$scratch/root$name" --listen 0.0.0.0:5209 \
        --authorized-keys "$scratch/keys" > "$scratch/serve$name" ;;
write)
    up "$7"
    for step in $(seq -f %05.0f "$steps"); do
        cp "$scratch/pictures/$((10#$step % 4)).ppm" "$mnt/.$name.$step"
        mv "$mnt/.$name.$step" "$mnt/$name.$step.ppm"
        note "$name.$step"
        sleep "$pace"
    done
    down ;;
compare | show)
    up "$7"
    follow "$work" a & one=$!
    follow "$work" b & other=$!
    wait "$one"
    wait "$other"
    down ;;
esac
"#;
