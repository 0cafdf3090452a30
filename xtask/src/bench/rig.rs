//! A real OpenSSH server at the far end of a lab, and a folder for each end: what benches of copies
//! stand on.

use super::home::Home;
use super::line::{End, Line, Place};
use super::record::Row;
use super::sysctl::{Buffers, RAISED};
use super::veth::Veth;
use crate::process::{Finished, Running, run};
use anyhow::{Context, Result, bail, ensure};
use hikyaku_lab::{Lab, LabSpec, Report};
use hikyaku_link::Setting;
use rustix::process::{Pid, Signal, kill_process};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::sleep;
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
    sshd: Running,
    ground: Ground,
    folder: Folder,
    home: Home,
    _buffers: Buffers,
}

/// What is between the two ends.
pub(super) enum Ground {
    Lab(Lab),
    Wire(Veth),
}

impl Place for Ground {
    fn command(&self, end: End, program: &OsStr) -> Command {
        match self {
            Self::Lab(lab) => Place::command(lab, end, program),
            Self::Wire(wire) => wire.command(end, program),
        }
    }

    fn server(&self) -> String {
        match self {
            Self::Lab(lab) => Place::server(lab),
            Self::Wire(wire) => wire.server(),
        }
    }
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
/// How often memory is looked at.
const LOOK: Duration = Duration::from_millis(100);

impl Rig {
    pub(super) fn up(spec: LabSpec, medium: Medium, root: &Path) -> Result<Self> {
        let parent = match medium {
            Medium::Ram => PathBuf::from("/dev/shm"),
            Medium::Disk => root.join("target"),
        };
        Self::over(Ground::Lab(Lab::up(spec)?), &parent, root)
    }

