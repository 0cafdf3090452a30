//! Helpers for tests of the program: an OpenSSH server on loopback for the user who runs the test,
//! and a server of `hikyaku perf`.

pub(crate) mod daemon;
pub(crate) mod dressed;
pub(crate) mod hostile;
pub(crate) mod moto;
pub(crate) mod perf;
pub(crate) mod process;
pub(crate) mod proxy;
pub(crate) mod slow_disk;
pub(crate) mod web;

use std::fs;
use std::io::Write;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// A path for a test's files that no other test of this run has. Nothing is made there.
pub(crate) fn scratch(name: &str) -> PathBuf {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    std::env::temp_dir().join(format!("hikyaku-{name}-{}-{number}", std::process::id()))
}

/// Tells of something that a test cannot do on this machine, also where the test passes otherwise and what it prints is not
/// shown.
pub(crate) fn skipped(what: &str, why: &str) {
    let _ = writeln!(std::io::stderr().lock(), "SKIPPED: {what}: {why}");
}

/// A folder for GridFTP servers, which work as the user, or as nobody in particular. `None` without their package.
pub(crate) fn gridftp_folder(name: &str) -> Option<PathBuf> {
    if !xtask::on_path("globus-gridftp-server") {
        eprintln!("\n*** SKIPPED, because globus-gridftp-server is not installed ***\n");
        return None;
    }
    let folder = scratch(name);
    fs::create_dir_all(&folder).unwrap();
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)).unwrap();
    Some(folder)
}

/// An ssh server and a scratch directory, both removed on drop.
pub(crate) struct Sshd {
    scratch: PathBuf,
    child: Child,
    /// The network namespace of the near end, if it has one.
    near: Option<String>,
}

/// Where the two ends run.
pub(crate) enum Place<'a> {
    Loopback,
    /// In these network namespaces of the near and the far end, with the address of the far end.
    Namespaces([&'a str; 2], &'a str),
}

/// The home directory of the far side's sessions.
#[derive(Clone, Copy)]
enum Home {
    /// That of the user who runs the test.
    Users,
    /// `home` in the scratch directory.
    Scratch,
}

const PROGRAM: &str = env!("CARGO_BIN_EXE_hikyaku");
const START_TIMEOUT: Duration = Duration::from_secs(10);

impl Sshd {
    pub(crate) fn start(name: &str) -> Self {
        Self::start_at(name, &Place::Loopback)
    }

    /// On loopback, with SFTP, and with `home` in the scratch directory as the home directory of its sessions.
    pub(crate) fn with_home(name: &str) -> Self {
        Self::start_with(name, &Place::Loopback, "", Home::Scratch)
    }

    /// On loopback, with these lines more in its configuration.
    pub(crate) fn with_lines(name: &str, lines: &str) -> Self {
        Self::start_with(name, &Place::Loopback, lines, Home::Users)
    }

    pub(crate) fn start_at(name: &str, place: &Place<'_>) -> Self {
        Self::start_with(name, place, "", Home::Users)
    }

