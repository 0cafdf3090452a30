//! Two hosts on this machine: namespaces in which `node1`, `host` and `laptop` are names of loopback addresses, an ssh
//! server listens at `node1`, and each host has a home directory of its own.

use crate::common::{scratch, skipped, wait_until};
use std::fs::{self, File};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Host {
    /// Where the reader types most commands.
    Laptop,
    /// The other host.
    Node1,
}

impl Host {
    const fn name(self) -> &'static str {
        match self {
            Self::Laptop => "laptop",
            Self::Node1 => "node1",
        }
    }
}

pub(super) struct Hosts {
    folder: PathBuf,
    /// The ssh server, whose namespaces all commands enter.
    sshd: Child,
    servers: Vec<Child>,
    /// Number of the file that commands print to.
    prints: usize,
}

const PROGRAM: &str = env!("CARGO_BIN_EXE_hikyaku");
/// Settings of the ssh client of `laptop`, in place of the user's own.
const CLIENT: &str = "IdentitiesOnly yes\nStrictHostKeyChecking accept-new\nLogLevel ERROR\n";
const SERVER: &str = "Port 22\nPort 2222\nListenAddress 127.0.0.2\nPidFile none\nStrictModes no\nUsePAM no\n\
    PasswordAuthentication no\nSubsystem sftp internal-sftp\n";
const NAMES: &str = "127.0.0.1 localhost laptop\n\
    127.0.0.2 node1 node2 node3 host jump a.example.org b.example.org\n";
const TOOLS: &str = "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin";

impl Hosts {
    /// `None` without root, which namespaces and an ssh server with other home directories need.
    pub(super) fn start(name: &str) -> Option<Self> {
        if !xtask::is_root() {
            skipped(name, "it needs root");
            return None;
        }
        let folder = scratch(name);
        let at = |name: &str| folder.join(name).display().to_string();
        for part in ["laptop/bin", "node1", "ssh"] {
            fs::create_dir_all(folder.join(part)).unwrap();
        }
        for key in ["ssh/host", "ssh/user"] {
            let made = Command::new("ssh-keygen")
                .args(["-q", "-t", "ed25519", "-N", "", "-f", &at(key)])
                .status();
            assert!(made.unwrap().success());
        }
        let (user, known) = (at("ssh/user"), at("ssh/known_hosts"));
        let client = format!("{CLIENT}IdentityFile {user}\nUserKnownHostsFile {known}\n");
        fs::write(at("ssh/client"), client).unwrap();
        let (key, list) = (at("ssh/host"), at("ssh/user.pub"));
        let server = format!("{SERVER}HostKey {key}\nAuthorizedKeysFile {list}\n");
        fs::write(at("ssh/server"), server).unwrap();
        fs::write(at("ssh/hosts"), NAMES).unwrap();
        // Logins of root, and of `user` in README, have the home directory of node1.
        let users = fs::read_to_string("/etc/passwd").unwrap();
        let mut users: String = users
            .lines()
            .filter(|line| !line.starts_with("root:"))
            .map(|line| format!("{line}\n"))
            .collect();
        for name in ["root", "user"] {
            users = format!("{name}:x:0:0::{}:/bin/sh\n{users}", at("node1"));
        }
        fs::write(at("ssh/passwd"), users).unwrap();
        let ssh = at("laptop/bin/ssh");
        fs::write(&ssh, format!("#!/bin/sh\nexec /usr/bin/ssh -F {} \"$@\"\n", at("ssh/client")))
            .unwrap();
        fs::set_permissions(&ssh, fs::Permissions::from_mode(0o755)).unwrap();
        symlink(PROGRAM, folder.join("laptop/bin/hikyaku")).unwrap();
        // sshd needs this directory when it is run by root.
        let _ = fs::create_dir_all("/run/sshd");
        let script = "ip link set lo up && hostname node1 && mount --bind \"$1/hosts\" /etc/hosts && \
            mount --bind \"$1/passwd\" /etc/passwd && exec /usr/sbin/sshd -D -e -f \"$1/server\"";
        let log = folder.join("ssh/log");
        let sshd = Command::new("unshare")
            .args(["--mount", "--net", "--uts", "sh", "-c", script, "sh", &at("ssh")])
            .stdin(Stdio::null())
            .stderr(File::create(&log).unwrap())
            .spawn()
            .unwrap();
        let hosts = Self { folder, sshd, servers: Vec::new(), prints: 0 };
        wait_until("the ssh server listens", || {
            fs::read_to_string(&log).unwrap().contains("Server listening on")
        });
        Some(hosts)
    }

