//! Storage servers in a lab, with what our daemon and the programs of others need there.

use crate::rig::files::Folder;
use crate::rig::line::Line;
use anyhow::{Context, Result, ensure};
use hikyaku_lab::{Lab, LabSpec, Side};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};
use xtask::{Running, run};

/// How long a server may take to start, and a short command to end.
const START: Duration = Duration::from_secs(20);
const SSH_PORT: u16 = 2222;
pub(super) const WEB_PORT: u16 = 8000;

/// A lab of many servers and one client, each with folders and homes of its own on RAM disk.
pub(super) struct Site {
    running: Vec<Running>,
    pub(super) lab: Lab,
    folder: Folder,
}

impl Site {
    /// Nothing runs in it yet.
    pub(super) fn up(spec: LabSpec) -> Result<Self> {
        let folder = Folder::new(Path::new("/dev/shm"))?;
        let site = Self { running: Vec::new(), lab: Lab::up(spec)?, folder };
        for number in site.numbers() {
            fs::create_dir_all(site.root(number))?;
        }
        Ok(site)
    }

    /// The numbers of the servers.
    pub(super) fn numbers(&self) -> std::ops::RangeInclusive<u32> {
        1..=self.lab.servers()
    }

    /// What server `number` stores.
    pub(super) fn root(&self, number: u32) -> PathBuf {
        self.folder.join(format!("far/{number}"))
    }

    /// A path of the client's.
    pub(super) fn near(&self, name: &str) -> PathBuf {
        self.folder.join("near").join(name)
    }

    /// A command at a host of the lab, with a home that nobody else has.
    pub(super) fn command(&self, side: Side, line: &Line) -> Result<Command> {
        let home = match side {
            Side::Client => self.folder.join("home"),
            Side::Server(number) => self.folder.join(format!("home-{number}")),
        };
        fs::create_dir_all(&home)?;
        let names = ["HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME"];
        Ok(names.iter().fold(line.on(&self.lab, side), |mut command, name| {
            command.env(name, &home);
            command
        }))
    }

    /// What a short command of the client says.
    fn said(&self, line: &Line) -> Result<String> {
        run(&mut self.command(Side::Client, line)?, START)?.success()
    }

    fn start(&mut self, side: Side, line: &Line) -> Result<()> {
        let running = Running::start(&mut self.command(side, line)?)?;
        self.running.push(running);
        Ok(())
    }

    /// Our daemon on each server, open to the client's key.
    pub(super) fn start_daemons(&mut self, program: &Path) -> Result<()> {
        let keys = self.folder.join("keys");
        self.said(&Line::new(program).words("keys new"))?;
        let line = Line::new(program).words("keys show");
        fs::write(&keys, self.said(&line)?)?;
        for number in self.numbers() {
            let line = Line::new(program).words("serve --writable --root").arg(self.root(number));
            let line = line.words("--listen 0.0.0.0:5209 --authorized-keys").arg(&keys);
            self.start(Side::Server(number), &line)?;
        }
        self.wait(|site, number| {
            let line = Line::new(program).arg("status").arg(format!("hikyaku://{}/", ip(number)));
            Ok(run(&mut site.command(Side::Client, &line)?, START)?.status.success())
        })
    }

    /// A web server on each.
    pub(super) fn start_web(&mut self) -> Result<()> {
        for number in self.numbers() {
            let line = Line::new("python3").words("-m http.server --directory");
            let line = line.arg(self.root(number)).arg(WEB_PORT.to_string());
            self.start(Side::Server(number), &line)?;
        }
        self.wait(|site, number| {
            let url = format!("http://{}:{WEB_PORT}/", ip(number));
            let line = Line::new("curl").words("-sf -o /dev/null").arg(url);
            Ok(run(&mut site.command(Side::Client, &line)?, START)?.status.success())
        })
    }

    /// sshd on each; gives the options of ssh and scp.
    pub(super) fn start_ssh(&mut self) -> Result<String> {
        let at = |name: &str| self.folder.join(name).display().to_string();
        for key in ["host", "user"] {
            let mut keygen = Command::new("ssh-keygen");
            keygen.args(["-q", "-t", "ed25519", "-N", "", "-f"]).arg(at(key));
            run(&mut keygen, START)?.success()?;
        }
        let text = format!(
            "Port {SSH_PORT}\nListenAddress 0.0.0.0\nHostKey {}\nAuthorizedKeysFile {}\nPidFile none\nStrictModes no\n\
             PasswordAuthentication no\nUsePAM no\nUseDNS no\nMaxStartups 100\nSubsystem sftp internal-sftp\n",
            at("host"),
            at("user.pub"),
        );
        fs::write(at("sshd_config"), text)?;
        // The daemon wants it when it is run by root.
        fs::create_dir_all("/run/sshd")?;
        let options = format!(
            "-o Port={SSH_PORT} -o IdentityFile={} -o IdentitiesOnly=yes -o StrictHostKeyChecking=accept-new -o \
             UserKnownHostsFile={} -o LogLevel=ERROR",
            at("user"),
            at("known_hosts"),
        );
        let line = Line::new("/usr/sbin/sshd").words("-D -e -f").arg(at("sshd_config"));
        for number in self.numbers() {
            self.start(Side::Server(number), &line)?;
        }
        let words = options.clone();
        self.wait(|site, number| {
            let line = Line::new("ssh").words(&words).arg(ip(number)).arg("true");
            Ok(run(&mut site.command(Side::Client, &line)?, START)?.status.success())
        })?;
        Ok(options)
    }

    /// Waits until all servers answer.
    fn wait(&self, mut answers: impl FnMut(&Self, u32) -> Result<bool>) -> Result<()> {
        let began = Instant::now();
        for number in self.numbers() {
            while !answers(self, number).with_context(|| format!("server {number}"))? {
                ensure!(began.elapsed() < START, "server {number} does not answer");
                sleep(Duration::from_millis(100));
            }
        }
        Ok(())
    }
}

/// The address of a server.
pub(super) fn ip(number: u32) -> String {
    hikyaku_lab::ipv4(number).to_string()
}