    fn start_with(name: &str, place: &Place<'_>, lines: &str, home: Home) -> Self {
        let scratch = crate::common::scratch(name);
        let _ = fs::remove_dir_all(&scratch);
        fs::create_dir_all(scratch.join("state")).unwrap();
        let at = |name: &str| scratch.join(name).display().to_string();
        for key in ["host", "user"] {
            run(Command::new("ssh-keygen").args(["-q", "-t", "ed25519", "-N", "", "-f", &at(key)]));
        }
        let (address, port) = match place {
            Place::Loopback => {
                let free = TcpListener::bind("127.0.0.1:0").unwrap();
                ("127.0.0.1", free.local_addr().unwrap().port())
            }
            Place::Namespaces(_, address) => (*address, 2222),
        };
        let home = match home {
            Home::Users => String::new(),
            Home::Scratch => {
                fs::create_dir(scratch.join("home")).unwrap();
                format!(
                    " HOME={0} PATH={0}/bin:/usr/local/bin:/usr/bin:/bin\nSubsystem sftp internal-sftp -d {0}",
                    at("home")
                )
            }
        };
        let server = format!(
            "Port {port}\nListenAddress {address}\nHostKey {}\nAuthorizedKeysFile {}\nPidFile none\n\
             StrictModes no\nPasswordAuthentication no\nUsePAM no\nSetEnv XDG_STATE_HOME={}{home}\n{lines}",
            at("host"),
            at("user.pub"),
            at("state"),
        );
        fs::write(scratch.join("sshd_config"), server).unwrap();
        let client = format!(
            "Host far other\n HostName {address}\n Port {port}\n IdentityFile {}\n IdentitiesOnly yes\n \
             UserKnownHostsFile {}\n StrictHostKeyChecking accept-new\n LogLevel ERROR\n\
             Host broken\n ProxyCommand /bin/false\n\
             Host hidden\n HostName nowhere.invalid\n ProxyCommand /usr/sbin/sshd -i -f {}\n \
             IdentityFile {}\n IdentitiesOnly yes\n UserKnownHostsFile {}\n \
             StrictHostKeyChecking accept-new\n LogLevel ERROR\n",
            at("user"),
            at("known_hosts"),
            at("sshd_config"),
            at("user"),
            at("known_hosts"),
        );
        fs::write(scratch.join("ssh_config"), client).unwrap();
        // sshd needs this directory when it is run by root.
        let _ = fs::create_dir_all("/run/sshd");
        let log = fs::File::create(scratch.join("sshd.log")).unwrap();
        let (mut daemon, near) = match place {
            Place::Loopback => (Command::new("/usr/sbin/sshd"), None),
            Place::Namespaces([near, far], _) => {
                let mut daemon = Command::new("ip");
                daemon.args(["netns", "exec", far, "/usr/sbin/sshd"]);
                (daemon, Some((*near).to_owned()))
            }
        };
        let child = daemon
            .args(["-D", "-e", "-f", &at("sshd_config")])
            .stdin(Stdio::null())
            .stderr(log)
            .spawn()
            .expect("openssh-server is installed");
        let sshd = Self { scratch, child, near };
        let begin = Instant::now();
        while !sshd.log().contains("Server listening on") {
            assert!(begin.elapsed() < START_TIMEOUT, "{}", sshd.log());
            thread::sleep(Duration::from_millis(20));
        }
        sshd
    }

    /// A path in the scratch directory.
    pub(crate) fn at(&self, name: &str) -> PathBuf {
        self.scratch.join(name)
    }

    /// The same path on the far side.
    pub(crate) fn far(&self, name: &str) -> String {
        format!("far:{}", self.at(name).display())
    }

    /// `hikyaku cp` with this server as the host `far`.
    pub(crate) fn cp(&self, arguments: &[&str]) -> Command {
        let mut command = self.program();
        command
            .args(["cp", "-F", &self.at("ssh_config").display().to_string()])
            .args(["--remote-path", PROGRAM])
            .args(arguments)
            .env("XDG_STATE_HOME", self.at("state"))
            .env("XDG_CACHE_HOME", self.at("cache"))
            .stdin(Stdio::null());
        command
    }

    /// `hikyaku far` about the host `far`.
    pub(crate) fn far_programs(&self, arguments: &[&str]) -> Command {
        let mut command = self.program();
        let config = self.at("ssh_config").display().to_string();
        command.arg("far").args(arguments).args(["-F", &config, "far"]);
        command.env("XDG_STATE_HOME", self.at("state")).stdin(Stdio::null());
        command
    }

    /// `hikyaku sftp` with this server as the host `far`.
    pub(crate) fn sftp(&self, arguments: &[&str]) -> Command {
        let mut command = self.program();
        command
            .args(["sftp", "-F", &self.at("ssh_config").display().to_string()])
            .args(["--remote-path", PROGRAM])
            .args(arguments)
            .env("XDG_STATE_HOME", self.at("state"))
            .env("XDG_CACHE_HOME", self.at("cache"))
            .current_dir(&self.scratch);
        command
    }

    /// The program at the near end.
    fn program(&self) -> Command {
        match &self.near {
            None => Command::new(PROGRAM),
            Some(near) => {
                let mut command = Command::new("ip");
                command.args(["netns", "exec", near, PROGRAM]);
                command
            }
        }
    }

    /// `hikyaku perf` with this server as the host `far`.
    pub(crate) fn perf(&self, arguments: &[&str]) -> Command {
        self.testing("perf", arguments)
    }

    /// `hikyaku doctor` with this server as the host `far`.
    pub(crate) fn doctor(&self, arguments: &[&str]) -> Command {
        self.testing("doctor", arguments)
    }

    fn testing(&self, verb: &str, arguments: &[&str]) -> Command {
        let (ssh, config) = (self.at("ssh"), self.at("ssh_config"));
        fs::write(&ssh, format!("#!/bin/sh\nexec ssh -F {} \"$@\"\n", config.display())).unwrap();
        fs::set_permissions(&ssh, fs::Permissions::from_mode(0o755)).unwrap();
        let mut command = self.program();
        command.args([verb, "--ssh", &ssh.display().to_string()]);
        if !arguments.contains(&"--remote-path") {
            command.args(["--remote-path", PROGRAM]);
        }
        command
            .args(arguments)
            .env("XDG_STATE_HOME", self.at("state"))
            .env("XDG_CACHE_HOME", self.at("cache"))
            .stdin(Stdio::null());
        command
    }

