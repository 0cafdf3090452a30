//! Who copies files: `hikyaku cp`, or a program that people use for it now.

use crate::rig::context::Ctx;
use crate::rig::line::Line;
use crate::rig::ssh::Rig;
use anyhow::Result;
use std::path::PathBuf;

/// A program that copies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Copier {
    Hikyaku,
    Scp,
    Rsync,
    Sftp,
    Rclone,
    Qcp,
    Tar,
}

/// What it copies where.
#[derive(Clone, Debug)]
pub(crate) enum Job {
    /// From here to there, under a new name.
    Put { from: PathBuf, to: String },
    /// From there to here.
    Get { from: String, to: PathBuf },
}

impl Copier {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Hikyaku => "hikyaku",
            Self::Scp => "scp",
            Self::Rsync => "rsync",
            Self::Sftp => "sftp",
            Self::Rclone => "rclone",
            Self::Qcp => "qcp",
            Self::Tar => "tar over ssh",
        }
    }

    /// The command; a tree with times and modes where the program can.
    pub(crate) fn line(self, ctx: &Ctx, rig: &Rig, job: &Job) -> Result<Line> {
        let config = rig.config();
        let ssh = format!("ssh -F {config}");
        let (from, to) = match job {
            Job::Put { from, to } => (from.display().to_string(), to.clone()),
            Job::Get { from, to } => (from.clone(), to.display().to_string()),
        };
        let bare = |path: &str| path.strip_prefix("far:").unwrap_or(path).to_owned();
        Ok(match self {
            Self::Hikyaku => {
                let program = ctx.hikyaku()?;
                let line = Line::new(program).words("cp -rp -q -F").arg(&config);
                line.arg("--remote-path").arg(program).args([&from, &to])
            }
            Self::Scp => Line::new("scp").words("-rpq -F").args([&config, &from, &to]),
            Self::Rsync => {
                let is_dir = std::path::Path::new(&bare(&from)).is_dir();
                let from = if is_dir { format!("{from}/") } else { from };
                Line::new("rsync").words("-a -e").args([&ssh, &from, &to])
            }
            Self::Sftp => {
                let verb = if matches!(job, Job::Put { .. }) { "put" } else { "get" };
                let batch = format!("echo {verb} -Rp {} {} |", bare(&from), bare(&to));
                shell(&format!("{batch} sftp -q -F {config} -b - far"))
            }
            Self::Rclone => {
                let place = |path: &str| match path.strip_prefix("far:") {
                    Some(path) => rig.sftp(path),
                    None => path.to_owned(),
                };
                Line::new("rclone").words("copyto -q").args([place(&from), place(&to)])
            }
            Self::Qcp => {
                // It must be told what the link can do.
                let program = ctx.peer("qcp")?;
                let line = Line::new(program).words("-q --tx 125M --rx 125M --rtt 200");
                line.arg("--ssh-config").arg(&config).words("-S -F -S").args([&config, &from, &to])
            }
            Self::Tar => {
                let (from, to) = (bare(&from), bare(&to));
                let pack = format!("tar -C {from} -cf - .");
                let unpack = format!("mkdir -p {to} && tar -C {to} -xpf -");
                match job {
                    Job::Put { .. } => shell(&format!("{pack} | {ssh} far '{unpack}'")),
                    Job::Get { .. } => shell(&format!("{ssh} far '{pack}' | ({unpack})")),
                }
            }
        })
    }

    /// The command with a sync of the far end's disk behind it, for those that do not wait for it.
    pub(crate) fn durable_line(self, ctx: &Ctx, rig: &Rig, job: &Job) -> Result<Line> {
        let line = self.line(ctx, rig, job)?;
        if self == Self::Hikyaku {
            return Ok(line);
        }
        let config = rig.config();
        Ok(line.then(&format!("ssh -F {config} far sync")))
    }
}

fn shell(script: &str) -> Line {
    Line::new("sh").args(["-c", script])
}