    /// A path in a home directory: `laptop/NAME` or `node1/NAME`.
    pub(super) fn at(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Installs hikyaku on node1.
    pub(super) fn install(&self) {
        fs::create_dir_all(self.at("node1/.local/bin")).unwrap();
        symlink(PROGRAM, self.at("node1/.local/bin/hikyaku")).unwrap();
    }

    /// The network namespace of both hosts, for setns(2).
    pub(super) fn network(&self) -> PathBuf {
        PathBuf::from(format!("/proc/{}/ns/net", self.sshd.id()))
    }

    /// Makes a directory with some files.
    pub(super) fn files(&self, name: &str) {
        let folder = self.at(name);
        fs::create_dir_all(folder.join("deep")).unwrap();
        for (name, size) in [("f1.dat", 3_000_000), ("f2.dat", 20), ("deep/f3.dat", 0)] {
            let bytes: Vec<u8> = (0..size).map(|at: u32| (at / 7) as u8).collect();
            fs::write(folder.join(name), bytes).unwrap();
        }
    }

    /// Begins a new file for the output of commands.
    pub(super) fn print_anew(&mut self) {
        self.prints += 1;
    }

    /// The output since the last call of `print_anew`, with `~` for the home directory of node1.
    pub(super) fn printed(&self) -> String {
        let text = fs::read(self.print()).unwrap_or_default();
        let home = self.at(Host::Node1.name()).display().to_string();
        String::from_utf8_lossy(&text).replace(&home, "~")
    }

    fn print(&self) -> PathBuf {
        self.at(&format!("printed{}", self.prints))
    }

    /// Runs a line in the home directory of `host`. If it fails, how it ended.
    pub(super) fn run(&self, host: Host, line: &str) -> Result<(), ExitStatus> {
        let status = self.shell(host, line).status().unwrap();
        if status.success() { Ok(()) } else { Err(status) }
    }

    /// Starts a server on `host`, and waits until it prints `text`. If it ends before that, how.
    pub(super) fn serve(&mut self, host: Host, line: &str, text: &str) -> Result<(), ExitStatus> {
        let mut server = self.shell(host, &format!("exec {line}")).spawn().unwrap();
        let mut ended = None;
        wait_until("the server serves or ends", || {
            ended = server.try_wait().unwrap();
            ended.is_some() || self.printed().contains(text)
        });
        self.servers.push(server);
        ended.map_or(Ok(()), Err)
    }

    /// Stops all servers. Otherwise they run until the end of the test.
    pub(super) fn stop_servers(&mut self) {
        for mut server in self.servers.drain(..) {
            let _ = server.kill();
            let _ = server.wait();
        }
    }

    fn shell(&self, host: Host, line: &str) -> Command {
        let home = self.at(host.name());
        let path = format!("{0}/bin:{0}/.local/bin:{TOOLS}", home.display());
        let mut command = Command::new("nsenter");
        command.args(["--mount", "--net", "--uts", "--target", &self.sshd.id().to_string()]);
        // A directory that nsenter(1) opens is one of this process's namespace, where mounts of the test are not seen.
        command.args(["sh", "-c", &format!("cd \"$HOME\" && {line}")]);
        command.env_clear().env("HOME", &home).env("PATH", path).stdin(Stdio::null());
        // Both streams go to one file, so that lines keep their order and a mount in the background holds no pipe open.
        let print = File::options().append(true).create(true).open(self.print()).unwrap();
        command.stdout(print.try_clone().unwrap()).stderr(print);
        command
    }
}

impl Drop for Hosts {
    fn drop(&mut self) {
        self.stop_servers();
        let _ = self.sshd.kill();
        let _ = self.sshd.wait();
        let _ = fs::remove_dir_all(&self.folder);
    }
}
