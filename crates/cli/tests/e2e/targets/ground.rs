//! A scratch directory with one source and one target of a kind, and what became of the target.

use rustix::fs::{CWD, FileType, Mode, makedev, mknodat};
use std::fs::{self, File, Permissions};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt, PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;

/// What has the name before the command.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    Absent,
    File,
    /// A file of mode 0400 in a directory that may be written to.
    ReadOnly,
    /// A symbolic link to a file in the same directory.
    Link,
    /// An empty directory.
    Dir,
    /// A FIFO with a reader.
    Fifo,
    /// A character device that takes everything.
    Device,
    Socket,
}

impl Kind {
    pub(super) const ALL: [Self; 8] = [
        Self::Absent,
        Self::File,
        Self::ReadOnly,
        Self::Link,
        Self::Dir,
        Self::Fifo,
        Self::Device,
        Self::Socket,
    ];
}

/// What has the name after the command.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Seen {
    Absent,
    File {
        is_new: bool,
    },
    /// The link as it was, and what the file behind it has.
    Link {
        is_new: bool,
    },
    Dir {
        has_new: bool,
    },
    /// A FIFO or a device as it was. A device does not tell what it has taken.
    Stream {
        has_new: bool,
    },
    Socket,
    /// Nothing that the table knows.
    Odd(String),
}

impl Seen {
    /// The target of this kind, if nothing was done to it.
    pub(super) const fn untouched(kind: Kind) -> Self {
        match kind {
            Kind::Absent => Self::Absent,
            Kind::File | Kind::ReadOnly => Self::File { is_new: false },
            Kind::Link => Self::Link { is_new: false },
            Kind::Dir => Self::Dir { has_new: false },
            Kind::Fifo => Self::Stream { has_new: false },
            // Whether a device was opened is not to be seen.
            Kind::Device => Self::Stream { has_new: true },
            Kind::Socket => Self::Socket,
        }
    }
}

const OLD: &str = "what was there before, which is longer";
const NEW: &str = "what is new";
/// A node of the memory device that takes and gives nothing (null(4)).
const NULL: (u32, u32) = (1, 3);

/// The scratch directory: `src/name` and `src/tree/name` are copied to `dst/tree/name`.
pub(super) struct Ground {
    root: PathBuf,
    kind: Kind,
    /// Reads the FIFO, so that no writer waits.
    reader: Option<File>,
    _socket: Option<UnixListener>,
}

