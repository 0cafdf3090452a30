//! A real OpenSSH server at the far end of a lab, and a folder for each end: what benches of copies
//! stand on.

use crate::record::row::Row;
use crate::rig::download::marked;
use crate::rig::files::{Folder, same};
use crate::rig::ground::Ground;
use crate::rig::home::Home;
use crate::rig::line::{End, Line, Place};
use crate::rig::sysctl::{Buffers, RAISED};
use anyhow::{Context, Result, bail, ensure};
use hikyaku_lab::{Lab, LabSpec, Report};
use hikyaku_link::Setting;
use rustix::process::{Pid, Signal, kill_process};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};
use xtask::{Finished, Running, run};

/// Where files lie at both ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Medium {
    Ram,
    Disk,
}

/// The lab, the server in it, the files.
pub(crate) struct Rig {
    // The server goes before the lab that it runs in.
    sshd: Running,
    ground: Ground,
    folder: Folder,
    home: Home,
    _buffers: Buffers,
}

/// A command that has ended, or was ended.
pub(crate) struct Timed {
    pub(crate) seconds: f64,
    /// Nothing, if it had to be stopped.
    pub(crate) finished: Option<Finished>,
}

const START: Duration = Duration::from_secs(10);
const PORT: u16 = 2222;
/// How often memory is looked at.
const LOOK: Duration = Duration::from_millis(100);

impl Rig {
    pub(crate) fn up(spec: LabSpec, medium: Medium, root: &Path) -> Result<Self> {
        let parent = match medium {
            Medium::Ram => PathBuf::from("/dev/shm"),
            Medium::Disk => root.join("target"),
        };
        Self::over(Ground::Lab(Lab::up(spec)?), &parent, root)
    }

    /// Over any ground, with its files somewhere beneath `parent`.
    pub(crate) fn over(ground: Ground, parent: &Path, root: &Path) -> Result<Self> {
        let buffers = Buffers::limit(RAISED)?;
        let folder = Folder::new(parent)?;
        for key in ["host", "user"] {
            let mut keygen = Command::new("ssh-keygen");
            keygen.args(["-q", "-t", "ed25519", "-N", "", "-f"]).arg(folder.join(key));
            run(&mut keygen, START)?.success()?;
        }
        let at = |name: &str| folder.join(name).display().to_string();
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
    pub(crate) fn at(&self, end: End, name: &str) -> PathBuf {
        let end = match end {
            End::Client => "near",
            End::Server => "far",
        };
        self.folder.join(end).join(name)
    }

    /// A path of the far end as copies write it.
    pub(crate) fn far(&self, name: &str) -> String {
        format!("far:{}", self.at(End::Server, name).display())
    }

    /// A path of the far end for a program that speaks SFTP itself, as rclone writes it.
    pub(crate) fn sftp(&self, path: &str) -> String {
        let key = self.folder.join("user");
        let host = self.ground.server();
        format!(":sftp,host={host},port={PORT},user=root,key_file={}:{path}", key.display())
    }

    /// The address of the far end.
    pub(crate) fn server(&self) -> String {
        self.ground.server()
    }

    /// The configuration of ssh.
    pub(crate) fn config(&self) -> String {
        self.folder.join("ssh_config").display().to_string()
    }

    /// Seconds of `ssh far true`.
    pub(crate) fn ssh(&self) -> Result<f64> {
        let line = Line::new("ssh").args(["-F", &self.config(), "far", "true"]);
        let timed = self.timed(&line, START)?;
        let finished = timed.finished.context("ssh does not end")?;
        finished.success()?;
        Ok(timed.seconds)
    }

    /// Starts a command at the near end.
    pub(crate) fn start(&self, line: &Line) -> Result<Running> {
        let line = self.home.of_line(line.clone(), End::Client);
        Running::start(&mut line.at(&self.ground, End::Client))
    }

    /// Starts a command at the far end.
    pub(crate) fn start_far(&self, line: &Line) -> Result<Running> {
        let line = self.home.of_line(line.clone(), End::Server);
        Running::start(&mut line.at(&self.ground, End::Server))
    }

    /// A script that leaves its process number, does what `first` says and becomes `program`: for
    /// `--remote-path`.
    pub(crate) fn far_script(&self, program: &Path, first: &str) -> Result<PathBuf> {
        let (script, pid) = (self.folder.join("far.sh"), self.pid_file());
        let (pid, program) = (pid.display(), program.display());
        let text = format!("#!/bin/sh\n{first}\necho $$ > {pid}\nexec {program} \"$@\"\n");
        fs::write(&script, text)?;
        fs::set_permissions(&script, fs::Permissions::from_mode(0o755))?;
        Ok(script)
    }

    fn pid_file(&self) -> PathBuf {
        self.folder.join("far.pid")
    }

    /// Kills the far side that was started last, if there is one.
    pub(crate) fn kill_far(&self) -> Result<()> {
        let Ok(text) = fs::read_to_string(self.pid_file()) else { return Ok(()) };
        let pid = text.trim().parse().ok().and_then(Pid::from_raw).context("no process number")?;
        // It may have ended by itself.
        let _ = kill_process(pid, Signal::KILL);
        Ok(())
    }

    /// What a program says that is run beside the server: with its mounts and in its network.
    pub(crate) fn far_output(&self, words: &[&OsStr]) -> Result<String> {
        let mut command = Command::new("nsenter");
        command.args(["--target", &self.sshd.id().to_string(), "--mount", "--net"]).args(words);
        run(&mut command, START)?.success()
    }

    /// As [`Rig::timed`], with the largest resident size of `hikyaku` at the near and the far end.
    pub(crate) fn timed_with_memory(
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
    pub(crate) fn timed(&self, line: &Line, cap: Duration) -> Result<Timed> {
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
    pub(crate) fn report(&self) -> Result<Report> {
        self.lab()?.report()
    }

    fn lab(&self) -> Result<&Lab> {
        match &self.ground {
            Ground::Lab(lab) => Ok(lab),
            Ground::Wire(_) => bail!("a wire counts nothing"),
        }
    }

    /// Changes the link.
    pub(crate) fn set(&self, settings: Vec<Setting>) -> Result<()> {
        self.lab()?.set(settings)
    }

    /// Forgets what went over the link.
    pub(crate) fn restart(&self) -> Result<()> {
        self.lab()?.restart()
    }

    /// Ends the row of a copy: stopped, or complete and compared, on a link that was what it should be.
    pub(crate) fn judge(&self, timed: Timed, row: Row, [from, to]: [&Path; 2]) -> Result<Row> {
        let row = match timed.finished {
            None => row.note("stopped"),
            Some(finished) => {
                finished.success()?;
                same(from, to)?;
                row
            }
        };
        match &self.ground {
            Ground::Wire(_) => Ok(row),
            Ground::Lab(lab) => Ok(marked(row, &lab.report()?)),
        }
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
        crate::rig::trial::peak_memory(pid)
    };
    ours.filter_map(peak).fold(0.0, f64::max)
}
