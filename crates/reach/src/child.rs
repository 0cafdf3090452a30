//! Programs that were started to talk with, at their end.

use std::process::{Child, ExitStatus};
use std::thread;
use std::time::{Duration, Instant};

/// A program whose input is closed ends within this, or is killed.
const END: Duration = Duration::from_secs(3);
const LOOK: Duration = Duration::from_millis(5);

/// Waits until a program ends by itself, at most 3 s, and kills it if it does not.
pub fn ended(child: &mut Child) -> Option<ExitStatus> {
    let begin = Instant::now();
    loop {
        if let Ok(Some(status)) = child.try_wait() {
            return Some(status);
        }
        if begin.elapsed() >= END {
            let _ = child.kill();
            return child.wait().ok();
        }
        thread::sleep(LOOK);
    }
}
