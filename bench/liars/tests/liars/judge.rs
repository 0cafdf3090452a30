//! The honest end as a process: how it ended, how much it held, what it said.

use crate::scene::Scene;
use hikyaku_bench_liars::{Asked, Ends, WINDOW, near};
use rustix::process::{Pid, Signal, kill_process};
use std::fs::{self, File};
use std::io::BufReader;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// What became of the honest end.
pub(crate) struct Judged {
    /// Nothing, if it had to be killed.
    status: Option<ExitStatus>,
    /// The most memory that it had, in bytes.
    peak: u64,
    stderr: Vec<u8>,
    took: Duration,
}

impl Judged {
    pub(crate) fn stderr(&self) -> String {
        String::from_utf8_lossy(&self.stderr).into_owned()
    }
}

/// Who has not ended by then hangs.
const DEADLINE: Duration = Duration::from_secs(150);
/// When a user has had enough of somebody who says nothing.
const ENOUGH: Duration = Duration::from_secs(1);
/// From Ctrl-C on.
const STOPPING: Duration = Duration::from_secs(8);
const LOOK: Duration = Duration::from_millis(4);

/// Beside the window.
const HELD: u64 = 64 << 20;
/// What an end that sends may hold beside that of what it is told (`send/before.rs`).
pub(crate) const MORE: u64 = 128 << 20;
/// Lines that a user is told, and bytes of one: two texts of 4,096, and what is said to them.
const LINES: usize = 1000;
const LONGEST: usize = 9000;

/// Runs an honest end to its end.
pub(crate) fn run(command: &mut Command, ends: Ends) -> Judged {
    let scratch = tempfile();
    let stderr = File::create(&scratch).unwrap();
    let child = command.stdout(Stdio::null()).stderr(stderr).spawn().unwrap();
    finish(child, &scratch, ends)
}

/// Runs `hikyaku serve` beside a near side in this process.
pub(crate) fn serve(scene: &Scene, tell: impl FnOnce(near::Channel<'_>) -> near::Held) -> Judged {
    let scratch = tempfile();
    let mut command = scene.command("serve");
    command.arg("--stdio").stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.stderr(File::create(&scratch).unwrap()).spawn().unwrap();
    let (mut output, input) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    let mut input = BufReader::new(input);
    let watch = Watch::new(&child);
    let held = tell((&mut output, &mut input));
    let mut held = held;
    for (peer, _) in &mut held {
        if let Some(peer) = peer {
            peer.wait(ENOUGH);
        }
    }
    // The near side is gone, and with it the channel.
    drop((held, output));
    let judged = finish(child, &scratch, Ends::With(0));
    Judged { peak: judged.peak.max(watch.end()), ..judged }
}

fn tempfile() -> std::path::PathBuf {
    let name = format!("hikyaku-liar-said-{}-{:016x}", std::process::id(), fastrand::u64(..));
    std::env::temp_dir().join(name)
}

/// Looks at a process while others have to do with it.
struct Watch {
    stop: std::sync::Arc<std::sync::atomic::AtomicBool>,
    thread: thread::JoinHandle<u64>,
}

impl Watch {
    fn new(child: &Child) -> Self {
        let stop = std::sync::Arc::<std::sync::atomic::AtomicBool>::default();
        let (ours, id) = (stop.clone(), child.id());
        let thread = thread::spawn(move || {
            let mut most = 0;
            while !ours.load(std::sync::atomic::Ordering::Relaxed) {
                most = most.max(peak(id));
                thread::sleep(LOOK);
            }
            most
        });
        Self { stop, thread }
    }

    fn end(self) -> u64 {
        self.stop.store(true, std::sync::atomic::Ordering::Relaxed);
        self.thread.join().unwrap()
    }
}

fn finish(mut child: Child, scratch: &std::path::Path, ends: Ends) -> Judged {
    let (begin, id) = (Instant::now(), child.id());
    let (mut most, mut stopped) = (0, None);
    let status = loop {
        most = most.max(peak(id));
        if let Some(status) = child.try_wait().unwrap() {
            break Some(status);
        }
        if ends == Ends::Stopped && stopped.is_none() && begin.elapsed() > ENOUGH {
            kill_process(Pid::from_child(&child), Signal::INT).unwrap();
            stopped = Some(Instant::now());
        }
        let is_late = stopped.is_some_and(|at| at.elapsed() > STOPPING);
        if is_late || begin.elapsed() > DEADLINE {
            child.kill().unwrap();
            child.wait().unwrap();
            break None;
        }
        thread::sleep(LOOK);
    };
    let stderr = fs::read(scratch).unwrap();
    fs::remove_file(scratch).unwrap();
    Judged { status, peak: most, stderr, took: begin.elapsed() }
}

/// The most memory that a process has had, as the kernel counts it.
fn peak(id: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{id}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kilobytes =
        line.and_then(|line| line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok());
    kilobytes.unwrap_or(0) << 10
}

/// Whether it is as it must be; `more` is what it may hold beside the usual.
pub(crate) fn judge(
    scene: &Scene,
    judged: &Judged,
    (asked, ends): (Asked, Ends),
    more: u64,
) -> Result<(), String> {
    let Judged { status, peak, stderr, took } = judged;
    let text = String::from_utf8_lossy(stderr);
    let lines = text.lines().count();
    let shown: String = text.chars().take(600).collect();
    let mut wrong = Vec::new();
    let code = status.and_then(|status| status.code());
    match (status, ends) {
        (None, _) => wrong.push("does not end".to_owned()),
        (Some(_), Ends::With(wanted)) if code == Some(wanted) => {}
        (Some(_), Ends::Somehow) if code.is_some_and(|code| [0, 2, 5, 6].contains(&code)) => {}
        (Some(status), Ends::Stopped) if status.signal() == Some(Signal::INT.as_raw()) => {}
        (Some(status), _) => wrong.push(format!("{status} in place of {ends:?}")),
    }
    if text.contains("panicked") {
        wrong.push("it panicked".to_owned());
    }
    if *peak > WINDOW + HELD + more {
        wrong.push("it holds too much".to_owned());
    }
    if lines > LINES || text.lines().any(|line| line.len() > LONGEST) {
        wrong.push(format!("{lines} lines, or one that is too long"));
    }
    let is_odd = |c: char| c.is_control() && c != '\n' || ('\u{202a}'..='\u{202e}').contains(&c);
    if str::from_utf8(stderr).is_err() || text.contains(is_odd) {
        wrong.push("it shows what does something to a terminal".to_owned());
    }
    wrong.extend(scene.touched(asked).map(|touched| format!("touched: {touched}")));
    if std::env::var_os("HK_TELL").is_some() {
        let first: String = text.lines().next().unwrap_or_default().chars().take(150).collect();
        println!(
            "{:6.2} s {:4} MB {lines:5} lines {code:?} {ends:?} {wrong:?} {first}",
            took.as_secs_f64(),
            peak >> 20
        );
    }
    if wrong.is_empty() { Ok(()) } else { Err(format!("{}; {shown}", wrong.join(", "))) }
}
