//! Several downloads at once through one link, and the goodput of each.

use crate::rig::context::Ctx;
use crate::rig::download::{payload, tuned_number};
use crate::rig::downloader::Downloader;
use crate::rig::files::written;
use crate::rig::goodput::Goodput;
use crate::rig::web::{NAME, Web};
use anyhow::{Result, bail};
use hikyaku_lab::Report;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};
use xtask::Running;

/// Interval between two samples of the link and the files, at which programs are started as well.
const LOOK: Duration = Duration::from_millis(500);

/// A download, and when it begins in seconds after the first.
pub(crate) type Entry = (Downloader, f64);

/// Their goodput. Times are seconds after the begin of the first.
pub(crate) struct Together {
    /// In the order in which they began.
    pub(crate) each: Vec<Got>,
    /// All payload that the link has delivered.
    pub(crate) link: Goodput,
    pub(crate) report: Report,
}

/// Goodput and connections of one of them.
pub(crate) struct Got {
    /// By its own events; of a program with one connection, by the length of its file. Empty for others.
    pub(crate) goodput: Goodput,
    /// The last number of connections that the tuner measured.
    pub(crate) tuned_to: Option<f64>,
}

/// A download that runs.
struct Under {
    who: Downloader,
    begun: f64,
    running: Running,
    folder: PathBuf,
    /// The length of the file by time.
    lengths: Vec<(f64, f64)>,
}

/// Runs `entries`, in the order of their begin, and stops all of them after `seconds`. Their unfinished files are compared with
/// `source`.
///
/// # Errors
/// One of them ends earlier, or has wrong bytes in its file.
pub(crate) fn together(
    ctx: &Ctx,
    web: &Web,
    source: &Path,
    entries: &[Entry],
    seconds: f64,
) -> Result<Together> {
    web.lab.restart()?;
    let began = Instant::now();
    let mut under: Vec<Under> = Vec::new();
    let mut link = Vec::new();
    let mut report = web.lab.report()?;
    for tick in 0.. {
        sleep((LOOK * tick).saturating_sub(began.elapsed()));
        let now = began.elapsed().as_secs_f64();
        report = web.lab.report()?;
        link.push((now, payload(&report.down)));
        for one in &mut under {
            one.look(now)?;
        }
        if now >= seconds {
            break;
        }
        let due = entries[under.len()..].iter().take_while(|(_, begins)| *begins <= now);
        for (who, _) in due.copied().collect::<Vec<_>>() {
            let folder = web.near(&format!("to-{}", under.len()))?;
            let running = web.start(&who.line(ctx, web, &folder)?)?;
            let begun = began.elapsed().as_secs_f64();
            under.push(Under { who, begun, running, folder, lengths: vec![(begun, 0.0)] });
        }
    }
    let each = under.into_iter().map(|one| one.end(source)).collect::<Result<_>>()?;
    Ok(Together { each, link: Goodput::of_sums(&link), report })
}

impl Under {
    fn look(&mut self, now: f64) -> Result<()> {
        if let Some(finished) = self.running.wait(Instant::now())? {
            finished.success()?;
            bail!("{} has ended after {now:.1} s: the file is too small", self.who.name());
        }
        // Until its first byte there is no file.
        let length = fs::metadata(self.folder.join(NAME)).map_or(0, |file| file.len());
        self.lengths.push((now, length as f64));
        Ok(())
    }

    fn end(mut self, source: &Path) -> Result<Got> {
        let events = self.running.stop()?.stdout;
        written(source, &self.folder)?;
        let goodput = match self.who {
            Downloader::Tuned | Downloader::Fixed(_) => progress(&events, self.begun),
            Downloader::Curl => Goodput::of_sums(&self.lengths),
            Downloader::Aria2c | Downloader::Axel => Goodput::default(),
        };
        Ok(Got { goodput, tuned_to: tuned_number(&events) })
    }
}

/// Goodput by the events of `hikyaku get`, which began at `begun`.
fn progress(events: &str, begun: f64) -> Goodput {
    let events = events.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let progress = events.filter(|event| event["event"] == "progress");
    let sum = |event: Value| Some((begun + event["seconds"].as_f64()?, event["bytes"].as_f64()?));
    Goodput::of_sums(&progress.filter_map(sum).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn goodput_follows_from_progress() {
        let event =
            |s: u32| format!("{{\"event\":\"progress\",\"seconds\":{s},\"bytes\":{}}}", s * 500);
        let events: Vec<String> = (0..4).map(event).collect();
        let goodput = progress(&events.join("\n"), 10.0);
        assert_eq!((goodput.mean(10.0, 13.0), goodput.mean(11.0, 12.0)), (4000.0, 4000.0));
        assert_eq!(goodput.mean(0.0, 10.0), 0.0);
    }
}
