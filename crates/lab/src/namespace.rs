//! Network namespaces: created, configured, entered and removed with the `ip` command.

use crate::host::HostProfile;
use crate::site::is_host_name;
use crate::{address, trouble};
use anyhow::{Context, Result, bail};
use hikyaku_console::At;
use hikyaku_tun::{Tun, in_namespace};
use rustix::process::{Pid, Signal, kill_process};
use std::ffi::OsStr;
use std::fs;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

/// Prefix of the names of all namespaces of labs.
const NAME_PREFIX: &str = "hikyaku-";
/// Name of the TUN device in each namespace.
pub(crate) const DEVICE: &str = "lab0";

/// A named network namespace. Dropping it ends all programs in it and removes it.
#[derive(Debug)]
pub(crate) struct Namespace {
    name: String,
}

/// The path of namespace `name`, for `setns`.
pub(crate) fn path_of(name: &str) -> PathBuf {
    Path::new("/run/netns").join(name)
}

/// The name of the namespace of a host or gateway of lab `lab`.
pub(crate) fn name_of_host(lab: &str, host: &str) -> String {
    format!("{NAME_PREFIX}{lab}-{host}")
}

/// The name of the namespace of `port` in lab `lab`; port 0 is the client.
pub(crate) fn name_of(lab: &str, port: u32) -> String {
    match port {
        0 => format!("{NAME_PREFIX}{lab}-client"),
        port => format!("{NAME_PREFIX}{lab}-server{port}"),
    }
}

impl Namespace {
    /// Creates an empty namespace with the settings of `host`.
    pub(crate) fn create(name: &str, host: &HostProfile) -> Result<Self> {
        ip(&["netns", "add", name])?;
        let namespace = Self { name: name.to_owned() };
        in_namespace(&namespace.path(), || host.apply_here())
            .with_context(|| format!("cannot prepare namespace {name}"))?;
        Ok(namespace)
    }

    /// Creates the TUN device of `port` with its addresses, and a hosts file with the names of all
    /// `servers`.
    pub(crate) fn connect(&self, port: u32, mtu: u32, servers: u32) -> Result<Tun> {
        let tun = self.device()?;
        let mut script = format!(
            "link set lo up\nlink set {DEVICE} mtu {mtu} txqueuelen 20000\n\
             addr add {}/16 dev {DEVICE}\n",
            address::ipv4(port)
        );
        // IPv6 needs an MTU of at least 1280 bytes.
        if mtu >= 1280 && Path::new("/proc/net/if_inet6").exists() {
            let line = format!("addr add {}/32 dev {DEVICE} nodad\n", address::ipv6(port));
            script.push_str(&line);
        }
        script.push_str(&format!("link set {DEVICE} up\n"));
        self.configure(&script)?;
        self.write_hosts(&hosts_of(servers))?;
        Ok(tun)
    }

    /// Creates the TUN device of the namespace.
    pub(crate) fn device(&self) -> Result<Tun> {
        Tun::create(&self.path(), DEVICE).map_err(explain_tun)
    }

    /// Writes a hosts file, which `ip netns exec` mounts over /etc/hosts. If `/etc` is not
    /// writable, programs have to use addresses.
    pub(crate) fn write_hosts(&self, text: &str) -> Result<()> {
        let directory = Path::new("/etc/netns").join(&self.name);
        match fs::create_dir_all(&directory) {
            Err(error) if error.kind() == ErrorKind::PermissionDenied => return Ok(()),
            result => result?,
        }
        fs::write(directory.join("hosts"), text).at(directory.display())
    }

    /// Whether a program in it listens on TCP or UDP.
    pub(crate) fn has_listener(&self) -> Result<bool> {
        in_namespace(&self.path(), has_listener).context("cannot look at the sockets")
    }

    /// Whether no program runs in it.
    pub(crate) fn is_idle(&self) -> bool {
        processes(&self.name).is_empty()
    }

    /// A command that runs `program` in it.
    pub(crate) fn command(&self, program: impl AsRef<OsStr>) -> Command {
        command(&self.name, program)
    }

