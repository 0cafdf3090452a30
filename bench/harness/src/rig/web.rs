//! A web server and a client with a link between them, for benches of downloads.

use crate::rig::context::Ctx;
use crate::rig::files::Folder;
use crate::rig::line::Line;
use crate::rig::sysctl::{Buffers, DEBIAN};
use anyhow::{Context, Result, ensure};
use hikyaku_lab::{Lab, LabSpec, Side};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::time::Duration;
use xtask::servers::apache;
use xtask::{Running, ensure_present};

/// The lab, the programs at its server's end, and folders on RAM disk. TCP has Debian's settings, the limits of buffers included.
pub(crate) struct Web {
    // Servers end before the lab that they run in.
    servers: Vec<Running>,
    pub(crate) lab: Lab,
    folder: Folder,
    _buffers: Buffers,
}

const START: Duration = Duration::from_secs(20);
const PORT: u16 = 8080;
const SERVER: Side = Side::Server(1);
/// The name of the file that is downloaded.
pub(crate) const NAME: &str = "data";
/// Variables of the environment that would send requests elsewhere.
const PROXIES: [&str; 6] =
    ["http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"];
/// The state TCP_ESTABLISHED in the kernel's table (proc_net_tcp(5)).
const ESTABLISHED: &str = "01";

impl Web {
    /// No server runs in it yet.
    pub(crate) fn up(ctx: &Ctx, spec: LabSpec) -> Result<Self> {
        let buffers = Buffers::limit(DEBIAN)?;
        let folder = Folder::new(ctx.disk()?)?;
        let lab = Lab::up(spec)?;
        Ok(Self { servers: Vec::new(), lab, folder, _buffers: buffers })
    }

    /// Starts Apache, which serves `source` as [`NAME`].
    pub(crate) fn start_apache(&mut self, source: &Path) -> Result<()> {
        ensure_present(apache::NEEDS)?;
        let ip = hikyaku_lab::ipv4(1).into();
        let apache = apache::prepare(&self.folder.join("far"), ip, PORT)?;
        symlink(source, apache.www.join(NAME))?;
        self.start_server(&Line::new(&apache.command[0]).args(&apache.command[1..]))
    }

    /// Starts a server that listens at [`Web::listens`], and waits until it does.
    pub(crate) fn start_server(&mut self, line: &Line) -> Result<()> {
        let mut command = line.clone().behind_the_lab().on(&self.lab, SERVER);
        self.servers.push(Running::start(&mut command)?);
        let is_up = self.lab.wait_for_listener(SERVER, START)?;
        ensure!(is_up, "the web server does not listen; its log: {}", self.log());
        Ok(())
    }

    /// Ends all servers.
    pub(crate) fn stop_servers(&mut self) {
        self.servers.clear();
    }

    fn log(&self) -> String {
        fs::read_to_string(self.folder.join("far/log")).unwrap_or_default()
    }

    /// Address and port of the server.
    pub(crate) fn listens(&self) -> String {
        format!("{}:{PORT}", hikyaku_lab::ipv4(1))
    }

    /// The URL of the file.
    pub(crate) fn url(&self) -> String {
        format!("http://{}/{NAME}", self.listens())
    }

    /// An empty folder of the client's.
    pub(crate) fn near(&self, name: &str) -> Result<PathBuf> {
        let path = self.folder.join("near").join(name);
        fs::create_dir_all(&path).with_context(|| format!("cannot make {}", path.display()))?;
        Ok(path)
    }

    /// A path of the server's.
    pub(crate) fn far(&self, name: &str) -> PathBuf {
        self.folder.join("far").join(name)
    }

    /// Starts a program of the client's, in a home without files.
    pub(crate) fn start(&self, line: &Line) -> Result<Running> {
        let home = self.near("home")?;
        let mut command = line.clone().behind_the_lab().on(&self.lab, Side::Client);
        for name in ["HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME"] {
            command.env(name, &home);
        }
        for name in PROXIES {
            command.env_remove(name);
        }
        Running::start(&mut command)
    }

    /// The number of TCP connections that the client has open.
    pub(crate) fn connections(&self) -> Result<usize> {
        let table =
            self.lab.within(Side::Client, || fs::read_to_string("/proc/thread-self/net/tcp"));
        let text = table.context("cannot read the table of TCP connections")?;
        Ok(established(&text))
    }
}

/// The number of established connections in the kernel's table (proc_net_tcp(5)).
fn established(table: &str) -> usize {
    let states = table.lines().skip(1).filter_map(|line| line.split_whitespace().nth(3));
    states.filter(|state| *state == ESTABLISHED).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_are_counted() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue\n\
                     0: 0100007F:1F90 00000000:0000 0A 00000000:00000000\n\
                     1: 0100007F:1F90 0100007F:C350 01 00000000:00000000\n\
                     2: 0100007F:1F90 0100007F:C351 08 00000000:00000000\n";
        assert_eq!(established(table), 1);
    }
}