    /// Over any ground, with its files somewhere beneath `parent`.
    pub(super) fn over(ground: Ground, parent: &Path, root: &Path) -> Result<Self> {
        let buffers = Buffers::limit(RAISED)?;
        let folder = Folder::new(parent)?;
        for key in ["host", "user"] {
            let mut keygen = Command::new("ssh-keygen");
            keygen.args(["-q", "-t", "ed25519", "-N", "", "-f"]).arg(folder.0.join(key));
            run(&mut keygen, START)?.success()?;
        }
        let at = |name: &str| folder.0.join(name).display().to_string();
        let server = format!(
            "Port {PORT}\nListenAddress 0.0.0.0\nHostKey {}\nAuthorizedKeysFile {}\nPidFile none\n\
             StrictModes no\nPasswordAuthentication no\nUsePAM no\nUseDNS no\nSetEnv \
             XDG_STATE_HOME={} XDG_CACHE_HOME={} PATH={}:/usr/local/bin:/usr/bin:/bin\nSubsystem sftp internal-sftp\n",
            at("host"),
            at("user.pub"),
            at("far-state"),
            at("far-state"),
            root.join("target/peers/installed/bin").display(),
        );
        let client = format!(
            "Host far\n HostName {}\n Port {PORT}\n IdentityFile {}\n IdentitiesOnly yes\n \
             UserKnownHostsFile {}\n StrictHostKeyChecking accept-new\n LogLevel ERROR\n",
            ground.server(),
            at("user"),
            at("known_hosts"),
        );
        fs::write(at("sshd_config"), server)?;
        fs::write(at("ssh_config"), client)?;
        // What the daemon wants when it is run by root.
        let _ = fs::create_dir_all("/run/sshd");
        let sshd = Line::new("/usr/sbin/sshd").words("-D -e -f").arg(at("sshd_config"));
        let sshd = Running::start(&mut sshd.at(&ground, End::Server))?;
        let rig = Self { sshd, ground, folder, home: Home::new()?, _buffers: buffers };
        // The server's key is learned before anything is timed.
        let begin = Instant::now();
        while let Err(error) = rig.ssh() {
            ensure!(begin.elapsed() < START, "sshd does not answer: {error:#}");
            sleep(Duration::from_millis(100));
        }
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

    /// A path of the far end for a program that speaks SFTP itself, as rclone writes it.
    pub(super) fn sftp(&self, path: &str) -> String {
        let key = self.folder.0.join("user");
        let host = self.ground.server();
        format!(":sftp,host={host},port={PORT},user=root,key_file={}:{path}", key.display())
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

    /// Starts a command at the near end.
    pub(super) fn start(&self, line: &Line) -> Result<Running> {
        let line = self.home.of_line(line.clone(), End::Client);
        Running::start(&mut line.at(&self.ground, End::Client))
    }

    /// A script that leaves its process number, does what `first` says and becomes `program`: for
    /// `--remote-path`.
    pub(super) fn far_script(&self, program: &Path, first: &str) -> Result<PathBuf> {
        let (script, pid) = (self.folder.0.join("far.sh"), self.pid_file());
        let (pid, program) = (pid.display(), program.display());
        let text = format!("#!/bin/sh\n{first}\necho $$ > {pid}\nexec {program} \"$@\"\n");
        fs::write(&script, text)?;
        fs::set_permissions(&script, fs::Permissions::from_mode(0o755))?;
        Ok(script)
    }

    fn pid_file(&self) -> PathBuf {
        self.folder.0.join("far.pid")
    }

    /// Kills the far side that was started last, if there is one.
    pub(super) fn kill_far(&self) -> Result<()> {
        let Ok(text) = fs::read_to_string(self.pid_file()) else { return Ok(()) };
        let pid = text.trim().parse().ok().and_then(Pid::from_raw).context("no process number")?;
        // It may have ended by itself.
        let _ = kill_process(pid, Signal::KILL);
        Ok(())
    }

    /// What a program says that is run beside the server: with its mounts and in its network.
    pub(super) fn far_output(&self, words: &[&OsStr]) -> Result<String> {
        let mut command = Command::new("nsenter");
        command.args(["--target", &self.sshd.id().to_string(), "--mount", "--net"]).args(words);
        run(&mut command, START)?.success()
    }

    /// As [`Rig::timed`], with the largest resident size of `hikyaku` at the near and the far end.
    pub(super) fn timed_with_memory(
        &self,
        line: &Line,
        cap: Duration,
    ) -> Result<(Timed, [f64; 2])> {
        let began = Instant::now();
        let mut running = self.start(line)?;
        let mut peaks = [0f64; 2];
        let finished = loop {
            for (peak, verb) in peaks.iter_mut().zip(["cp", "serve"]) {
                *peak = peak.max(memory_of(verb));
            }
            match running.wait((Instant::now() + LOOK).min(began + cap))? {
                Some(finished) => break Some(finished),
                None if began.elapsed() >= cap => break None,
                None => {}
            }
        };
        let seconds = began.elapsed().as_secs_f64();
        if finished.is_none() {
            running.stop()?;
        }
        Ok((Timed { seconds, finished }, peaks))
    }

    /// Runs a command at the near end, for so long at the most.
    pub(super) fn timed(&self, line: &Line, cap: Duration) -> Result<Timed> {
        let began = Instant::now();
        let mut running = self.start(line)?;
        let finished = running.wait(began + cap)?;
        let seconds = began.elapsed().as_secs_f64();
        if finished.is_none() {
            running.stop()?;
        }
        Ok(Timed { seconds, finished })
    }

    /// The link's counters.
    pub(super) fn report(&self) -> Result<Report> {
        self.lab()?.report()
    }

    fn lab(&self) -> Result<&Lab> {
        match &self.ground {
            Ground::Lab(lab) => Ok(lab),
            Ground::Wire(_) => bail!("a wire counts nothing"),
        }
    }

    /// Changes the link.
    pub(super) fn set(&self, settings: Vec<Setting>) -> Result<()> {
        self.lab()?.set(settings)
    }

    /// Forgets what went over the link.
    pub(super) fn restart(&self) -> Result<()> {
        self.lab()?.restart()
    }
}

impl Folder {
    fn new(parent: &Path) -> Result<Self> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let folder = Self(parent.join(format!("hikyaku-rig-{}-{number}", std::process::id())));
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
        if matches!(self.ground, Ground::Wire(_)) {
            return Ok(row);
        }
        let report = self.report()?;
        if report.valid {
            return Ok(row);
        }
        Ok(row.note(format!("INVALID: {}", report.problems.join(", "))))
    }
}

/// The largest resident size so far, in bytes, of a `hikyaku` with this verb.
fn memory_of(verb: &str) -> f64 {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let ours = processes.filter(|process| {
        let line = fs::read(process.path().join("cmdline")).unwrap_or_default();
        let mut words = line.split(|&byte| byte == 0);
        words.next().is_some_and(|word| word.ends_with(b"/hikyaku"))
            && words.next() == Some(verb.as_bytes())
    });
    let peak = |process: fs::DirEntry| {
        let pid = process.file_name().to_string_lossy().parse().ok()?;
        super::trial::peak_memory(pid)
    };
    ours.filter_map(peak).fold(0.0, f64::max)
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
