//! What cannot be done is not done, nothing is lost by it, and it is said why.

use super::{CAP, put};
use crate::record::row::{Bar, Row};
use crate::rig::context::Ctx;
use crate::rig::files::random_file;
use crate::rig::line::End;
use crate::rig::link::Link;
use crate::rig::ssh::{Medium, Rig};
use anyhow::{Context, Result};
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::time::Duration;
use xtask::workspace;

pub(super) const IDS: [&str; 3] = ["disk-full", "read-only", "source-changed"];

const SIZE: u64 = 200_000_000;

pub(super) fn refused(ctx: &Ctx, what: &str) -> Result<Row> {
    let link = Link::gigabit(20.0, 0.0);
    let rig = Rig::up(link.lab(ctx.round())?, Medium::Ram, &workspace())?;
    let (from, far) = (rig.at(End::Client, "file"), rig.at(End::Server, ""));
    random_file(&from, SIZE, 1)?;
    mount(what, &rig, &far)?;
    let copy = rig.at(End::Server, "copy");
    if what == "source-changed" {
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
        "read-only" => true,
        "disk-full" => rig.far_output(&["cat".as_ref(), copy.as_os_str()])? == "as it was",
        _ => fs::read(&copy)? == b"as it was",
    };
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

/// A file system of its own for the target, where the server sees it: the far end has mounts of its
/// own, which are gone with it.
fn mount(what: &str, rig: &Rig, at: &Path) -> Result<()> {
    let options = match what {
        "disk-full" => "size=50m",
        "read-only" => "ro",
        _ => return Ok(()),
    };
    let words = ["mount", "-t", "tmpfs", "-o", options, "tmpfs"].map(OsStr::new);
    rig.far_output(&[&words[..], &[at.as_os_str()]].concat())?;
    if what == "disk-full" {
        let copy = at.join("copy");
        let write = format!("printf 'as it was' > {}", copy.display());
        rig.far_output(&["sh", "-c", &write].map(OsStr::new))?;
    }
    Ok(())
}
