//! The network namespaces: made, configured, entered and removed with the `ip` command.

use crate::address;
use crate::host::HostProfile;
use anyhow::{Context, Result, bail};
use hikyaku_tun::{Tun, in_namespace};
use rustix::process::{Pid, Signal, kill_process};
use std::ffi::OsStr;
use std::fs;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

/// What all our namespaces' names begin with.
const PREFIX: &str = "hikyaku-";
/// The name of the device in each.
pub(crate) const DEVICE: &str = "lab0";

/// A named network namespace; removed, with all that runs in it, when this is dropped.
#[derive(Debug)]
pub(crate) struct Namespace {
    name: String,
}

/// The name of the namespace of `port` (0 is the client) in lab `lab`.
pub(crate) fn name_of(lab: &str, port: u32) -> String {
    match port {
        0 => format!("{PREFIX}{lab}-client"),
        port => format!("{PREFIX}{lab}-server{port}"),
    }
}

impl Namespace {
    /// Makes an empty namespace with the settings of `host`.
    pub(crate) fn create(name: &str, host: &HostProfile) -> Result<Self> {
        ip(&["netns", "add", name])?;
        let namespace = Self { name: name.to_owned() };
        in_namespace(&namespace.path(), || host.apply_here())
            .with_context(|| format!("cannot prepare namespace {name}"))?;
        Ok(namespace)
    }

    /// Gives the namespace its device, with the addresses of `port`, and the names of all
    /// `servers`.
    pub(crate) fn connect(&self, port: u32, mtu: u32, servers: u32) -> Result<Tun> {
        let tun = Tun::create(&self.path(), DEVICE).map_err(explain_tun)?;
        let mut script = format!(
            "link set lo up\nlink set {DEVICE} mtu {mtu} txqueuelen 20000\n\
             addr add {}/16 dev {DEVICE}\n",
            address::ipv4(port)
        );
        // IPv6 does not exist on links that cannot carry 1280 bytes.
        if mtu >= 1280 && Path::new("/proc/net/if_inet6").exists() {
            let line = format!("addr add {}/32 dev {DEVICE} nodad\n", address::ipv6(port));
            script.push_str(&line);
        }
        script.push_str(&format!("link set {DEVICE} up\n"));
        self.configure(&script)?;
        write_hosts(&self.name, servers)?;
        Ok(tun)
    }

    pub(crate) fn path(&self) -> PathBuf {
        Path::new("/run/netns").join(&self.name)
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    fn configure(&self, script: &str) -> Result<()> {
        let mut child = Command::new("ip")
            .args(["-n", &self.name, "-batch", "-"])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(explain_ip)?;
        if let Some(mut stdin) = child.stdin.take() {
            stdin.write_all(script.as_bytes())?;
        }
        let output = child.wait_with_output()?;
        if !output.status.success() {
            bail!("ip -batch: {}", String::from_utf8_lossy(&output.stderr).trim());
        }
        Ok(())
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        remove(&self.name);
    }
}

/// `program`, to be run in the namespace `name`. The process is the program's own: `ip` becomes it.
pub(crate) fn command(name: &str, program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new("ip");
    command.args(["netns", "exec", name]).arg(program);
    command
}

/// Ends what runs in the namespace `name`, and removes it. What cannot be removed is left: it was
/// gone already, or a later start tries again.
pub(crate) fn remove(name: &str) {
    for (signal, patience) in [(Signal::TERM, 20), (Signal::KILL, 20)] {
        for _ in 0..patience {
            let pids = processes(name);
            if pids.is_empty() {
                break;
            }
            for pid in pids {
                let _ = kill_process(pid, signal);
            }
            sleep(Duration::from_millis(25));
        }
    }
    let _ = ip(&["netns", "del", name]);
    let _ = fs::remove_dir_all(Path::new("/etc/netns").join(name));
    // Only succeeds when no other namespace has files there.
    let _ = fs::remove_dir("/etc/netns");
}

/// The namespaces of lab `lab` that exist.
pub(crate) fn existing(lab: &str) -> Vec<String> {
    let entries = fs::read_dir("/run/netns").into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    names.filter(|name| lab_of(name) == Some(lab)).collect()
}

/// The lab to which the namespace `name` belongs, if to any.
fn lab_of(name: &str) -> Option<&str> {
    let (lab, end) = name.strip_prefix(PREFIX)?.rsplit_once('-')?;
    (end == "client" || end.starts_with("server")).then_some(lab)
}

fn processes(name: &str) -> Vec<Pid> {
    let Ok(output) = Command::new("ip").args(["netns", "pids", name]).output() else {
        return Vec::new();
    };
    let text = String::from_utf8_lossy(&output.stdout);
    text.split_whitespace().filter_map(|pid| Pid::from_raw(pid.parse().ok()?)).collect()
}

/// Names for the addresses, which `ip netns exec` puts in place of the host's. Where `/etc` may not be
/// written to, addresses have to do.
fn write_hosts(name: &str, servers: u32) -> Result<()> {
    let directory = Path::new("/etc/netns").join(name);
    match fs::create_dir_all(&directory) {
        Err(error) if error.kind() == ErrorKind::PermissionDenied => return Ok(()),
        result => result?,
    }
    let mut text = String::from("127.0.0.1 localhost\n::1 localhost\n");
    for port in 0..=servers {
        let names = match port {
            0 => "client".to_owned(),
            1 => "server server1".to_owned(),
            port => format!("server{port}"),
        };
        text.push_str(&format!("{} {names}\n", address::ipv4(port)));
    }
    fs::write(directory.join("hosts"), text)
        .with_context(|| format!("cannot write {}", directory.display()))
}

fn ip(arguments: &[&str]) -> Result<()> {
    let output = Command::new("ip").args(arguments).output().map_err(explain_ip)?;
    if !output.status.success() {
        let error = String::from_utf8_lossy(&output.stderr);
        bail!("ip {}: {}", arguments.join(" "), error.trim());
    }
    Ok(())
}

fn explain_ip(error: std::io::Error) -> anyhow::Error {
    if error.kind() == ErrorKind::NotFound {
        anyhow::anyhow!("the lab needs the 'ip' command (on Debian: apt install iproute2)")
    } else {
        anyhow::Error::new(error).context("cannot run 'ip'")
    }
}

fn explain_tun(error: std::io::Error) -> anyhow::Error {
    let context = match error.kind() {
        ErrorKind::NotFound => "there is no /dev/net/tun: the lab needs TUN (try 'modprobe tun')",
        _ => "cannot make a TUN device",
    };
    anyhow::Error::new(error).context(context)
}
