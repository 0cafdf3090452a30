//! Many files of the far side that a shell brings to its disk together.
//!
//! A server does one request after the other, so that a sync of each file is a wait for the disk for each file. Where the
//! far side runs commands, a shell on it syncs the file systems of many files at once instead. Only file systems of which
//! syncfs(2) reports write-back errors are synced so, as by the receiver of a copy with hikyaku at both ends. Everywhere else
//! each file is synced by itself.

use hikyaku_reach::ended;
use hikyaku_store_sftp::{Reached, SyncDirs};
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Mutex, PoisonError};

/// Bytes of the paths of directories that one command takes.
const PATHS_BYTES_MAX: usize = 256 << 10;
/// The longest line that is read from a far side.
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

/// The shell that syncs file systems of the far side.
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

/// Syncs by a shell, which starts with the first call. `start` gives the words of a command that has a login shell of the far
/// side run a script.
pub(super) fn by_shell(start: impl FnOnce(&str) -> Vec<OsString>) -> SyncDirs {
    let shell = Mutex::new(Shell::Command(start(SCRIPT)));
    Box::new(move |dirs| {
        let bytes: usize = dirs.iter().map(|dir| dir.len() + 1).sum();
        if bytes > PATHS_BYTES_MAX {
            return Reached::Unknown;
        }
        let mut shell = shell.lock().unwrap_or_else(PoisonError::into_inner);
        if let Shell::Command(words) = &*shell {
            *shell = Running::start(words).map_or(Shell::None, Shell::Running);
        }
        let answer = match &mut *shell {
            Shell::Running(running) => running.sync(dirs),
            Shell::Command(_) | Shell::None => None,
        };
        if answer.is_none() {
            *shell = Shell::None;
        }
        if answer == Some(true) { Reached::Disk } else { Reached::Unknown }
    })
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
    fn sync(&mut self, dirs: &BTreeSet<Vec<u8>>) -> Option<bool> {
        let mut text: Vec<u8> = dirs.iter().flat_map(|dir| [dir, &b"\n"[..]].concat()).collect();
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
        let all = |names: [&str; 4]| names.map(|name| name.as_bytes().to_vec()).into();
        assert_eq!(running.sync(&all(["a", "a b", "b", "b/c"])), Some(true));
        assert_eq!(running.sync(&all(["b/*", "a/d", "a/e", "a/f"])), Some(true));
        drop(running);
        assert_eq!(fs::read_to_string(dir.join("synced")).unwrap(), "a\nb\na/d\nb/*\n");
        fs::remove_dir_all(&dir).unwrap();
    }
}
