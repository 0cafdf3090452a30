//! Whether anybody else works on this machine while we measure.

use anyhow::{Context, Result};
use std::fs;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Processor time of others, in cores, above which a figure is none.
pub(crate) const TOLERATED: f64 = 0.15;

/// How long to wait for a quiet machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// The kernel counts processor time in these.
const TICKS_PER_SECOND: f64 = 100.0;

/// Processor time at one moment.
pub(crate) struct Others {
    at: Instant,
    all: f64,
    own: f64,
}

impl Others {
    /// Begins to watch.
    pub(crate) fn watch() -> Result<Self> {
        let read = |path: &str| fs::read_to_string(path).with_context(|| path.to_owned());
        let all = of_machine(&read("/proc/stat")?).context("/proc/stat reads strangely")?;
        let own =
            of_family(&read("/proc/self/stat")?).context("/proc/self/stat reads strangely")?;
        Ok(Self { at: Instant::now(), all, own })
    }

    /// How many cores others have used since. Our own programs must have ended by now.
    pub(crate) fn cores(&self) -> Result<f64> {
        let after = Self::watch()?;
        let seconds = after.at.duration_since(self.at).as_secs_f64();
        let theirs = (after.all - self.all) - (after.own - self.own);
        Ok(theirs / TICKS_PER_SECOND / seconds)
    }
}

/// Waits until others are quiet for a second, or until it takes too long.
pub(crate) fn wait_for_quiet() -> Result<()> {
    let until = Instant::now() + PATIENCE;
    while Instant::now() < until {
        let watch = Others::watch()?;
        sleep(Duration::from_secs(1));
        if watch.cores()? < TOLERATED {
            break;
        }
    }
    Ok(())
}

/// Ticks of all programs: user, nice and system of the first line of `/proc/stat`. Interrupts are
/// left out, for they are served in everybody's name.
fn of_machine(stat: &str) -> Option<f64> {
    let fields = stat.lines().next()?.split_whitespace().skip(1).take(3);
    fields.map(|field| field.parse::<f64>().ok()).sum()
}

/// Ticks of this process and of its children that have ended.
fn of_family(stat: &str) -> Option<f64> {
    // The name stands in parentheses and may hold anything; the 14th to 17th field are meant.
    let behind_name = stat.rsplit_once(')')?.1;
    let fields = behind_name.split_whitespace().skip(11).take(4);
    fields.map(|field| field.parse::<f64>().ok()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_read() {
        assert_eq!(of_machine("cpu  10 20 30 40 5 6 7 8 0 0\ncpu0 1 2 3\n"), Some(60.0));
        assert_eq!(of_machine("cpu x"), None);
        let stat = "77 (a b) c) S 1 2 3 4 5 6 7 8 9 10 100 20 3 4 20 0 1";
        assert_eq!(of_family(stat), Some(127.0));
    }

    #[test]
    fn the_machine_can_be_watched() {
        assert!(Others::watch().unwrap().all > 0.0);
    }
}
