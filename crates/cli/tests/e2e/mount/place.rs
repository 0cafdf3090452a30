//! A daemon with its files, and a mount of them.

use crate::common::process;
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

const PROGRAM: &str = env!("CARGO_BIN_EXE_hikyaku");
/// Longer than any test may need.
const PATIENCE: Duration = Duration::from_secs(60);

/// A daemon with its files, and a mount of them. Everything is removed at the end of the test.
pub(crate) struct Place {
    scratch: PathBuf,
    daemon: Option<Child>,
    address: String,
    /// Further arguments of the daemon.
    daemon_options: &'static [&'static str],
    /// The program that mounts.
    program: PathBuf,
}

/// How a place is mounted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Mode {
    Plain,
    Leases,
    Stage,
    /// Names may be known for longer than any test takes.
    LongNames,
}

impl Mode {
    pub(crate) const ALL: [Self; 4] = [Self::Plain, Self::Leases, Self::Stage, Self::LongNames];

    /// A writable place of this mode, mounted.
    pub(crate) fn place(self, name: &str) -> Place {
        let options: &[&str] = match self {
            Self::Leases => &["--writable", "--leases"],
            Self::Plain | Self::Stage | Self::LongNames => &["--writable"],
        };
        let place = Place::with(&format!("{name}-{self:?}"), options);
        self.mount(&place);
        place
    }

    /// Mounts it.
    pub(crate) fn mount(self, place: &Place) {
        let stage = place.at("stage");
        match self {
            Self::Plain | Self::Leases => place.mount(&[]),
            Self::Stage => place.mount(&["--stage", stage.to_str().unwrap()]),
            Self::LongNames => place.mount(&["--attr-ttl", "60s"]),
        }
    }
}

/// Another daemon.
pub(crate) struct Second {
    daemon: Child,
    pub(crate) address: String,
    pub(crate) root: PathBuf,
}

impl Drop for Second {
    fn drop(&mut self) {
        let _ = self.daemon.kill();
        let _ = self.daemon.wait();
    }
}

/// Starts a daemon; returns it and its address.
fn started(command: &mut Command) -> (Child, String) {
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let address = line.split(" at ").nth(1).and_then(|rest| rest.split(',').next());
    let address = address.unwrap_or_else(|| panic!("no address in {line:?}")).to_owned();
    (child, address)
}

/// Whether the kernel lets this process mount by FUSE; if not, says so.
pub(crate) fn can_mount() -> bool {
    let can = Path::new("/dev/fuse").exists() && rustix::process::geteuid().is_root();
    if !can {
        eprintln!("\n*** SKIPPED, because there is no /dev/fuse, or no root to mount it ***\n");
    }
    can
}

impl Place {
    /// A daemon that serves `root` in the scratch directory, and lets its client in.
    pub(crate) fn new(name: &str) -> Self {
        Self::with(name, &[])
    }

