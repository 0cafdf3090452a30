//! `cp`, `sync` and `sftp` with another machine, through ssh, and within this one.

use super::places::{CHANNEL, CP, LOCAL, SETTING, SFTP, SHELL, SSH_TCP, SSH_UDP, SYNC, SYNC_KIB};
use super::{Cell, LIMIT, LIMIT_KIB, WAYS, Way, timed, word};
use crate::common::Sshd;
use std::fs;
use std::process::Command;

/// The server admits as many logins at once as the test needs.
const LINES: &str = "Subsystem sftp internal-sftp\nMaxStartups 100\n";
/// A server of SFTP, where the system has one, as `sftp -D` starts it.
const SFTP_SERVER: &str = "/usr/lib/openssh/sftp-server";

/// A machine that is reached by ssh.
pub(super) struct Far(Sshd);

impl Far {
    pub(super) fn new(name: &str) -> Self {
        let sshd = Sshd::with_lines(name, LINES);
        fs::create_dir_all(sshd.at("config/hikyaku")).unwrap();
        let settings = format!("[host.far]\nrate = \"{LIMIT}\"\n");
        fs::write(sshd.at("config/hikyaku/config.toml"), settings).unwrap();
        Self(sshd)
    }

    pub(super) fn cells(&self) -> Vec<Cell<'_>> {
        let mut cells = Vec::new();
        for way in WAYS {
            let by = [(SSH_UDP, "udp"), (SSH_TCP, "tcp"), (CHANNEL, "ssh"), (SFTP, "sftp")];
            for (by, via) in by {
                cells.push(self.copy((CP, by, way), vec!["--via", via, "-l", LIMIT]));
                cells.push(self.copy((SETTING, by, way), vec!["--via", via]));
            }
            for by in [LOCAL, SSH_UDP, SFTP] {
                cells.push(self.sync((SYNC, by, way), ["--rate", LIMIT]));
                cells.push(self.sync((SYNC_KIB, by, way), ["--bwlimit", LIMIT_KIB]));
            }
            for by in [LOCAL, SSH_UDP, SSH_TCP, SFTP] {
                cells.push(self.shell((SHELL, by, way)));
            }
        }
        cells.push(self.copy((CP, LOCAL, Way::Down), vec!["-l", LIMIT]));
        cells
    }

    /// The two ends of a cell in the scratch directory: a file, or a directory with one.
    fn ends(&self, cell: (&str, &str, Way)) -> [String; 2] {
        ["from", "to"].map(|end| self.0.at(&format!("{}{end}", word(cell))).display().to_string())
    }

    fn cell<'a>(
        (place, by, way): (&'static str, &'static str, Way),
        work: impl Fn(usize) -> std::time::Duration + Send + Sync + 'a,
    ) -> Cell<'a> {
        Cell { place, by, way, work: Box::new(work) }
    }

    fn copy(
        &self,
        cell: (&'static str, &'static str, Way),
        options: Vec<&'static str>,
    ) -> Cell<'_> {
        let (place, by, way) = cell;
        let [from, target] = self.ends(cell);
        Self::cell(cell, move |bytes| {
            fs::write(&from, vec![7; bytes]).unwrap();
            let far = |path: &String| format!("far:{path}");
            let ends = match way {
                _ if by == LOCAL => [from.clone(), target.clone()],
                Way::Down => [far(&from), target.clone()],
                Way::Up => [from.clone(), far(&target)],
            };
            let mut command = self.0.cp(&["-q"]);
            if place == SETTING {
                command.env("XDG_CONFIG_HOME", self.0.at("config"));
            }
            timed(command.args(&options).args(ends))
        })
    }

    fn sync(&self, cell: (&'static str, &'static str, Way), limit: [&'static str; 2]) -> Cell<'_> {
        let (_, by, way) = cell;
        let [from, target] = self.ends(cell);
        let ssh = format!("ssh -F {}", self.0.at("ssh_config").display());
        let program = if by == SFTP { "none" } else { env!("CARGO_BIN_EXE_hikyaku") };
        Self::cell(cell, move |bytes| {
            fs::create_dir_all(&from).unwrap();
            // Another length than that of the file that is there.
            fs::write(format!("{from}/file"), vec![7; bytes]).unwrap();
            let here = |path: &String| format!("{path}/");
            let far = |path: &String| format!("far:{path}/");
            let ends = match way {
                _ if by == LOCAL => [here(&from), here(&target)],
                Way::Down => [far(&from), here(&target)],
                Way::Up => [here(&from), far(&target)],
            };
            let mut command = Command::new(env!("CARGO_BIN_EXE_hikyaku"));
            command.env("XDG_STATE_HOME", self.0.at("state"));
            command.args(["sync", "-r", "-e", &ssh, "--remote-path", program]);
            timed(command.args(limit).args(ends))
        })
    }

    fn shell(&self, cell: (&'static str, &'static str, Way)) -> Cell<'_> {
        let (_, by, way) = cell;
        let [from, target] = self.ends(cell);
        Self::cell(cell, move |bytes| {
            fs::write(&from, vec![7; bytes]).unwrap();
            let batch = format!("{from}.batch");
            let verb = if way == Way::Down { "get" } else { "put" };
            fs::write(&batch, format!("{verb} {from} {target}\n")).unwrap();
            let options: &[&str] = match by {
                LOCAL => &["-D", SFTP_SERVER],
                SSH_UDP => &["far"],
                SSH_TCP => &["--no-udp", "far"],
                _ => &["--via", "sftp", "far"],
            };
            timed(self.0.sftp(&["-l", LIMIT, "-b", &batch]).args(options))
        })
    }
}
