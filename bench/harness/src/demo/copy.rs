//! The demo's second half: one file, copied by scp and by `hikyaku cp` through a real OpenSSH server.

use super::{LINK, bar, rate, size};
use crate::rig::context::Ctx;
use crate::rig::copier::{Copier, Job};
use crate::rig::files::{random_file, same};
use crate::rig::line::End;
use crate::rig::ssh::{Medium, Rig};
use anyhow::{Context, Result};
use std::io::Write;
use std::path::PathBuf;
use std::thread::sleep;
use std::time::{Duration, Instant};
use xtask::{Finished, Running, workspace};

/// Some ten seconds of the link.
const SIZE: u64 = 1_000_000_000;
/// Longer than hikyaku ever takes.
const CAP: u32 = 60;

/// One of the two, with its own link and server.
struct Copy {
    who: Copier,
    running: Running,
    rig: Rig,
    source: PathBuf,
    delivered: u64,
}

impl Copy {
    fn start(ctx: &Ctx, who: Copier) -> Result<Self> {
        let rig = Rig::up(LINK.lab(1)?, Medium::Ram, &workspace())?;
        let source = rig.at(End::Client, "file");
        random_file(&source, SIZE, 1)?;
        let job = Job::Put { from: source.clone(), to: rig.far("copy") };
        let line = who.line(ctx, &rig, &job)?;
        rig.restart()?;
        let running = rig.start(&line)?;
        Ok(Self { who, running, rig, source, delivered: 0 })
    }

    /// What came over the link since the last call, as a bar.
    fn second(&mut self) -> Result<String> {
        let delivered = self.rig.report()?.up.delivered_bytes;
        let bits = (delivered - self.delivered) as f64 * 8.0;
        self.delivered = delivered;
        Ok(format!("{} |{}|", rate(bits), bar(bits / LINK.rate)))
    }

    fn ended(&mut self) -> Result<Option<Finished>> {
        self.running.wait(Instant::now())
    }

    /// How long it would take at what it has done so far.
    fn forecast(&self, seconds: f64) -> String {
        let whole = SIZE as f64 / (self.delivered as f64).max(1.0) * seconds;
        let size = size(self.delivered as f64);
        format!("{} had moved {size}: it would take {:.0} minutes", self.who.name(), whole / 60.0)
    }
}

/// Copies with both until hikyaku is done, with a line a second.
pub(super) fn side_by_side(ctx: &Ctx) -> Result<()> {
    println!(
        "\nTwo such links, and an OpenSSH server at the end of each: a file of {}.\n\
         Both begin with the login of ssh, which takes seconds over such a link.\n\n\
         {:>6}   {:<40}   hikyaku cp",
        size(SIZE as f64),
        "",
        "scp"
    );
    let mut scp = Copy::start(ctx, Copier::Scp)?;
    let mut ours = Copy::start(ctx, Copier::Hikyaku)?;
    let began = Instant::now();
    let mut finished = None;
    for second in 1..=CAP {
        sleep((began + Duration::from_secs(second.into())).duration_since(Instant::now()));
        println!("{second:>4} s   {:<40}   {}", scp.second()?, ours.second()?);
        std::io::stdout().flush()?;
        finished = ours.ended()?;
        if finished.is_some() {
            break;
        }
    }
    let seconds = began.elapsed().as_secs_f64();
    finished.context("the copy does not end")?.success()?;
    same(&ours.source, &ours.rig.at(End::Server, "copy"))?;
    println!("\nhikyaku cp was done after {seconds:.0} s, and `diff` finds both files the same.");
    println!("{}.\n", scp.forecast(seconds));
    Ok(())
}
