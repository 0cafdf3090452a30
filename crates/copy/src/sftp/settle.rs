//! Files that are complete on the server, and get their names when they are on its disk.
//!
//! A server does one request after the other, so that a sync of each file is a wait for the disk for each file. Where the
//! far side runs commands, a shell there syncs the file systems of many files at once instead; each file gets its name
//! after that. Only file systems of which syncfs(2) reports write-back errors are synced so, as by the receiver of a copy
//! with hikyaku at both ends. Everywhere else each file is synced by itself.

use super::Run;
use super::fault::{Trouble, there};
use super::journal::{Key, Past};
use super::remote::split;
use super::upload::syncs;
use hikyaku_job::End;
use hikyaku_reach::ended;
use hikyaku_sftp::{Answer, Attributes, Extension, Failed, Handle, Request};
use hikyaku_transfer::FailureKind;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io::{BufRead, BufReader, Read, Write};
use std::mem::take;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Files that wait for one sync.
const FILES_MAX: usize = 1024;
/// Bytes of the files that wait for one sync.
const BYTES_MAX: u64 = 64 << 20;
/// So many are synced one by one sooner than ssh has logged in.
const FEW: usize = 32;
/// Bytes of the paths of directories that one command takes.
const PATHS_BYTES_MAX: usize = 256 << 10;
/// The longest line that a far side is heard with.
const LINE_BYTES_MAX: u64 = 4096;
/// Lines of a far side before its first answer, such as what its shell prints for every login.
const NOISE_LINES_MAX: usize = 1000;
const SYNCED: &[u8] = b"hikyaku synced\n";
const FAILED: &[u8] = b"hikyaku failed\n";

/// Reads paths of directories, a line each, and syncs their file systems at an empty line, each of them once: of the
/// directories of a file system (`stat -c %d`) one is left. All shells take it alike: it has neither a line break, nor a
/// backslash or an exclamation mark.
const SCRIPT: &str = "exec sh -c 'r=$(uname -r); a=${r%%.*}; b=${r#*.}; b=${b%%.*}; b=${b%%-*}; \
    [ \"$(uname -s)\" = Linux ] && [ $((a * 1000 + b)) -ge 5008 ] || exit 121; set --; \
    while IFS= read -r d; do if [ -n \"$d\" ]; then set -- \"$@\" \"$d\"; continue; fi; \
    k=$(stat -f -c %T -- \"$@\") || exit 121; \
    for t in $k; do case $t in ext2/ext3|xfs|btrfs|tmpfs) ;; *) exit 121;; esac; done; \
    n=$(stat -c %d -- \"$@\") || exit 121; s=\" \"; \
    for i in $n; do d=$1; shift; case $s in *\" $i \"*) ;; *) s=\"$s$i \"; set -- \"$@\" \"$d\";; esac; done; \
    if sync -f -- \"$@\"; then echo hikyaku synced; else echo hikyaku failed; fi; set --; done'";

/// A file of the server that has all of its bytes, and a temporary name.
pub(super) struct Complete {
    pub(super) draft: Vec<u8>,
    pub(super) to: Vec<u8>,
    pub(super) size: u64,
    /// The metadata that it has been given, if the server need not be asked.
    pub(super) told: Option<Attributes>,
    pub(super) key: Key,
}

/// Files that wait for their names.
pub(crate) struct Settling {
    waiting: Mutex<Vec<Complete>>,
    shell: Mutex<Shell>,
    /// Whether the shell may still serve.
    is_open: AtomicBool,
}

/// What syncs file systems of the far side.
enum Shell {
    /// A command that starts it.
    Command(Vec<OsString>),
    Running(Running),
    None,
}

