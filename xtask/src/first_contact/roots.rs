//! Two fresh systems below one directory.

use super::Step;
use anyhow::{Context, Result, ensure};
use std::fs;
use std::io::Write;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// The Debian release of both.
const RELEASE: &str = "bookworm";
/// Name and loopback address of the second one.
pub(super) const FAR: &str = "far";
const FAR_ADDRESS: &str = "127.0.0.2";
/// The ordinary user of both, with the number that Debian gives to the first one.
pub(super) const USER: &str = "anna";
const USER_ID: u32 = 1000;
/// How long the SSH server may take to start.
const SSHD_START: Duration = Duration::from_secs(30);
/// Where the first system sees the repository.
const SOURCE: &str = "/src/hikyaku";
/// The certificates that programs trust: a machine behind a proxy has some of its own.
const CERTIFICATES: &str = "/etc/ssl/certs/ca-certificates.crt";

/// Both systems, mounted.
pub(super) struct Roots {
    dir: PathBuf,
    near: PathBuf,
    far: PathBuf,
}

impl Roots {
    /// Makes both of one base, which is kept for the next time.
    pub(super) fn make(dir: &Path) -> Result<Self> {
        fs::create_dir_all(dir)?;
        let dir = dir.canonicalize()?;
        let base = dir.join("base");
        if !base.join("etc/apt/sources.list").exists() {
            println!("--- a fresh Debian ({RELEASE})");
            bootstrap(&base)?;
        }
        run("mount", &["--make-rprivate", "/"])?;
        let [near, far] = ["near", FAR].map(|name| dir.join(name));
        for root in [&near, &far] {
            layer(&base, root)?;
        }
        Ok(Self { dir, near, far })
    }

    /// Installs packages in the first system, and returns the exit code.
    pub(super) fn install<'a>(&self, packages: impl Iterator<Item = &'a str>) -> Result<i32> {
        let packages: Vec<&str> = packages.collect();
        apt(&self.near, &packages)
    }

    /// Gives both systems a user, the second one an SSH server, and the first one the repository.
    pub(super) fn meet(&self, source: &Path) -> Result<()> {
        ensure!(apt(&self.far, &["openssh-server"])? == 0, "the SSH server cannot be installed");
        ensure!(apt(&self.near, &["openssh-client"])? == 0, "ssh cannot be installed");
        for root in [&self.near, &self.far] {
            let add = ["-m", "-s", "/bin/bash", "-u", &USER_ID.to_string(), USER];
            chroot(root, "useradd", &add)?;
            fs::write(
                root.join("etc/hosts"),
                format!("127.0.0.1 localhost\n{FAR_ADDRESS} {FAR}\n"),
            )?;
            fs::copy(CERTIFICATES, root.join(&CERTIFICATES[1..])).context(CERTIFICATES)?;
        }
        let (ssh, far_ssh) =
            (self.home(&self.near).join(".ssh"), self.home(&self.far).join(".ssh"));
        for folder in [&ssh, &far_ssh] {
            fs::create_dir(folder)?;
            fs::set_permissions(folder, fs::Permissions::from_mode(0o700))?;
        }
        let key = ssh.join("id_ed25519");
        run("ssh-keygen", &["-q", "-t", "ed25519", "-N", "", "-f", &key.to_string_lossy()])?;
        fs::copy(key.with_extension("pub"), far_ssh.join("authorized_keys"))?;
        let host_key = fs::read_to_string(self.far.join("etc/ssh/ssh_host_ed25519_key.pub"))?;
        fs::write(ssh.join("known_hosts"), format!("{FAR} {host_key}"))?;
        for folder in [&ssh, &far_ssh] {
            owned_by_user(folder)?;
        }
        let clone = self.near.join(&SOURCE[1..]);
        fs::create_dir_all(&clone)?;
        run("mount", &["--bind", &source.to_string_lossy(), &clone.to_string_lossy()])?;
        chroot(&self.near, "git", &["config", "--system", "safe.directory", "*"])?;
        self.make_data()
    }

    /// Runs lines in one login shell of the user, each timed, with the repository of this machine in place of `address`. A
    /// line that fails ends it.
    pub(super) fn as_user(&self, lines: &[String], address: &str) -> Result<Vec<Step>> {
        let mut sshd = self.sshd()?;
        let done = self.shell(lines, address);
        sshd.kill()?;
        sshd.wait()?;
        done
    }

    /// Whether the second system has what was copied.
    pub(super) fn is_copied(&self) -> Result<bool> {
        let (from, to) = (self.home(&self.near).join("run7"), self.home(&self.far).join("data"));
        // `cp -r run7/ data/` makes data/run7 where `data` exists, as scp does.
        let to = if to.join("run7").exists() { to.join("run7") } else { to };
        Ok(Command::new("diff").arg("-r").args([from, to]).status()?.success())
    }

    /// Removes both, but not their base.
    pub(super) fn remove(&self) -> Result<()> {
        for root in [&self.near, &self.far] {
            run("umount", &["--recursive", "--lazy", &root.to_string_lossy()])?;
            for part in ["upper", "work"] {
                fs::remove_dir_all(root.with_extension(part))?;
            }
            fs::remove_dir(root)?;
        }
        println!("(the base is kept: {})", self.dir.join("base").display());
        Ok(())
    }

    fn home(&self, root: &Path) -> PathBuf {
        root.join("home").join(USER)
    }

    /// The user's own files, of many sizes.
    fn make_data(&self) -> Result<()> {
        let data = self.home(&self.near).join("run7");
        fs::create_dir_all(data.join("steps"))?;
        let mut random = fastrand::Rng::with_seed(7);
        for number in 0..100_usize {
            let mut bytes = vec![0; number * 3000];
            random.fill(&mut bytes);
            fs::write(data.join("steps").join(format!("{number}.dat")), bytes)?;
        }
        owned_by_user(&data)
    }

    fn sshd(&self) -> Result<Child> {
        fs::create_dir_all(self.far.join("run/sshd"))?;
        let sshd = Command::new("chroot")
            .arg(&self.far)
            .args(["/usr/sbin/sshd", "-D", "-e", "-o", &format!("ListenAddress={FAR_ADDRESS}")])
            .stderr(Stdio::null())
            .spawn()
            .context("cannot start sshd")?;
        let until = Instant::now() + SSHD_START;
        while std::net::TcpStream::connect((FAR_ADDRESS, 22)).is_err() {
            ensure!(Instant::now() < until, "no SSH server at {FAR_ADDRESS}: is port 22 in use?");
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(sshd)
    }

    fn shell(&self, lines: &[String], address: &str) -> Result<Vec<Step>> {
        let log = Path::new("/tmp/steps");
        let mut shell = Command::new("chroot")
            .arg(&self.near)
            .args(["su", "--login", USER])
            .stdin(Stdio::piped())
            .spawn()
            .context("cannot start a shell")?;
        let mut input = shell.stdin.take().context("a shell without input")?;
        writeln!(input, "cd; date +%s.%N >{}", log.display())?;
        for line in lines {
            let line = line.replace("user@host", &format!("{USER}@{FAR}"));
            let line = line.replace(address, &format!("file://{SOURCE}"));
            // The user's files are where the shell is.
            writeln!(input, "[ -e run7 ] || cp -r ~/run7 .")?;
            writeln!(input, "date +%s.%N >>{}", log.display())?;
            writeln!(input, "echo; echo '--- {line}'")?;
            writeln!(input, "{line} </dev/null; e=$?; echo $(date +%s.%N) $e >>{}", log.display())?;
            writeln!(input, "[ $e = 0 ] || exit $e")?;
        }
        drop(input);
        shell.wait()?;
        let log = fs::read_to_string(self.near.join("tmp/steps"))?;
        // Of each line: when it began; when it ended, and how.
        let times: Vec<Vec<f64>> = log
            .lines()
            .skip(1)
            .map(|line| line.split(' ').filter_map(|word| word.parse().ok()).collect())
            .collect();
        let steps = lines.iter().zip(times.chunks(2)).filter_map(|(line, pair)| {
            let [begin, end] = pair else { return None };
            let ([begin], [end, exit]) = (&begin[..], &end[..]) else { return None };
            Some(Step { command: line.clone(), seconds: end - begin, exit: *exit as i32 })
        });
        Ok(steps.collect())
    }
}

