//! What cannot be done is not done, nothing is lost by it, and it is said why.

use super::{CAP, put};
use crate::bench::context::Ctx;
use crate::bench::line::End;
use crate::bench::link::Link;
use crate::bench::record::{Bar, Row};
use crate::bench::rig::{Medium, Rig, random_file};
use crate::process::run;
use crate::root;
use anyhow::{Context, Result, bail};
use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

pub(super) const IDS: [&str; 3] = ["disk-full", "read-only", "source-changed"];

const SIZE: u64 = 200_000_000;

/// A file system of its own for the target. Unmounted when dropped.
struct Mounted<'a>(&'a Path);

impl Drop for Mounted<'_> {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("--lazy").arg(self.0).status();
    }
}

pub(super) fn refused(ctx: &Ctx, what: &str) -> Result<Row> {
    let link = Link::gigabit(20.0, 0.0);
    let rig = Rig::up(link.lab(ctx.round())?, Medium::Ram, &root::workspace())?;
    let (from, far) = (rig.at(End::Client, "file"), rig.at(End::Server, ""));
    random_file(&from, SIZE, 1)?;
    let mounted = mount(what, &far)?;
    let copy = rig.at(End::Server, "copy");
    if what != "read-only" {
        fs::write(&copy, b"as it was")?;
    }
    let mut running = rig.start(&put(ctx, &rig, "file")?)?;
    let finished = if what == "source-changed" {
        running.wait_for(Duration::from_millis(900))?;
        File::options().append(true).open(&from)?.write_all(b"more")?;
        running.wait_for(CAP)?
    } else {
        running.wait_for(CAP)?
    };
    let finished = finished.context("it does not end")?;
    let is_kept = match what {
        "read-only" => !copy.exists(),
        _ => fs::read(&copy)? == b"as it was",
    };
    drop(mounted);
    let wanted = match what {
        "disk-full" => "free some space and run the same command again",
        "read-only" => "mounted read-only",
        _ => "changed while it was read",
    };
    let is_said = finished.stderr.contains(wanted);
    let code = finished.status.code().unwrap_or(-1);
    let said = finished.stderr.lines().next().unwrap_or("nothing").to_owned();
    let no = |yes: bool| f64::from(u8::from(!yes));
    Ok(Row::new()
        .with("exit code", f64::from(code), "")
        .held_to("lost", no(is_kept), "files", Bar::AtMost(0.0))
        .held_to("unsaid", no(is_said && code != 0), "", Bar::AtMost(0.0))
        .note(said))
}

fn mount<'a>(what: &str, at: &'a Path) -> Result<Option<Mounted<'a>>> {
    let options = match what {
        "disk-full" => "size=50m",
        "read-only" => "ro",
        "source-changed" => return Ok(None),
        _ => bail!("nobody knows {what}"),
    };
    let mut command = Command::new("mount");
    command.args(["-t", "tmpfs", "-o", options, "tmpfs"]).arg(at);
    run(&mut command, Duration::from_secs(5))?.success()?;
    Ok(Some(Mounted(at)))
}
