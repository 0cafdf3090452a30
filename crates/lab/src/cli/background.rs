//! `lab up` and `lab down`: a lab in a process of its own.

use crate::args::UpArgs;
use crate::control::{Ask, ask, serve};
use crate::lab::Lab;
use crate::runtime;
use anyhow::{Context, Result, bail};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::os::unix::net::UnixListener;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// What the background process prints when the lab is there.
const READY: &str = "ready";
/// How long a lab may take to go.
const PATIENCE: Duration = Duration::from_secs(15);

pub(super) fn up(args: &UpArgs) -> Result<()> {
    if args.foreground {
        return stay(args);
    }
    args.lab.spec(None)?;
    runtime::make_base()?;
    let log = runtime::log_of(&args.name);
    // The same command again, in a process of its own: a program with threads cannot simply fork.
    let mut child = Command::new(std::env::current_exe()?)
        .args(std::env::args_os().skip(1))
        .arg("--foreground")
        // What goes wrong is passed on from here, where a backtrace tells nothing.
        .env("RUST_BACKTRACE", "0")
        .env_remove("RUST_LIB_BACKTRACE")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(File::create(&log).context("cannot write the log")?)
        // Ctrl-C in this terminal is not meant for it.
        .process_group(0)
        .spawn()?;
    let mut line = String::new();
    if let Some(stdout) = child.stdout.take() {
        BufReader::new(stdout).read_line(&mut line)?;
    }
    let text = fs::read_to_string(&log).unwrap_or_default();
    let _ = fs::remove_file(&log);
    if line.trim() != READY {
        let _ = child.wait();
        let text = text.trim();
        bail!("{}", text.strip_prefix("Error: ").unwrap_or(text));
    }
    Ok(())
}

/// Keeps the lab until it is told to go.
fn stay(args: &UpArgs) -> Result<()> {
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP])?;
    let lab = Lab::up(args.lab.spec(Some(args.name.clone()))?)?;
    let socket = lab.socket();
    let listener = UnixListener::bind(&socket).context("cannot listen for requests")?;
    // Whoever started this in the background reads no more than this line.
    println!("{READY}");
    thread::spawn(move || {
        if signals.forever().next().is_some() {
            // The loop below ends like for any other request.
            let _ = ask(&socket, &Ask::Down);
        }
    });
    serve(&lab, &listener);
    Ok(())
}

pub(super) fn down(name: &str) -> Result<()> {
    ask(&runtime::socket_of(name)?, &Ask::Down)?;
    let deadline = Instant::now() + PATIENCE;
    while runtime::socket_of(name).is_ok() {
        if Instant::now() > deadline {
            bail!("lab '{name}' is still there after {} s", PATIENCE.as_secs());
        }
        thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}
