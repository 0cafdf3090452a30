//! Bench mount: programs read through a mount at 200 ms.

use crate::bench::{ALONE, Bench, Order};
use crate::record::row::{Bar, Cell, Row};
use crate::rig::context::Ctx;
use crate::rig::files::random_file;
use crate::rig::line::{End, Line};
use crate::rig::link::Link;
use crate::rig::ssh::{Medium, Rig};
use anyhow::{Context, Result};
use std::fs;
use std::path::Path;
use std::time::Duration;
use xtask::workspace;

pub(crate) const BENCH: Bench = Bench {
    id: "mount",
    title: "Reading through a mount over 1 Gbit/s, 200 ms",
    method: "The server's files are on RAM disk; each cell mounts them anew. cat: 1 GB from open to end, which may \
             take what 85 % of the link's payload would. list: `ls -lR` of 10,000 files in 100 directories. \
             random: 1,000 programs, 20 at a time, each of which opens the file and reads 128 KiB at a random \
             place. sshfs and rclone run once, with their defaults, and are stopped after 120 s.",
    cells,
    run,
    order: Order::ByCell,
    compare: ALONE,
};

/// Payload of one gigabyte at 85 % of the link's.
const SHARE: f64 = 0.85;
const BYTES: u64 = 1_000_000_000;
const DIRS: u32 = 100;
const FILES_PER_DIR: u32 = 100;
const LIST_SECONDS_MAX: f64 = 2.0;
const CAP: Duration = Duration::from_secs(120);
const LOSSES: [(&str, f64); 2] = [("0 %", 0.0), ("1 %", 0.01)];
const WORKS: [&str; 3] = ["cat", "list", "random"];
const WHO: [&str; 3] = ["hikyaku", "sshfs", "rclone"];

fn cells(_: &Ctx) -> Vec<Cell> {
    let mut cells = Vec::new();
    for (loss, _) in LOSSES {
        for work in WORKS {
            for who in WHO {
                let id = format!("{work}-{}-{who}", loss.replace(" %", ""));
                let cell = Cell::new(id).with("work", work).with("loss", loss).with("who", who);
                cells.push(if who == "hikyaku" { cell } else { cell.once() });
            }
        }
    }
    cells
}

fn run(ctx: &Ctx, cell: &Cell) -> Result<Row> {
    let loss = LOSSES.iter().find(|(name, _)| *name == cell.setting("loss"));
    let (_, loss) = loss.context("no such loss")?;
    let link = Link::gigabit(200.0, *loss);
    let rig = Rig::up(link.lab(ctx.round())?, Medium::Ram, &workspace())?;
    let bytes = if ctx.is_quick() { BYTES / 10 } else { BYTES };
    let root = rig.at(End::Server, "root");
    plant(&root, bytes)?;
    let script = rig.at(End::Client, "work.sh");
    fs::write(&script, SCRIPT)?;
    let sftp = rig.sftp(&root.display().to_string());
    let line = Line::new("bash").arg(&script).arg(ctx.hikyaku()?).arg(rig.at(End::Client, "mnt"));
    let line = line.arg(&root).arg(rig.config()).arg(sftp).arg(rig.server());
    let line =
        line.arg(cell.setting("who")).arg(cell.setting("work")).arg((bytes >> 17).to_string());
    let timed = rig.timed(&line, CAP)?;
    let Some(finished) = timed.finished else { return Ok(Row::new().note("stopped")) };
    let said = finished.success()?;
    let seconds: f64 = said.trim().parse().with_context(|| format!("no time in {said:?}"))?;
    let is_ours = cell.setting("who") == "hikyaku" && !ctx.is_quick();
    let full = bytes as f64 * 8.0 / link.eff();
    let bar = match cell.setting("work") {
        "cat" => Some(full / SHARE),
        "list" => Some(LIST_SECONDS_MAX),
        _ => None,
    };
    let mut row = Row::new();
    row.push("time", seconds, "s", bar.filter(|_| is_ours).map(Bar::AtMost));
    if cell.setting("work") == "cat" {
        row.push("of the link", 100.0 * full / seconds, "%", None);
    }
    let report = rig.report()?;
    Ok(match report.valid {
        true => row,
        false => row.note(format!("INVALID: {}", report.problems.join(", "))),
    })
}

/// One large file, and a tree of small ones.
fn plant(root: &Path, bytes: u64) -> Result<()> {
    fs::create_dir_all(root)?;
    random_file(&root.join("large"), bytes, 1)?;
    for dir in 0..DIRS {
        let dir = root.join(format!("tree/{dir}"));
        fs::create_dir_all(&dir)?;
        for file in 0..FILES_PER_DIR {
            fs::write(dir.join(file.to_string()), b"x")?;
        }
    }
    Ok(())
}

/// Mounts, prints the seconds that the work took, and unmounts.
const SCRIPT: &str = r#"
set -eu
program=$1 mnt=$2 root=$3 config=$4 sftp=$5 host=$6 who=$7 work=$8 blocks=$9
mkdir -p "$mnt"
case $who in
hikyaku)
    source=hikyaku://$host/
    keys=$root/../keys
    : > "$keys"
    ssh -tt -F "$config" far "$program serve --root $root --listen 0.0.0.0:5209 --authorized-keys $keys" > /dev/null 2>&1 < /dev/null &
    server=$!
    # The server ends with its connection to ssh.
    trap 'kill $server 2> /dev/null || true' EXIT
    for attempt in 1 2 3 4 5; do
        sleep 1
        key=$("$program" mount -f "$source" "$mnt" 2>&1 | grep -o 'ed25519:[A-Za-z0-9+/]*' | tail -n 1) && break
    done
    echo "$key" > "$keys"
    "$program" mount "$source" "$mnt" ;;
sshfs)
    sshfs -F "$config" "far:$root" "$mnt" ;;
rclone)
    rclone mount --daemon "$sftp" "$mnt" ;;
esac
begin=$(date +%s.%N)
case $work in
cat) cat "$mnt/large" > /dev/null ;;
list) ls -lR "$mnt/tree" > /dev/null ;;
random)
    awk -v n="$blocks" 'BEGIN { srand(1); for (i = 0; i < 1000; i++) print int(rand() * n) }' |
        xargs -P 20 -I {} dd if="$mnt/large" of=/dev/null bs=128k count=1 skip={} status=none ;;
esac
end=$(date +%s.%N)
echo "$begin $end" | awk '{ printf "%.3f\n", $2 - $1 }'
fusermount3 -u "$mnt"
"#;
