//! `lab up` and `lab down`: a lab in a background process.

use super::{TERMINATION_SIGNALS, end_by};
use crate::args::UpArgs;
use crate::control::{Request, ask, serve};
use crate::runtime::{self, Found};
use crate::trouble;
use anyhow::{Context, Result, bail};
use hikyaku_console::{Exit, ExitCode, print, print_error};
use signal_hook::iterator::Signals;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, ErrorKind};
use std::os::unix::net::UnixListener;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::thread;
use std::time::{Duration, Instant};

/// The line that the background process prints once the lab is running.
const READY_LINE: &str = "ready";
/// How long a lab may take to end.
const END_TIMEOUT: Duration = Duration::from_secs(15);
/// How long a lab process that does not answer may keep its lock: the kernel needs time to tear
/// down a killed process.
const KILLED_TIMEOUT: Duration = Duration::from_secs(1);

pub(super) fn up(args: &UpArgs) -> Result<Exit> {
    if args.foreground {
        return run_until_told_to_end(args);
    }
    args.lab.spec(None)?;
    runtime::make_base()?;
    let log = runtime::log_of(&args.name);
    // Starts the same command again as a separate process: forking is not safe in a program with
    // threads.
    let mut child = Command::new(std::env::current_exe()?)
        .args(std::env::args_os().skip(1))
        .arg("--foreground")
        // The child's errors are printed by this process, where a backtrace would not help.
        .env("RUST_BACKTRACE", "0")
        .env_remove("RUST_LIB_BACKTRACE")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(File::create(&log).context("cannot write the log")?)
        // A process group of its own, so that Ctrl-C in this terminal does not reach it.
        .process_group(0)
        .spawn()?;
    let mut line = String::new();
    if let Some(stdout) = child.stdout.take() {
        BufReader::new(stdout).read_line(&mut line)?;
    }
    if line.trim() == READY_LINE {
        let _ = fs::remove_file(&log);
        return Ok(ExitCode::Success.into());
    }
    let status = child.wait()?;
    let text = fs::read_to_string(&log).unwrap_or_default();
    let _ = fs::remove_file(&log);
    match status.code() {
        // The child has printed the error and its exit code fits it; both are passed on.
        Some(1..) => {
            print_error(text);
            Ok(Exit::of_command(status))
        }
        _ => bail!("the lab's process ended during its start: {status}"),
    }
}

/// Runs the lab until it is told to end.
fn run_until_told_to_end(args: &UpArgs) -> Result<Exit> {
    static SIGNAL: OnceLock<i32> = OnceLock::new();
    let mut signals = Signals::new(TERMINATION_SIGNALS)?;
    let lab = args.lab.spec(Some(args.name.clone()))?.up()?;
    let socket = lab.socket();
    let listener = UnixListener::bind(&socket).context("cannot listen for requests")?;
    // The parent process reads no more than this line.
    print(format!("{READY_LINE}\n"))?;
    thread::spawn(move || {
        if let Some(signal) = signals.forever().next() {
            let _ = SIGNAL.set(signal);
            // Ends the loop below as any other request would.
            let _ = ask(&socket, &Request::Down);
        }
    });
    serve(&*lab, &listener);
    drop(lab);
    SIGNAL.get().map_or(Ok(ExitCode::Success.into()), |signal| end_by(*signal))
}

/// Ends a lab, or removes the remains of one whose process was killed.
pub(super) fn down(name: &str) -> Result<()> {
    match runtime::find(name) {
        Found::Live(socket) => end(name, &socket)?,
        Found::Dead => {}
        Found::Nothing => return Err(runtime::no_lab(name)),
    }
    match runtime::find(name) {
        Found::Dead => runtime::remove(name),
        Found::Live(_) | Found::Nothing => Ok(()),
    }
}

/// Tells a lab to end and waits until it has.
fn end(name: &str, socket: &Path) -> Result<()> {
    let asked = ask(socket, &Request::Down);
    let patience = if asked.is_ok() { END_TIMEOUT } else { KILLED_TIMEOUT };
    let deadline = Instant::now() + patience;
    while matches!(runtime::find(name), Found::Live(_)) {
        if Instant::now() > deadline {
            asked?;
            let text = format!("lab '{name}' has not ended after {} s", patience.as_secs());
            return Err(trouble::of(ErrorKind::TimedOut, text));
        }
        thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}