fn bootstrap(base: &Path) -> Result<()> {
    let packages = "--include=ca-certificates";
    run("debootstrap", &["--variant=minbase", packages, RELEASE, &base.to_string_lossy()])?;
    fs::copy("/etc/resolv.conf", base.join("etc/resolv.conf"))?;
    let (debian, security) =
        ("http://deb.debian.org/debian", "http://deb.debian.org/debian-security");
    let sources = format!(
        "deb {debian} {RELEASE} main\ndeb {debian} {RELEASE}-updates main\ndeb {security} {RELEASE}-security main\n"
    );
    Ok(fs::write(base.join("etc/apt/sources.list"), sources)?)
}

/// Mounts a fresh layer over the base, and what programs expect of a system.
fn layer(base: &Path, root: &Path) -> Result<()> {
    let parts = [root.with_extension("upper"), root.with_extension("work")];
    for part in &parts {
        if part.exists() {
            fs::remove_dir_all(part)?;
        }
    }
    for folder in parts.iter().map(PathBuf::as_path).chain([root]) {
        fs::create_dir_all(folder)?;
    }
    let [upper, work] = parts.map(|part| part.display().to_string());
    let layers = format!("lowerdir={},upperdir={upper},workdir={work}", base.display());
    let root = root.to_string_lossy();
    run("mount", &["-t", "overlay", "overlay", "-o", &layers, &root])?;
    run("mount", &["-t", "proc", "proc", &format!("{root}/proc")])?;
    run("mount", &["--rbind", "/dev", &format!("{root}/dev")])
}

fn apt(root: &Path, packages: &[&str]) -> Result<i32> {
    for words in [&["update", "-qq"][..], &[&["install", "-y", "-qq"], packages].concat()] {
        let status = Command::new("chroot")
            .arg(root)
            .arg("apt-get")
            .args(words)
            .env("DEBIAN_FRONTEND", "noninteractive")
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()?;
        if !status.success() {
            return Ok(status.code().unwrap_or(-1));
        }
    }
    Ok(0)
}

fn chroot(root: &Path, program: &str, words: &[&str]) -> Result<()> {
    let root = root.to_string_lossy();
    run("chroot", &[&[&*root, program], words].concat())
}

fn owned_by_user(path: &Path) -> Result<()> {
    chown(path, Some(USER_ID), Some(USER_ID))?;
    if path.is_dir() {
        for entry in fs::read_dir(path)? {
            owned_by_user(&entry?.path())?;
        }
    }
    Ok(())
}

fn run(program: &str, words: &[&str]) -> Result<()> {
    let output = Command::new(program).args(words).stdin(Stdio::null()).output();
    let output = output.with_context(|| format!("cannot start {program}"))?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{program} {}: {}", words.join(" "), said.trim());
    Ok(())
}
