//! Either end is killed at a random moment, again and again.

use super::{CAP, done, put};
use crate::record::row::{Bar, Row};
use crate::rig::context::Ctx;
use crate::rig::files::{random_file, same};
use crate::rig::line::End;
use crate::rig::link::Link;
use crate::rig::ssh::{Medium, Rig};
use anyhow::{Context, Result};
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};
use xtask::workspace;

const TRIALS: u32 = 100;
const LARGE: u64 = 30_000_000;
const SMALL_FILES: u32 = 300;

/// A hundred copies that are killed and finished.
pub(super) fn killed(ctx: &Ctx, end: End) -> Result<Row> {
    let link = Link::gigabit(20.0, 0.001);
    let rig = Rig::up(link.lab(ctx.round())?, Medium::Ram, &workspace())?;
    let (old, new) = (rig.at(End::Client, "old"), rig.at(End::Client, "new"));
    plant(&old, 1)?;
    plant(&new, 2)?;
    let line = put(ctx, &rig, "new/.")?;
    let copy = rig.at(End::Server, "copy");
    renew(&old, &copy)?;
    let begin = Instant::now();
    done(&rig.timed(&line, CAP)?)?;
    let whole = begin.elapsed().as_secs_f64();
    let trials = if ctx.is_quick() { TRIALS / 10 } else { TRIALS };
    let mut rng = fastrand::Rng::with_seed(u64::from(ctx.round()));
    let (mut wrong, mut hit, mut unfinished, mut longest) = (0, 0, 0, 0f64);
    for trial in 0..trials {
        renew(&old, &copy)?;
        let at = whole * 1.05 * (f64::from(trial) + rng.f64()) / f64::from(trials);
        let mut running = rig.start(&line)?;
        if running.wait_for(Duration::from_secs_f64(at))?.is_none() {
            hit += 1;
            match end {
                End::Client => running.kill()?,
                End::Server => rig.kill_far()?,
            }
            // The other end finds out by itself.
            running.wait_for(CAP)?.context("the near end does not find out")?;
        }
        wrong += wrong_files(&copy, &old, &new)?;
        let again = rig.timed(&line, CAP)?;
        longest = longest.max(again.seconds);
        if done(&again).is_err() || same(&new, &copy).is_err() {
            unfinished += 1;
        }
    }
    Ok(Row::new()
        .with("undisturbed", whole, "s")
        .with("killed", f64::from(hit), "times")
        .held_to("wrong", f64::from(wrong), "files", Bar::AtMost(0.0))
        .held_to("not finished by the same command", f64::from(unfinished), "", Bar::AtMost(0.0))
        .with("longest second command", longest, "s"))
}

/// One large file and many small ones, none like that of another seed.
fn plant(root: &Path, seed: u64) -> Result<()> {
    fs::create_dir_all(root.join("small"))?;
    random_file(&root.join("large"), LARGE, seed)?;
    for n in 0..SMALL_FILES {
        let path = root.join(format!("small/{n}"));
        random_file(&path, u64::from(n) * 50 + 1, seed * 1000 + u64::from(n))?;
    }
    Ok(())
}

/// The older tree again, and nothing else.
fn renew(old: &Path, copy: &Path) -> Result<()> {
    if copy.exists() {
        fs::remove_dir_all(copy)?;
    }
    fs::create_dir_all(copy.join("small"))?;
    for name in names(old)? {
        fs::copy(old.join(&name), copy.join(&name))?;
    }
    Ok(())
}

fn names(root: &Path) -> Result<Vec<String>> {
    let mut all = vec!["large".to_owned()];
    for entry in fs::read_dir(root.join("small"))? {
        all.push(format!("small/{}", entry?.file_name().to_string_lossy()));
    }
    Ok(all)
}

/// Final names that have neither the old nor the new content.
fn wrong_files(copy: &Path, old: &Path, new: &Path) -> Result<u32> {
    let mut wrong = 0;
    for name in names(new)? {
        let found = fs::read(copy.join(&name)).with_context(|| format!("{name} is gone"))?;
        if found != fs::read(old.join(&name))? && found != fs::read(new.join(&name))? {
            wrong += 1;
        }
    }
    Ok(wrong)
}
