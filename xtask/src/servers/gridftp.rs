//! Debian's globus-gridftp-server, for anonymous clients and for those with a certificate.

use super::authority::{Keys, USER};
use super::{Processes, free_port, wait_for_port};
use crate::packages::Need;
use anyhow::{Context, Result, ensure};
use std::fs;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The program.
const PROGRAM: &str = "globus-gridftp-server";
/// What has to be there.
pub const NEEDS: &[Need] =
    &[Need::new(PROGRAM, "globus-gridftp-server-progs"), Need::new("openssl", "openssl")];

/// A server that was started. It runs until [`down`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GridFtp {
    /// What it serves, for reading and writing.
    pub data: PathBuf,
    /// The URL of that directory for anonymous clients, without a slash at its end.
    pub url: String,
    /// The same for clients with a certificate.
    pub gsi_url: String,
    /// The keys of such clients.
    pub keys: Keys,
}

/// Starts a server in `folder`, which is made. It serves `folder/data` at `ip`, on any free port.
///
/// # Errors
/// The program is not there, or does not start; its log is in `folder/log`.
pub fn up(folder: &Path, ip: IpAddr) -> Result<GridFtp> {
    ensure!(!folder.join("pid").exists(), "a server is up in {} already", folder.display());
    let port = free_port(ip)?;
    let (server, mut command) = prepare(folder, ip, port)?;
    let status = command.args(["-detach", "-pidfile"]).arg(folder.join("pid")).status();
    let status = status.context("cannot start globus-gridftp-server")?;
    ensure!(status.success(), "globus-gridftp-server failed: {status}");
    wait_for_port(ip, port).with_context(|| format!("see {}", folder.join("log").display()))?;
    Processes::of(folder).record(&folder.join("pid"))?;
    Ok(server)
}

/// Starts a striped server in `folder`, which is made: so many data nodes at 127.0.0.2 and on, and one at 127.0.0.1 to which
/// clients connect. It serves anonymous clients only.
///
/// # Errors
/// As [`up`].
pub fn up_striped(folder: &Path, nodes: u8) -> Result<GridFtp> {
    let front = IpAddr::from([127, 0, 0, 1]);
    let port = free_port(front)?;
    let (server, _) = prepare(folder, front, port)?;
    let folder = folder.canonicalize()?;
    let start = |name: &str, (ip, port): (IpAddr, u16), more: &str| -> Result<()> {
        let text = configuration(&folder, &server.keys, ip, port);
        // With a certificate the nodes would demand one of each other.
        let lines = text.lines().filter(|line| !line.starts_with("$X509_USER"));
        let text: String = lines.map(|line| format!("{line}\n")).collect();
        let (file, pid) = (folder.join(format!("{name}.conf")), folder.join(name));
        fs::write(&file, format!("{text}{more}\n"))?;
        let mut command = Command::new(program());
        command.arg("-c").arg(&file).args(["-detach", "-pidfile"]).arg(&pid);
        let status = command.status().context("cannot start globus-gridftp-server")?;
        ensure!(status.success(), "globus-gridftp-server failed: {status}");
        wait_for_port(ip, port)?;
        Processes::of(&folder).record(&pid)
    };
    let mut remote = Vec::new();
    for number in 0..nodes {
        let ip = IpAddr::from([127, 0, 0, 2 + number]);
        let port = free_port(ip)?;
        start(&format!("node-{number}"), (ip, port), "data_node 1")?;
        remote.push(format!("{ip}:{port}"));
    }
    start("pid", (front, port), &format!("remote_nodes {}", remote.join(",")))?;
    Ok(server)
}

/// What a server in `folder` will serve at `ip` and `port`, and the command that runs it in the foreground: for another
/// network namespace than this one.
///
/// # Errors
/// The folder cannot be made.
pub fn prepare(folder: &Path, ip: IpAddr, port: u16) -> Result<(GridFtp, Command)> {
    fs::create_dir_all(folder.join("data"))
        .with_context(|| format!("cannot make {}", folder.display()))?;
    let folder = folder.canonicalize()?;
    let (data, file) = (folder.join("data"), folder.join("server.conf"));
    let keys = Keys::make(&folder.join("keys"), ip)?;
    fs::write(&file, configuration(&folder, &keys, ip, port))?;
    fs::write(folder.join("gridmap"), format!("\"{USER}\" {}\n", user()?))?;
    let mut command = Command::new(program());
    command.arg("-c").arg(&file);
    let url = |scheme: &str| format!("{scheme}://{ip}:{port}{}", data.display());
    let (url, gsi_url) = (url("ftp"), url("gsiftp"));
    Ok((GridFtp { data, url, gsi_url, keys }, command))
}

/// Ends the server of `folder`. Its files stay.
///
/// # Errors
/// The server does not end.
pub fn down(folder: &Path) -> Result<()> {
    Processes::of(folder).end()?;
    let pid = folder.join("pid");
    if !pid.exists() {
        return Ok(());
    }
    fs::remove_file(&pid).with_context(|| format!("cannot remove {}", pid.display()))
}

/// Debian puts it where a plain user's path does not lead.
fn program() -> PathBuf {
    let outside = Path::new("/usr/sbin").join(PROGRAM);
    if outside.is_file() { outside } else { PathBuf::from(PROGRAM) }
}

/// The name of the user who runs this: the one whom the server serves.
fn user() -> Result<String> {
    let output = Command::new("id").arg("-un").output().context("cannot start id")?;
    Ok(String::from_utf8(output.stdout)?.trim().to_owned())
}

/// Everything is said, so that the system's own configuration has no effect.
fn configuration(folder: &Path, keys: &Keys, ip: IpAddr, port: u16) -> String {
    let data = folder.join("data");
    let mut lines = vec![
        format!("control_interface {ip}"),
        format!("data_interface {ip}"),
        format!("hostname {ip}"),
        format!("port {port}"),
        format!("log_single {}", folder.join("log").display()),
        "log_level ERROR,WARN,INFO".to_owned(),
        "allow_anonymous 1".to_owned(),
        format!("home_dir {}", data.display()),
        format!("restrict_paths {}", data.display()),
        // The library resolves the host's own name otherwise, which a network namespace need not be able to.
        format!("$GLOBUS_HOSTNAME {ip}"),
        format!("$X509_CERT_DIR {}", keys.authorities.display()),
        format!("$X509_USER_CERT {}", keys.host.0.display()),
        format!("$X509_USER_KEY {}", keys.host.1.display()),
        format!("$GRIDMAP {}", folder.join("gridmap").display()),
    ];
    if crate::is_root() {
        // Root serves as root: a test's directory is root's.
        lines.extend(["anonymous_user root".to_owned(), "allow_root 1".to_owned()]);
    }
    lines.push(String::new());
    lines.join("\n")
}