struct Running {
    child: Child,
    to: Option<ChildStdin>,
    from: BufReader<ChildStdout>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Settling {
    /// `start` gives the words of a command that has a login shell of the far side run a script.
    pub(crate) fn new(start: impl FnOnce(&str) -> Vec<OsString>) -> Self {
        let shell = Mutex::new(Shell::Command(start(SCRIPT)));
        Self { waiting: Mutex::default(), shell, is_open: AtomicBool::new(true) }
    }

    /// Whether a file of this path is to be added, and not synced by itself.
    pub(super) fn takes(&self, run: &Run<'_>, to: &[u8]) -> bool {
        self.is_open.load(Ordering::Relaxed)
            && !to.contains(&b'\n')
            && run.server.client.version().has(Extension::PosixRename)
    }

    /// Adds files. Who adds the last ones of a group syncs the group.
    pub(super) fn add(&self, run: &Run<'_>, files: Vec<Complete>) -> Result<(), Trouble> {
        let mut waiting = lock(&self.waiting);
        waiting.extend(files);
        let is_due = waiting.len() >= FILES_MAX
            || waiting.iter().map(|file| file.size).sum::<u64>() >= BYTES_MAX;
        let due = if is_due { take(&mut *waiting) } else { Vec::new() };
        drop(waiting);
        self.settle(run, due)
    }

    /// Syncs and names all that wait.
    pub(super) fn rest(&self, run: &Run<'_>) -> Result<(), Trouble> {
        let rest = take(&mut *lock(&self.waiting));
        self.settle(run, rest)
    }

    fn settle(&self, run: &Run<'_>, mut files: Vec<Complete>) -> Result<(), Trouble> {
        let mut done = Ok(());
        if files.is_empty() {
            return done;
        }
        let is_few = files.len() < FEW && !matches!(*lock(&self.shell), Shell::Running(_));
        if is_few || !self.synced(&files) {
            let mut kept = Vec::new();
            for file in files {
                match sync_alone(run, &file) {
                    Ok(()) => kept.push(file),
                    Err(trouble) => {
                        let failed = file.fails(run, trouble);
                        done = done.and(failed);
                    }
                }
            }
            files = kept;
        }
        let named = name(run, files);
        done.and(named)
    }

    /// Has the shell sync the file systems of these files. If that is not known to be done, each file is to be synced.
    fn synced(&self, files: &[Complete]) -> bool {
        let dirs: BTreeSet<&[u8]> = files.iter().map(|file| split(&file.to).0).collect();
        let bytes: usize = dirs.iter().map(|dir| dir.len() + 1).sum();
        if bytes > PATHS_BYTES_MAX || dirs.iter().any(|dir| dir.is_empty()) {
            return false;
        }
        let mut shell = lock(&self.shell);
        if let Shell::Command(words) = &*shell {
            *shell = Running::start(words).map_or(Shell::None, Shell::Running);
        }
        let answer = match &mut *shell {
            Shell::Running(running) => running.sync(&dirs),
            Shell::Command(_) | Shell::None => None,
        };
        if answer.is_none() {
            *shell = Shell::None;
            self.is_open.store(false, Ordering::Relaxed);
        }
        answer == Some(true)
    }
}

/// Syncs one file by its temporary name.
fn sync_alone(run: &Run<'_>, file: &Complete) -> Result<(), Trouble> {
    let client = &run.server.client;
    if !syncs(run) {
        return Ok(());
    }
    let (flags, attributes) = (Request::READ, Attributes::default());
    let open = Request::Open { path: &file.draft, flags, attributes };
    let handle: Handle = client.open(&open).map_err(there(&file.to))?;
    let synced = client.ask(&Request::Sync(handle.bytes()));
    let closed = client.ask(&Request::Close(handle.bytes()));
    let synced = client.is_done(synced);
    client.is_done(closed).and(synced).map_err(there(&file.to))
}

/// Gives files their names, all of which are asked for before the first answer is waited for. What has the name is
/// replaced.
pub(super) fn name(run: &Run<'_>, files: Vec<Complete>) -> Result<(), Trouble> {
    let (client, version) = (&run.server.client, run.server.client.version());
    let can_replace = version.has(Extension::PosixRename);
    let is_looked_at =
        |file: &Complete| !can_replace || (file.told.is_none() && run.journal.is_some());
    let requests = files.iter().flat_map(|file| {
        let look = is_looked_at(file).then_some(Request::LStat(&file.to));
        [Some(version.renaming(&file.draft, &file.to)), look].into_iter().flatten()
    });
    let mut answers = client.all(&requests.collect::<Vec<_>>()).into_iter();
    let (mut all_done, mut noted) = (Ok(()), Vec::new());
    for file in files {
        let renamed = answers.next().map_or(Err(Failed::Odd), Answer::done);
        let found = match is_looked_at(&file) {
            true => answers.next().and_then(|found| found.attributes().ok()),
            false => file.told,
        };
        let done = match renamed {
            Ok(()) => {
                run.meter.add_file();
                noted.extend(found.and_then(done_of).map(|past| (file.key, past)));
                Ok(())
            }
            Err(Failed::Refused { .. }) if !can_replace && found.is_some() => {
                let text = "the name exists, and this server cannot replace a file by renaming; try: remove it first";
                file.fails(run, Trouble::of(End::There, &file.to, FailureKind::Exists, text))
            }
            Err(error) => file.fails(run, there(&file.to)(error)),
        };
        all_done = all_done.and(done);
    }
    run.journal.iter().for_each(|journal| journal.add_all(&noted));
    all_done
}

/// What is written down of a file that has its name and this metadata.
fn done_of(found: Attributes) -> Option<Past> {
    let (size, (_, modified)) = found.size.zip(found.times)?;
    Some(Past::Done { size, modified: modified.into() })
}

impl Complete {
    /// It does not get its name, and is removed. If the copy ends, it is left to the next attempt.
    pub(super) fn fails(&self, run: &Run<'_>, trouble: Trouble) -> Result<(), Trouble> {
        let Trouble::File(end, failure) = trouble else {
            let part = Past::Part { bytes: self.size, token: self.draft.clone() };
            run.journal.iter().for_each(|journal| journal.add(self.key, &part));
            return Err(trouble);
        };
        self.remove(run);
        run.meter.add_failure(end, &failure);
        Ok(())
    }

