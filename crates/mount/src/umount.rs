//! `hikyaku umount`.

use crate::args::UmountArgs;
use crate::mounted::{self, Mounted};
use crate::refused::Unsent;
use crate::status::{FLUSH_ATTRIBUTE, PID_ATTRIBUTE, attribute};
use anyhow::{Context, Error, Result, bail};
use hikyaku_console::{At, ExitCode, with_remedy};
use rustix::io::Errno;
use rustix::mount::{UnmountFlags, unmount};
use rustix::process::{Pid, Signal, kill_process};
use std::ffi::CStr;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

/// How the mount is taken away.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Manner {
    /// Only if no program uses it.
    Idle,
    /// In any case: programs that use it keep their descriptors.
    Detach,
}

/// The name of the process of a mount, whatever the file of the program is called.
pub(crate) const PROCESS: &CStr = c"hikyaku";
/// The process of a mount ends within this.
const END: Duration = Duration::from_secs(3);
const LOOK: Duration = Duration::from_millis(20);
/// Time to wait for programs that use the mount. A program that is being started has the files of its parent open for a
/// moment, whatever it does afterwards.
const IDLE: Duration = Duration::from_secs(1);

/// Unmounts, and waits until the process that served the mount has ended.
///
/// # Errors
///
/// Nothing of FUSE is mounted there, or a program uses it.
pub fn umount(args: &UmountArgs) -> Result<()> {
    let directory = mounted::absolute(&args.directory)
        .with_context(|| format!("cannot unmount {}", args.directory.display()))?;
    let Some(mounted) = mounted::at(&directory) else {
        return Err(ExitCode::WillFail.error("no FUSE mount")).at(args.directory.display());
    };
    // A mount without a process is useless.
    let Some(pid) = attribute(&directory, PID_ATTRIBUTE) else {
        return take(&directory, Manner::Detach);
    };
    let pid = pid.parse().ok().and_then(Pid::from_raw);
    let server = pid.filter(|&pid| is_server(pid, &mounted));
    if args.now {
        return end_now(&directory, server);
    }
    // The mount reports its unsent writes, whether or not its process can be found.
    let told = flushed(&directory)?;
    take(&directory, Manner::Idle)?;
    if let Some(server) = server {
        // A copy of the mount in the namespace of the process would keep it alive. Without one it ends by itself, and
        // not by a signal, once the server has everything.
        let has_copy = || mounted::is_there(server.as_raw_nonzero(), &mounted.device);
        if !ends(server) && has_copy() {
            let _ = kill_process(server, Signal::TERM);
        }
        // The process may still send writes. That ends by itself.
        while !ends(server) {}
    }
    told
}

/// Unmounts lazily, even if programs use the mount, and ends its process.
fn end_now(directory: &Path, server: Option<Pid>) -> Result<()> {
    let Some(server) = server else { return take(directory, Manner::Detach) };
    let _ = kill_process(server, Signal::TERM);
    if !ends(server) {
        take(directory, Manner::Detach)?;
        let _ = kill_process(server, Signal::KILL);
    }
    Ok(())
}

/// Lets the mount send everything. The inner error names the writes that it could not send. Those that no journal has must
/// not be lost with the mount.
fn flushed(directory: &Path) -> Result<Result<()>> {
    // A mount that is in use is not waited for. The call marks one that is not; the next use takes the mark away.
    once_idle(directory, || {
        let marked = unmount(directory, UnmountFlags::NOFOLLOW | UnmountFlags::EXPIRE);
        Ok((marked != Err(Errno::BUSY)).then_some(()))
    })?;
    let told = attribute(directory, FLUSH_ATTRIBUTE);
    // An older mount does not have the attribute.
    let unsent: Unsent = told.and_then(|t| serde_json::from_str(&t).ok()).unwrap_or_default();
    let is_only_here = unsent.files > 0 && unsent.journal.is_none();
    match unsent.into_result() {
        Err(error) if is_only_here => {
            let shown = directory.display();
            let remedy =
                format!("make room at the server; or hikyaku umount --now {shown}, which loses it");
            Err(with_remedy(error.context(format!("cannot unmount {shown}")), Some(remedy)))
        }
        told => Ok(told),
    }
}

/// Calls `call` until it returns a value; it returns none while programs use the mount. After [`IDLE`] the result is an error that
/// names them as the reason.
fn once_idle<T>(directory: &Path, mut call: impl FnMut() -> Result<Option<T>>) -> Result<T> {
    let until = Instant::now() + IDLE;
    loop {
        match call()? {
            Some(value) => return Ok(value),
            None if Instant::now() < until => thread::sleep(LOOK),
            None => return Err(busy(directory)),
        }
    }
}

/// Takes the mount away.
pub(crate) fn take(directory: &Path, manner: Manner) -> Result<()> {
    once_idle(directory, || try_take(directory, manner))
}

/// Takes the mount away, unless programs use it.
fn try_take(directory: &Path, manner: Manner) -> Result<Option<()>> {
    let flags = match manner {
        Manner::Idle => UnmountFlags::NOFOLLOW,
        Manner::Detach => UnmountFlags::NOFOLLOW | UnmountFlags::DETACH,
    };
    match unmount(directory, flags) {
        Ok(()) => Ok(Some(())),
        Err(Errno::BUSY) => Ok(None),
        Err(Errno::PERM) => take_as_user(directory, manner),
        Err(error) => {
            Err(Error::new(error).context(format!("cannot unmount {}", directory.display())))
        }
    }
}

/// By the program that may do so for users.
fn take_as_user(directory: &Path, manner: Manner) -> Result<Option<()>> {
    let mut command = Command::new("fusermount3");
    command.arg("-u");
    if manner == Manner::Detach {
        command.arg("-z");
    }
    let output = command.arg("--").arg(directory).output();
    let output = output.context("try: install the package fuse3").context("no fusermount3")?;
    let said = String::from_utf8_lossy(&output.stderr);
    match output.status.success() {
        true => Ok(Some(())),
        false if said.contains("busy") => Ok(None),
        false => bail!("cannot unmount {}: {}", directory.display(), said.trim()),
    }
}

fn busy(directory: &Path) -> Error {
    let directory = directory.display();
    let error = ExitCode::MayPass.error(format!("cannot unmount {directory}: programs use it"));
    with_remedy(error, Some(format!("hikyaku umount --now {directory}")))
}

/// Whether the process is one of this program that belongs to the user of the mount. Another file system could name any
/// process, and a process of a container has another number there.
fn is_server(pid: Pid, mounted: &Mounted) -> bool {
    let process = format!("/proc/{}", pid.as_raw_nonzero());
    let name = fs::read_to_string(format!("{process}/comm"));
    let owner = fs::metadata(&process).map(|metadata| metadata.uid());
    name.is_ok_and(|name| Ok(name.trim()) == PROCESS.to_str()) && owner.ok() == mounted.user
}

/// Whether the process ends soon.
fn ends(pid: Pid) -> bool {
    let until = Instant::now() + END;
    while Instant::now() < until {
        let stat = fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero()));
        // A process that has ended and was not waited for is a zombie.
        if stat.map_or(true, |stat| stat.rsplit(") ").next().is_none_or(|s| s.starts_with('Z'))) {
            return true;
        }
        thread::sleep(LOOK);
    }
    false
}