    /// `hikyaku web` with this server as the host `far`.
    pub(crate) fn web(&self, arguments: &[&str]) -> Command {
        self.carrying("web", arguments)
    }

    /// `hikyaku proxy` with this server as the host `far`.
    pub(crate) fn proxy(&self, arguments: &[&str]) -> Command {
        self.carrying("proxy", arguments)
    }

    fn carrying(&self, verb: &str, arguments: &[&str]) -> Command {
        let mut command = self.program();
        command
            .args([verb, "-F", &self.at("ssh_config").display().to_string()])
            .args(["--remote-path", PROGRAM, "far"])
            .args(arguments)
            .env("XDG_STATE_HOME", self.at("state"))
            .env("XDG_CACHE_HOME", self.at("cache"))
            .stdin(Stdio::null());
        command
    }

    /// Kills all sessions and their programs. New ones can begin.
    pub(crate) fn end_sessions(&self) {
        for id in self.sessions() {
            // A program may end between the two.
            let _ = Command::new("kill").args(["-KILL", &id.to_string()]).status();
        }
    }

    /// Stops all sessions and their programs: nothing answers any more, and the connections stay.
    pub(crate) fn freeze_sessions(&self) {
        self.sessions().into_iter().for_each(process::stop);
    }

    /// The processes of all sessions, and of their programs.
    fn sessions(&self) -> Vec<u32> {
        let mut family = vec![self.child.id()];
        let mut next = 0;
        while let Some(parent) = family.get(next) {
            let children = format!("/proc/{parent}/task/{parent}/children");
            let children = fs::read_to_string(children).unwrap_or_default();
            family.extend(children.split_whitespace().filter_map(|id| id.parse::<u32>().ok()));
            next += 1;
        }
        family.split_off(1)
    }

    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.at("sshd.log")).unwrap_or_default()
    }
}

impl Drop for Sshd {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = fs::remove_dir_all(&self.scratch);
    }
}

fn run(command: &mut Command) {
    let status = command.stdin(Stdio::null()).status().unwrap();
    assert!(status.success(), "{command:?}");
}

/// Random bytes, the same for the same seed.
pub(crate) fn random(seed: u64, len: usize) -> Vec<u8> {
    let mut rng = fastrand::Rng::with_seed(seed);
    (0..len).map(|_| rng.u8(..)).collect()
}

/// All names below `root` with the contents of their files.
pub(crate) fn listing(root: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut all = Vec::new();
    let mut open = vec![root.to_path_buf()];
    while let Some(dir) = open.pop() {
        for entry in fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(root).unwrap().to_path_buf();
            if path.is_dir() {
                open.push(path);
            } else {
                all.push((name, fs::read(&path).unwrap()));
            }
        }
    }
    all.sort();
    all
}

/// Timeout after which a condition is considered never to become true.
const CONDITION_TIMEOUT: Duration = Duration::from_secs(30);

/// Waits until a condition is true.
pub(crate) fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !is_so() {
        assert!(begin.elapsed() < CONDITION_TIMEOUT, "{what} did not become true in time");
        thread::sleep(Duration::from_millis(5));
    }
}

/// Unfinished files below `root`.
pub(crate) fn partials(root: &Path) -> Vec<PathBuf> {
    let all = listing(root).into_iter().map(|(name, _)| name);
    all.filter(|name| name.as_os_str().as_encoded_bytes().ends_with(b".hikyaku")).collect()
}

/// The commands that a help lists: below `Commands:`, or in the groups of the first help.
pub(crate) fn commands(help: &str) -> Vec<String> {
    let listed = match help.split_once("\nCommands:\n") {
        Some((_, rest)) => rest.split("\n\n").next(),
        None => help.split_once("\nFirst steps:").map(|(groups, _)| groups),
    };
    // A line that goes on is indented further.
    let lines = listed.unwrap_or_default().lines().filter_map(|line| line.strip_prefix("  "));
    let entries =
        lines.filter(|line| !line.starts_with(' ')).filter_map(|line| line.split("  ").next());
    let names = entries.flat_map(|entry| entry.split(", ")).filter(|name| *name != "help");
    names.map(str::to_owned).collect()
}