    /// Removes it, if it is there.
    fn remove(&self, run: &Run<'_>) {
        let _ = run.server.client.done(&Request::Remove(&self.draft));
    }
}

impl Running {
    fn start(words: &[OsString]) -> Option<Self> {
        let mut command = Command::new(words.first()?);
        let pipes = command.args(&words[1..]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = pipes.stderr(Stdio::null()).spawn().ok()?;
        let (to, from) = child.stdin.take().zip(child.stdout.take())?;
        Some(Self { child, to: Some(to), from: BufReader::new(from) })
    }

    /// Syncs the file systems of these directories. `None` if the shell cannot do that, or has ended.
    fn sync(&mut self, dirs: &BTreeSet<&[u8]>) -> Option<bool> {
        let mut text: Vec<u8> = dirs.iter().flat_map(|dir| [*dir, b"\n"].concat()).collect();
        text.push(b'\n');
        let to = self.to.as_mut()?;
        to.write_all(&text).and_then(|()| to.flush()).ok()?;
        for _ in 0..NOISE_LINES_MAX {
            let mut line = Vec::new();
            let read = (&mut self.from).take(LINE_BYTES_MAX).read_until(b'\n', &mut line).ok()?;
            match &line[..] {
                _ if read == 0 => return None,
                SYNCED => return Some(true),
                FAILED => return Some(false),
                _ => {}
            }
        }
        None
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        drop(self.to.take());
        ended(&mut self.child);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    /// Programs that say that all directories are on two file systems, by their first letters, and write down what is synced.
    const STUBS: [(&str, &str); 3] = [
        ("uname", "case $1 in -r) echo 6.1.0;; *) echo Linux;; esac"),
        (
            "stat",
            "k=$1; while [ \"$1\" != -- ]; do shift; done; shift; for d in \"$@\"; do \
             case $k,$d in -f,*) echo tmpfs;; *,a*) echo 7;; *) echo 77;; esac; done",
        ),
        ("sync", "shift 2; for d in \"$@\"; do echo \"$d\" >>\"$SYNCED\"; done"),
    ];

    #[test]
    fn the_shell_syncs_each_file_system_once() {
        let dir = std::env::temp_dir().join(format!("hikyaku-settle-{}", std::process::id()));
        let _ = fs::remove_dir_all(&dir);
        fs::create_dir_all(&dir).unwrap();
        for (name, text) in STUBS {
            fs::write(dir.join(name), format!("#!/bin/sh\n{text}\n")).unwrap();
            fs::set_permissions(dir.join(name), fs::Permissions::from_mode(0o755)).unwrap();
        }
        let path = std::env::var("PATH").unwrap();
        let words = [
            "env".into(),
            format!("PATH={}:{path}", dir.display()).into(),
            format!("SYNCED={}", dir.join("synced").display()).into(),
            "sh".into(),
            "-c".into(),
            SCRIPT.into(),
        ];
        let mut running = Running::start(&words).unwrap();
        let all = |names: [&'static str; 4]| names.map(str::as_bytes).into();
        assert_eq!(running.sync(&all(["a", "a b", "b", "b/c"])), Some(true));
        assert_eq!(running.sync(&all(["b/*", "a/d", "a/e", "a/f"])), Some(true));
        drop(running);
        assert_eq!(fs::read_to_string(dir.join("synced")).unwrap(), "a\nb\na/d\nb/*\n");
        fs::remove_dir_all(&dir).unwrap();
    }
}