    pub(crate) fn path(&self) -> PathBuf {
        path_of(&self.name)
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Runs the lines of `script` as commands of `ip`.
    pub(crate) fn configure(&self, script: &str) -> Result<()> {
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
        remove(&[&self.name]);
    }
}

/// A command that runs `program` in namespace `name`. The process is that of the program, because
/// `ip` executes it in its own place.
pub(crate) fn command(name: &str, program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new("ip");
    command.args(["netns", "exec", name]).arg(program);
    command
}

/// Ends all programs in the namespaces `names` and removes the namespaces. Failures are ignored:
/// either it is gone already, or the next start tries again.
pub(crate) fn remove<S: AsRef<str>>(names: &[S]) {
    end(names);
    for name in names {
        let _ = ip(&["netns", "del", name.as_ref()]);
        let _ = fs::remove_dir_all(Path::new("/etc/netns").join(name.as_ref()));
    }
    // Succeeds only if no other namespace has files there.
    let _ = fs::remove_dir("/etc/netns");
}

/// Ends all programs in the namespaces `names`, in all of them at the same time.
pub(crate) fn end<S: AsRef<str>>(names: &[S]) {
    for (signal, patience) in [(Signal::TERM, 20), (Signal::KILL, 20)] {
        for _ in 0..patience {
            let pids: Vec<Pid> = names.iter().flat_map(|name| processes(name.as_ref())).collect();
            if pids.is_empty() {
                return;
            }
            for pid in pids {
                let _ = kill_process(pid, signal);
            }
            sleep(Duration::from_millis(25));
        }
    }
}

/// The existing namespaces of lab `lab`.
pub(crate) fn existing(lab: &str) -> Vec<String> {
    named_in("/run/netns", lab)
}

/// The namespaces of lab `lab` of which anything is left. After a reboot these are the files in
/// `/etc/netns`.
pub(crate) fn left(lab: &str) -> Vec<String> {
    let mut names = existing(lab);
    names.extend(named_in("/etc/netns", lab));
    names.sort();
    names.dedup();
    names
}

fn named_in(folder: &str, lab: &str) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    names.filter(|name| lab_of(name) == Some(lab)).collect()
}

/// The lab that the namespace `name` belongs to, if any.
fn lab_of(name: &str) -> Option<&str> {
    let (lab, end) = name.strip_prefix(NAME_PREFIX)?.rsplit_once('-')?;
    is_host_name(end).then_some(lab)
}

/// The processes in namespace `name`.
pub(crate) fn processes(name: &str) -> Vec<Pid> {
    let Ok(output) = Command::new("ip").args(["netns", "pids", name]).output() else {
        return Vec::new();
    };
    let text = String::from_utf8_lossy(&output.stdout);
    text.split_whitespace().filter_map(|pid| Pid::from_raw(pid.parse().ok()?)).collect()
}

/// A hosts file with a client and this many servers.
fn hosts_of(servers: u32) -> String {
    let mut text = String::from("127.0.0.1 localhost\n::1 localhost\n");
    for port in 0..=servers {
        let names = match port {
            0 => "client".to_owned(),
            1 => "server server1".to_owned(),
            port => format!("server{port}"),
        };
        text.push_str(&format!("{} {names}\n", address::ipv4(port)));
    }
    text
}

/// Whether a TCP socket listens or a UDP socket is bound in the namespace of this thread.
fn has_listener() -> std::io::Result<bool> {
    let table = |name: &str| fs::read_to_string(format!("/proc/thread-self/net/{name}"));
    for name in ["tcp", "tcp6"] {
        let listens = |line: &str| line.split_whitespace().nth(3) == Some("0A");
        if table(name).unwrap_or_default().lines().skip(1).any(listens) {
            return Ok(true);
        }
    }
    Ok(["udp", "udp6"].iter().any(|name| table(name).unwrap_or_default().lines().count() > 1))
}

fn ip(arguments: &[&str]) -> Result<()> {
    let output = Command::new("ip").args(arguments).output().map_err(explain_ip)?;
    if !output.status.success() {
        let error = String::from_utf8_lossy(&output.stderr);
        bail!("ip {}: {}", arguments.join(" "), error.trim());
    }
    Ok(())
}

/// The error for an `ip` command that could not be started.
pub(crate) fn explain_ip(error: std::io::Error) -> anyhow::Error {
    match error.kind() {
        ErrorKind::NotFound => trouble::with_remedy(
            ErrorKind::NotFound,
            "the lab needs the 'ip' command",
            "the package iproute2 (on Debian: apt install iproute2)",
        ),
        _ => anyhow::Error::new(error).context("cannot run 'ip'"),
    }
}

fn explain_tun(error: std::io::Error) -> anyhow::Error {
    match error.kind() {
        ErrorKind::NotFound => trouble::with_remedy(
            ErrorKind::NotFound,
            "there is no /dev/net/tun, and the lab needs TUN devices",
            "modprobe tun",
        ),
        _ => anyhow::Error::new(error).context("cannot make a TUN device"),
    }
}
