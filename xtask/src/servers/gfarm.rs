//! A Gfarm file system: one gfmd and several gfsd, each gfsd at a loopback address of its own.
//!
//! Metadata live in the memory of gfmd, so that each start begins with an empty file system. The user who starts it is its
//! only user and its administrator.

use super::{PATIENCE, Processes, open, until};
use crate::{Need, run};
use anyhow::{Context, Result, ensure};
use rustix::process::Signal;
use std::fs;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// The programs, and Debian's packages of them.
pub const NEEDS: &[Need] =
    &[Need::new("gfmd", "gfmd"), Need::new("gfsd", "gfsd"), Need::new("gfls", "gfarm-client")];

/// How often a start is tried.
const TRIES: usize = 3;
/// One of Gfarm's own programs ends within this time. It waits 35 s for a node whose answer about its load was lost
/// (`schedule_rpc_timeout` of gfarm2.conf).
const TOOL_TIME_MAX: Duration = Duration::from_secs(90);

/// A Gfarm file system that runs, or did.
#[derive(Debug)]
pub struct Gfarm {
    dir: PathBuf,
    nodes: Vec<Ipv4Addr>,
    gfmd_port: u16,
    port: u16,
}

/// What a file system is to be.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Plan {
    /// How many gfsd, 1 to 250. Default: 4.
    pub nodes: u8,
    /// Lines of gfarm2.conf(5) for servers and clients, which go before those that are set here.
    pub lines: Vec<String>,
}

impl Default for Plan {
    fn default() -> Self {
        Self { nodes: 4, lines: Vec::new() }
    }
}

impl Gfarm {
    /// Starts the servers in `dir`. Returns when all of them answer.
    ///
    /// # Errors
    ///
    /// A program is missing or fails; what was started is ended again.
    pub fn up(dir: &Path, plan: &Plan) -> Result<Self> {
        ensure!((1..=250).contains(&plan.nodes), "1 to 250 nodes are possible");
        let dir = open(dir, "gfarm")?;
        // A port that was free may be taken by another process before gfmd has it, such as the gfmd of another test.
        let mut up = Self::try_up(&dir, plan);
        for _ in 1..TRIES {
            if up.is_ok() {
                break;
            }
            up = Self::try_up(&dir, plan);
        }
        up
    }

    fn try_up(dir: &Path, plan: &Plan) -> Result<Self> {
        let (gfmd_port, port) = (free_port(Ipv4Addr::LOCALHOST)?, free_port(Ipv4Addr::LOCALHOST)?);
        // Two file systems on one machine have other addresses: gfsd is known to gfmd by its address, and keeps files in
        // /tmp that are named after it.
        let [high, low] = gfmd_port.to_be_bytes();
        let address = |n| Ipv4Addr::new(127, high.max(1), low, n + 2);
        let nodes = (0..plan.nodes).map(address).collect();
        let this = Self { dir: dir.to_owned(), nodes, gfmd_port, port };
        let begun = this.configure(plan).and_then(|()| this.start());
        if let Err(error) = begun {
            // The first error is the one to tell.
            let _ = this.down();
            return Err(error);
        }
        Ok(this)
    }

    /// The file system that was started in `dir` by an earlier call.
    ///
    /// # Errors
    ///
    /// There was none.
    pub fn at(dir: &Path) -> Result<Self> {
        let nodes = fs::read_to_string(dir.join("nodes"));
        let nodes = nodes.with_context(|| format!("{} has no Gfarm", dir.display()))?;
        let mut lines = nodes.lines();
        let mut port = || lines.next().and_then(|line| line.parse().ok()).context("no port");
        let (gfmd_port, port) = (port()?, port()?);
        let nodes = lines.map(str::parse).collect::<Result<_, _>>()?;
        Ok(Self { dir: dir.canonicalize()?, nodes, gfmd_port, port })
    }

    /// Ends the servers. The files stay.
    ///
    /// # Errors
    ///
    /// A process cannot be ended.
    pub fn down(&self) -> Result<()> {
        Processes::of(&self.dir).end()?;
        for node in &self.nodes {
            let port = self.port;
            // gfsd removes them itself unless it was killed.
            let _ = fs::remove_dir_all(format!("/tmp/.gfarm-gfsd{node}-{port}"));
            let _ = fs::remove_file(format!("/tmp/gfsd-readonly-{node}_{port}"));
        }
        Ok(())
    }

    /// The configuration of clients: the value of `GFARM_CONFIG_FILE`.
    pub fn config(&self) -> PathBuf {
        self.dir.join("gfarm2.conf")
    }

    /// The addresses of the nodes, by which gfmd names them.
    pub fn nodes(&self) -> &[Ipv4Addr] {
        &self.nodes
    }

    /// The port of all gfsd.
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// Runs one of Gfarm's own programs, and returns what it prints.
    ///
    /// # Errors
    ///
    /// It fails.
    pub fn run(&self, program: &str, arguments: &[&str]) -> Result<String> {
        let mut command = Command::new(program);
        command.args(arguments).env("GFARM_CONFIG_FILE", self.config());
        let done = run(&mut command, TOOL_TIME_MAX).and_then(|finished| finished.success());
        done.with_context(|| format!("{program} {}", arguments.join(" ")))
    }

