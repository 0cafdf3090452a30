//! Servers of other projects, started on loopback for tests: `cargo xtask servers NAME up DIR` and `down DIR`.
//!
//! Each server has a file here, with `up` and `down`. All that it needs and leaves is in its directory.

pub mod authority;
pub mod gridftp;

use anyhow::{Context, Result, bail};
use std::fs;
use std::net::{IpAddr, TcpListener, TcpStream};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

/// How often a start or an end is looked for.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// A free TCP port.
fn free_port(ip: IpAddr) -> Result<u16> {
    let listener = TcpListener::bind((ip, 0)).with_context(|| format!("no free port at {ip}"))?;
    Ok(listener.local_addr()?.port())
}

/// Waits until something listens.
fn wait_for_port(ip: IpAddr, port: u16, limit: Duration) -> Result<()> {
    let until = Instant::now() + limit;
    while TcpStream::connect((ip, port)).is_err() {
        if Instant::now() >= until {
            bail!("nothing listens on {ip} port {port} after {} s", limit.as_secs());
        }
        thread::sleep(LOOK_EVERY);
    }
    Ok(())
}

/// Ends the process whose id is in `file`, if it still runs the program `name`, and waits for it.
fn end_process(file: &Path, name: &str, limit: Duration) -> Result<()> {
    let Ok(text) = fs::read_to_string(file) else { return Ok(()) };
    let id: i32 = text.trim().parse().with_context(|| format!("{}: no id", file.display()))?;
    let runs = || {
        let command = fs::read_to_string(format!("/proc/{id}/comm")).unwrap_or_default();
        // The kernel keeps 15 bytes of a name.
        !command.is_empty() && name.starts_with(command.trim_end())
    };
    let until = Instant::now() + limit;
    let pid = rustix::process::Pid::from_raw(id).context("no process has this id")?;
    if runs() {
        rustix::process::kill_process(pid, rustix::process::Signal::TERM)?;
    }
    while runs() {
        if Instant::now() >= until {
            bail!("{name} (process {id}) does not end");
        }
        thread::sleep(LOOK_EVERY);
    }
    fs::remove_file(file).with_context(|| format!("cannot remove {}", file.display()))
}