    /// The same with further arguments of the daemon.
    pub(crate) fn with(name: &str, daemon_options: &'static [&'static str]) -> Self {
        let scratch = crate::common::scratch(name);
        let _ = fs::remove_dir_all(&scratch);
        fs::create_dir_all(scratch.join("root")).unwrap();
        fs::create_dir_all(scratch.join("mnt")).unwrap();
        fs::write(scratch.join("keys"), "").unwrap();
        let (address, program) = ("127.0.0.1:0".to_owned(), PathBuf::from(PROGRAM));
        let mut place = Self { scratch, daemon: None, address, daemon_options, program };
        place.start();
        let refused = place.command(&["mount", &place.source("")]).arg(place.mnt("")).output();
        let said = String::from_utf8(refused.unwrap().stderr).unwrap();
        let key = said.split_whitespace().rfind(|word| word.starts_with("ed25519:")).unwrap();
        fs::write(place.at("keys"), format!("{key}\n")).unwrap();
        place
    }

    pub(crate) fn at(&self, name: &str) -> PathBuf {
        self.scratch.join(name)
    }

    /// A file of the server.
    pub(crate) fn root(&self, name: &str) -> PathBuf {
        self.at("root").join(name)
    }

    /// The same file in the mount.
    pub(crate) fn mnt(&self, name: &str) -> PathBuf {
        self.at("mnt").join(name)
    }

    pub(crate) fn source(&self, path: &str) -> String {
        format!("hikyaku://{}/{path}", self.address)
    }

    pub(crate) fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command.env("XDG_STATE_HOME", self.at("state")).args(words);
        command
    }

    /// Has everything but the daemon be done by the program under another name.
    pub(crate) fn rename_program(&mut self, name: &str) {
        self.program = self.at(name);
        // A copy that this process writes cannot be run while another thread starts a program.
        let copied = Command::new("cp").arg(PROGRAM).arg(&self.program).status();
        assert!(copied.unwrap().success());
    }

    /// Starts the daemon, at the port that it had before.
    pub(crate) fn start(&mut self) {
        let mut command = Command::new(PROGRAM);
        command
            .env("XDG_STATE_HOME", self.at("server-state"))
            .args(["serve", "--listen", &self.address, "--root"])
            .arg(self.at("root"))
            .arg("--authorized-keys")
            .arg(self.at("keys"))
            .args(self.daemon_options);
        let (child, address) = started(&mut command);
        self.address = address;
        self.daemon = Some(child);
    }

    /// Stops the daemon's process, which then answers nothing.
    pub(crate) fn stop_daemon(&self) {
        process::stop(self.daemon.as_ref().unwrap().id());
    }

    pub(crate) fn go_on_daemon(&self) {
        process::go_on(self.daemon.as_ref().unwrap().id());
    }

    /// Where in the kernel a process waits.
    pub(crate) fn stack_of(&self, process: u32) -> String {
        fs::read_to_string(format!("/proc/{process}/wchan")).unwrap_or_default()
            + &fs::read_to_string(format!("/proc/{process}/stack")).unwrap_or_default()
    }

    pub(crate) fn kill_daemon(&mut self) {
        let mut daemon = self.daemon.take().unwrap();
        daemon.kill().unwrap();
        daemon.wait().unwrap();
    }

    pub(crate) fn mount(&self, options: &[&str]) {
        let mut command = self.command(&["mount"]);
        let output = command.args(options).arg(self.source("")).arg(self.at("mnt")).output();
        let output = output.unwrap();
        assert!(output.status.success(), "{}", said(&output));
        assert!(self.is_mounted());
    }

    /// Mounts what other servers, or several, have below their roots.
    pub(crate) fn mount_of(&self, options: &[&str], servers: &str) {
        let mut command = self.command(&["mount"]);
        let source = format!("hikyaku://{servers}/");
        let output = command.args(options).arg(source).arg(self.at("mnt")).output().unwrap();
        assert!(output.status.success(), "{}", said(&output));
        assert!(self.is_mounted());
    }

    /// A second mount of the same files by another process.
    pub(crate) fn other_mount(&self) -> PathBuf {
        let other = self.at("mnt2");
        fs::create_dir_all(&other).unwrap();
        let output = self.command(&["mount"]).arg(self.source("")).arg(&other).output().unwrap();
        assert!(output.status.success(), "{}", said(&output));
        other
    }

    pub(crate) fn umount_other(&self) -> Output {
        self.command(&["umount"]).arg(self.at("mnt2")).output().unwrap()
    }

    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    /// A second daemon for the same client, with files and a key of its own.
    pub(crate) fn second(&self) -> Second {
        let root = self.at("second");
        fs::create_dir_all(&root).unwrap();
        let mut command = self.command(&["serve", "--listen", "127.0.0.1:0", "--root"]);
        command.env("XDG_STATE_HOME", self.at("second-state")).arg(&root);
        command.arg("--authorized-keys").arg(self.at("keys"));
        let (daemon, address) = started(&mut command);
        Second { daemon, address, root }
    }

    /// The figures of the mount.
    pub(crate) fn status(&self) -> serde_json::Value {
        self.status_of(&self.at("mnt"))
    }

    pub(crate) fn status_of(&self, mnt: &Path) -> serde_json::Value {
        let output = self.command(&["mount", "--status"]).arg(mnt).output().unwrap();
        serde_json::from_slice(&output.stdout).unwrap()
    }

    pub(crate) fn umount(&self, options: &[&str]) -> Output {
        self.command(&["umount"]).args(options).arg(self.at("mnt")).output().unwrap()
    }

    pub(crate) fn is_mounted(&self) -> bool {
        let mounts = fs::read_to_string("/proc/self/mounts").unwrap();
        mounts.contains(&format!(" {} ", self.at("mnt").display()))
    }

    /// The process that serves the mount.
    pub(crate) fn server(&self) -> String {
        pid_of(&self.at("mnt"))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if self.is_mounted() {
            let _ = self.umount(&["--now"]);
        }
        let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
        let other = self.at("mnt2");
        if mounts.contains(&format!(" {} ", other.display())) {
            let _ = self.command(&["umount", "--now"]).arg(other).output();
        }
        if let Some(daemon) = &mut self.daemon {
            let _ = daemon.kill();
            let _ = daemon.wait();
        }
        let _ = fs::remove_dir_all(&self.scratch);
    }
}

/// The process that serves a mount.
fn pid_of(mnt: &Path) -> String {
    let mut value = vec![0; 100];
    let length = rustix::fs::getxattr(mnt, "user.hikyaku.pid", &mut value).unwrap();
    String::from_utf8(value[..length].to_vec()).unwrap()
}

pub(crate) fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

pub(crate) fn random(seed: u64, length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    fastrand::Rng::with_seed(seed).fill(&mut bytes);
    bytes
}

/// The seeds of a long test. `RIG_SEEDS=FIRST..END` takes others, so that it can be run in pieces.
pub(crate) fn seeds(all: Range<u64>) -> Range<u64> {
    let Ok(wanted) = std::env::var("RIG_SEEDS") else { return all };
    let (first, end) = wanted.split_once("..").expect("RIG_SEEDS is FIRST..END");
    first.parse().unwrap()..end.parse().unwrap()
}

/// Waits until `is_so`; fails if it never becomes so.
pub(crate) fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < end, "{what}");
        thread::sleep(Duration::from_millis(20));
    }
}

/// Sets the time of a file to one that no other call has given.
pub(crate) fn date(path: &Path, secs: u64) {
    let time = std::time::UNIX_EPOCH + Duration::from_secs(secs);
    File::options().write(true).open(path).unwrap().set_modified(time).unwrap();
}