    /// Sends a signal to the gfsd of a node: STOP freezes it, CONT lets it go on, KILL ends it.
    ///
    /// # Errors
    ///
    /// It has ended.
    pub fn signal(&self, node: usize, signal: Signal) -> Result<()> {
        // gfmd is the first.
        Processes::of(&self.dir).signal(node + 1, signal)
    }

    /// The port of gfmd, on 127.0.0.1.
    pub const fn gfmd_port(&self) -> u16 {
        self.gfmd_port
    }

    /// Ends gfmd at once, and returns when its port refuses connections.
    ///
    /// # Errors
    ///
    /// It has ended.
    pub fn kill_gfmd(&self) -> Result<()> {
        Processes::of(&self.dir).signal(0, Signal::KILL)?;
        // The kernel ends the threads of a process one after the other, and the port with the last.
        let connect = || TcpStream::connect((Ipv4Addr::LOCALHOST, self.gfmd_port));
        until(|| connect().err()).context("gfmd does not end").map(drop)
    }

    fn configure(&self, plan: &Plan) -> Result<()> {
        let dir = self.dir.display();
        let (user, gfmd_port) = (self.user()?, self.gfmd_port);
        let mut lines = plan.lines.clone();
        let own = format!(
            "metadb_server_host 127.0.0.1\n\
             metadb_server_port {gfmd_port}\n\
             auth enable sharedsecret *\n\
             shared_key_file {dir}/shared_key\n\
             minimum_free_disk_space 1M\n\
             metadb_server_heartbeat_interval 5\n\
             schedule_idle_load_thresh 1000\n\
             schedule_busy_load_thresh 1000\n"
        );
        lines.push(own);
        let common = lines.join("\n");
        let server = format!("{common}local_user_map {dir}/users\n");
        fs::write(self.dir.join("users"), format!("_gfarmfs {user}\n_gfarmmd {user}\n"))?;
        fs::write(self.config(), &common)?;
        fs::write(self.dir.join("gfsd.conf"), &server)?;
        let gfmd = format!(
            "{server}admin_user {user}\nmetadb_replication disable\n\
             metadb_server_max_descriptors 4096\n"
        );
        fs::write(self.dir.join("gfmd.conf"), gfmd)?;
        let nodes: String = self.nodes.iter().map(|node| format!("{node}\n")).collect();
        fs::write(self.dir.join("nodes"), format!("{gfmd_port}\n{}\n{nodes}", self.port))?;
        // A key for ten years: it is thrown away with the directory.
        self.run("gfkey", &["-f", "-p", "315360000"]).map(drop)
    }

    fn start(&self) -> Result<()> {
        self.serve("gfmd", "gfmd", &["-f", &self.path("gfmd.conf")])?;
        let answers = until(|| self.run("gfuser", &[]).ok());
        answers.with_context(|| format!("gfmd does not answer: {}", self.log("gfmd")))?;
        self.run("gfgroup", &["-m", "gfarmroot", &self.user()?])?;
        for (n, node) in self.nodes.iter().enumerate() {
            let (node, port, name) = (node.to_string(), self.port.to_string(), format!("fs{n}"));
            self.run("gfhost", &["-c", "-a", "linux", "-p", &port, "-n", "1", &node])?;
            let spool = self.dir.join(&name);
            // gfmd knows no file of an earlier start.
            let _ = fs::remove_dir_all(&spool);
            fs::create_dir(&spool)?;
            let (config, spool) = (self.path("gfsd.conf"), self.path(&name));
            let arguments = ["-f", &config, "-h", &node, "-l", &node, "-r", &spool];
            self.serve("gfsd", &name, &arguments)?;
        }
        let up = || {
            let text = self.run("gfdf", &[]).ok()?;
            let known = |node: &Ipv4Addr| text.lines().any(|line| ends_in(line, node));
            self.nodes.iter().all(known).then_some(())
        };
        until(up).with_context(|| format!("not all nodes are up: {}", self.log("gfmd")))
    }

    /// Starts a server that goes into the background by itself.
    fn serve(&self, program: &str, name: &str, arguments: &[&str]) -> Result<()> {
        let (pid, log) = (self.path(&format!("{name}.pid")), self.path(&format!("{name}.log")));
        let _ = fs::remove_file(&pid);
        let arguments = [arguments, &["-P", &pid, "-F", &log]].concat();
        let sbin = format!("/usr/sbin/{program}");
        let program = if Path::new(&sbin).exists() { &sbin } else { program };
        self.run(program, &arguments).with_context(|| self.log(name))?;
        let recorded = Processes::of(&self.dir).record(Path::new(&pid));
        recorded.with_context(|| self.log(name))
    }

    fn path(&self, name: &str) -> String {
        self.dir.join(name).to_string_lossy().into_owned()
    }

    /// The end of a server's log.
    fn log(&self, name: &str) -> String {
        let text = fs::read_to_string(self.dir.join(format!("{name}.log"))).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(5)..].join("\n")
    }

    fn user(&self) -> Result<String> {
        let name = run(Command::new("id").arg("-un"), PATIENCE)?.success()?;
        Ok(name.trim().to_owned())
    }
}

/// The last word of a line of gfdf is the node's name.
fn ends_in(line: &str, node: &Ipv4Addr) -> bool {
    line.split_whitespace().next_back() == Some(&node.to_string())
}

/// A port that nobody listens at. Another process may take it before it is used.
fn free_port(address: Ipv4Addr) -> Result<u16> {
    Ok(TcpListener::bind((address, 0))?.local_addr()?.port())
}
