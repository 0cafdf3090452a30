//! A real OpenSSH server at the far end of a lab, and a folder for each end: what benches of copies
//! stand on.

use super::home::Home;
use super::line::{End, Line};
use super::record::Row;
use super::sysctl::{Buffers, RAISED};
use crate::process::{Finished, Running, run};
use anyhow::{Context, Result, bail, ensure};
use hikyaku_lab::{Lab, LabSpec, Report, Side};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// Where files lie at both ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Medium {
    Ram,
    Disk,
}

/// The lab, the server in it, the files.
pub(super) struct Rig {
    // The server goes before the lab that it runs in.
    _sshd: Running,
    lab: Lab,
    folder: Folder,
    home: Home,
    _buffers: Buffers,
}

/// A folder that is gone with the rig.
struct Folder(PathBuf);

/// A command that has ended, or was ended.
pub(super) struct Timed {
    pub(super) seconds: f64,
    /// Nothing, if it had to be stopped.
    pub(super) finished: Option<Finished>,
}

const START: Duration = Duration::from_secs(10);
const PORT: u16 = 2222;

impl Rig {
    pub(super) fn up(spec: LabSpec, medium: Medium, root: &Path) -> Result<Self> {
        let buffers = Buffers::limit(RAISED)?;
        let lab = Lab::up(spec)?;
        let folder = Folder::new(medium, root)?;
        for key in ["host", "user"] {
            let mut keygen = Command::new("ssh-keygen");
            keygen.args(["-q", "-t", "ed25519", "-N", "", "-f"]).arg(folder.0.join(key));
            run(&mut keygen, START)?.success()?;
        }
        let at = |name: &str| folder.0.join(name).display().to_string();
        let server = format!(
            "Port {PORT}\nListenAddress 0.0.0.0\nHostKey {}\nAuthorizedKeysFile {}\nPidFile none\n\
             StrictModes no\nPasswordAuthentication no\nUsePAM no\nUseDNS no\nSetEnv \
             XDG_STATE_HOME={}\nSubsystem sftp internal-sftp\n",
            at("host"),
            at("user.pub"),
            at("far-state"),
        );
        let client = format!(
            "Host far\n HostName {}\n Port {PORT}\n IdentityFile {}\n IdentitiesOnly yes\n \
             UserKnownHostsFile {}\n StrictHostKeyChecking accept-new\n LogLevel ERROR\n",
            hikyaku_lab::ipv4(1),
            at("user"),
            at("known_hosts"),
        );
        fs::write(at("sshd_config"), server)?;
        fs::write(at("ssh_config"), client)?;
        // What the daemon wants when it is run by root.
        let _ = fs::create_dir_all("/run/sshd");
        let sshd = Line::new("/usr/sbin/sshd").words("-D -e -f").arg(at("sshd_config"));
        let sshd = Running::start(&mut sshd.at(&lab, End::Server))?;
        let rig = Self { _sshd: sshd, lab, folder, home: Home::new()?, _buffers: buffers };
        ensure!(rig.lab.wait_for_listener(Side::Server(1), START)?, "sshd does not listen");
        // The server's key is learned before anything is timed.
        rig.ssh()?;
        Ok(rig)
    }

    /// The folder of one end.
    pub(super) fn at(&self, end: End, name: &str) -> PathBuf {
        let end = match end {
            End::Client => "near",
            End::Server => "far",
        };
        self.folder.0.join(end).join(name)
    }

    /// A path of the far end as copies write it.
    pub(super) fn far(&self, name: &str) -> String {
        format!("far:{}", self.at(End::Server, name).display())
    }

    /// The configuration of ssh.
    pub(super) fn config(&self) -> String {
        self.folder.0.join("ssh_config").display().to_string()
    }

    /// Seconds of `ssh far true`.
    pub(super) fn ssh(&self) -> Result<f64> {
        let line = Line::new("ssh").args(["-F", &self.config(), "far", "true"]);
        let timed = self.timed(&line, START)?;
        let finished = timed.finished.context("ssh does not end")?;
        finished.success()?;
        Ok(timed.seconds)
    }

    /// Runs a command at the near end, for so long at the most.
    pub(super) fn timed(&self, line: &Line, cap: Duration) -> Result<Timed> {
        let line = self.home.of_line(line.clone(), End::Client);
        let began = Instant::now();
        let mut running = Running::start(&mut line.at(&self.lab, End::Client))?;
        let finished = running.wait(began + cap)?;
        let seconds = began.elapsed().as_secs_f64();
        if finished.is_none() {
            running.stop()?;
        }
        Ok(Timed { seconds, finished })
    }

    /// The link's counters.
    pub(super) fn report(&self) -> Result<Report> {
        self.lab.report()
    }

    /// Forgets what went over the link.
    pub(super) fn restart(&self) -> Result<()> {
        self.lab.restart()
    }
}

impl Folder {
    fn new(medium: Medium, root: &Path) -> Result<Self> {
        let parent = match medium {
            Medium::Ram => PathBuf::from("/dev/shm"),
            Medium::Disk => root.join("target"),
        };
        let folder = Self(parent.join(format!("hikyaku-rig-{}", std::process::id())));
        for end in ["near", "far", "far-state"] {
            let path = folder.0.join(end);
            fs::create_dir_all(&path).with_context(|| format!("cannot make {}", path.display()))?;
        }
        Ok(folder)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // A leftover is no reason to fail.
        let _ = fs::remove_dir_all(&self.0);
    }
}

impl Rig {
    /// Ends the row of a copy: stopped, or complete and compared, on a link that was what it should be.
    pub(super) fn judge(&self, timed: Timed, row: Row, [from, to]: [&Path; 2]) -> Result<Row> {
        let Some(finished) = timed.finished else { return Ok(row.note("stopped")) };
        finished.success()?;
        same(from, to)?;
        let report = self.report()?;
        if report.valid {
            return Ok(row);
        }
        Ok(row.note(format!("INVALID: {}", report.problems.join(", "))))
    }
}

/// Random bytes in a file.
pub(super) fn random_file(path: &Path, size: u64, seed: u64) -> Result<()> {
    use std::io::Write;
    let mut rng = fastrand::Rng::with_seed(seed);
    let mut block = vec![0; 1 << 20];
    let mut file = std::io::BufWriter::new(fs::File::create(path)?);
    let mut left = size;
    while left > 0 {
        rng.fill(&mut block);
        let now = left.min(block.len() as u64) as usize;
        file.write_all(&block[..now])?;
        left -= now as u64;
    }
    Ok(file.flush()?)
}

/// Whether other people's programs find both the same.
pub(super) fn same(a: &Path, b: &Path) -> Result<()> {
    let mut diff = Command::new("diff");
    diff.args(["-r", "--no-dereference"]).args([a, b]);
    let said = run(&mut diff, Duration::from_secs(120))?;
    if !said.status.success() {
        bail!("what arrived is not what was sent: {}", said.stdout.lines().next().unwrap_or(""));
    }
    Ok(())
}