impl Ground {
    /// `None` if this user cannot make such a target.
    pub(super) fn new(name: &str, kind: Kind) -> Option<Self> {
        let root = crate::common::scratch(name);
        for dir in ["src/tree", "dst/tree"] {
            fs::create_dir_all(root.join(dir)).unwrap();
        }
        for source in ["src/name", "src/tree/name"] {
            fs::write(root.join(source), NEW).unwrap();
        }
        let mut ground = Self { root, kind, reader: None, _socket: None };
        let target = ground.target();
        match kind {
            Kind::Absent => {}
            Kind::File => fs::write(&target, OLD).unwrap(),
            Kind::ReadOnly => {
                fs::write(&target, OLD).unwrap();
                fs::set_permissions(&target, Permissions::from_mode(0o400)).unwrap();
            }
            Kind::Link => {
                fs::write(target.with_file_name("behind"), OLD).unwrap();
                symlink("behind", &target).unwrap();
            }
            Kind::Dir => fs::create_dir(&target).unwrap(),
            Kind::Fifo => {
                mknodat(CWD, &target, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
                let flags = rustix::fs::OFlags::NONBLOCK.bits();
                let mut options = File::options();
                options.read(true).custom_flags(flags.try_into().unwrap());
                ground.reader = Some(options.open(&target).unwrap());
            }
            Kind::Device => {
                let (mode, device) = (Mode::RUSR | Mode::WUSR, makedev(NULL.0, NULL.1));
                let made = mknodat(CWD, &target, FileType::CharacterDevice, mode, device);
                if made.is_err() || File::options().write(true).open(&target).is_err() {
                    println!("SKIPPED: only root can make a device that can be opened");
                    return None;
                }
            }
            Kind::Socket => ground._socket = Some(UnixListener::bind(&target).unwrap()),
        }
        Some(ground)
    }

    pub(super) fn at(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    pub(super) fn source(&self) -> PathBuf {
        self.at("src/name")
    }

    pub(super) fn tree(&self) -> PathBuf {
        self.at("src/tree")
    }

    /// The directory into which the tree is copied.
    pub(super) fn above(&self) -> PathBuf {
        self.at("dst")
    }

    pub(super) fn target(&self) -> PathBuf {
        self.at("dst/tree/name")
    }

    /// Runs the command with a `/dev` of its own, if this user may have one. Gives its exit code and what it said.
    pub(super) fn run(&self, command: Command) -> (Option<i32>, String) {
        let mut own = match rustix::process::geteuid().is_root() {
            true => in_own_dev(&command),
            false => command,
        };
        let output = own.current_dir(&self.root).stdin(Stdio::null()).output().unwrap();
        let said = [output.stdout, output.stderr].concat();
        (output.status.code(), String::from_utf8_lossy(&said).into_owned())
    }

    pub(super) fn see(&self) -> Seen {
        let target = self.target();
        let Ok(meta) = fs::symlink_metadata(&target) else { return Seen::Absent };
        let kind = meta.file_type();
        let is_new = |path: &Path| {
            let text = fs::read_to_string(path).unwrap_or_default();
            is_content(&text)
        };
        if kind.is_symlink() {
            return Seen::Link { is_new: is_new(&target) };
        }
        if kind.is_dir() {
            return Seen::Dir { has_new: is_new(&target.join("name")) };
        }
        if kind.is_fifo() {
            let mut text = String::new();
            let _ = self.reader.as_ref().map(|mut reader| reader.read_to_string(&mut text));
            let has_new = is_content(&text);
            return if text.is_empty() || has_new {
                Seen::Stream { has_new }
            } else {
                Seen::Odd(text)
            };
        }
        if kind.is_char_device() {
            return Seen::Stream { has_new: true };
        }
        if kind.is_socket() {
            return Seen::Socket;
        }
        let text = fs::read_to_string(&target).unwrap_or_default();
        if self.kind == Kind::Link && fs::read_to_string(self.at("dst/tree/behind")).unwrap() != OLD
        {
            return Seen::Odd("the link and the file behind it are both changed".to_owned());
        }
        if is_new(&target) || text == OLD {
            return Seen::File { is_new: text != OLD };
        }
        Seen::Odd(text)
    }
}

impl Drop for Ground {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.root);
    }
}

/// Whether this is the source's content, or a manifest with its name.
fn is_content(text: &str) -> bool {
    text == NEW || text.ends_with("  name\n") || text.ends_with("  copy\n")
}

/// The command behind a shell that makes a new `/dev` in a mount namespace: whatever it does to its `/dev/null`, that of
/// the machine stays.
fn in_own_dev(command: &Command) -> Command {
    let script = "set -e; mount --make-rprivate /; mount -t tmpfs -o mode=755 dev /dev; \
        mknod -m 666 /dev/null c 1 3; mknod -m 666 /dev/zero c 1 5; mknod -m 666 /dev/tty c 5 0; \
        mknod -m 666 /dev/random c 1 8; mknod -m 666 /dev/urandom c 1 9; mkdir /dev/shm; \
        ln -s /proc/self/fd /dev/fd; ln -s fd/0 /dev/stdin; ln -s fd/1 /dev/stdout; \
        ln -s fd/2 /dev/stderr; exec \"$@\"";
    let mut own = Command::new("unshare");
    own.args(["-m", "sh", "-c", script, "sh"]).arg(command.get_program()).args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => own.env(name, value),
            None => own.env_remove(name),
        };
    }
    own
}

/// The URL of a server that has one file, which it gives to the first four who ask.
pub(super) fn serve_name() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/name", listener.local_addr().unwrap());
    thread::spawn(move || {
        for stream in listener.incoming().take(4).flatten() {
            thread::spawn(move || {
                let mut lines = BufReader::new(stream.try_clone().unwrap());
                let mut line = String::new();
                while lines.read_line(&mut line).is_ok_and(|bytes| bytes > 2) {
                    line.clear();
                }
                let head = format!(
                    "HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
                    NEW.len()
                );
                let _ = (&stream).write_all(head.as_bytes());
                let _ = (&stream).write_all(NEW.as_bytes());
            });
        }
    });
    url
}
