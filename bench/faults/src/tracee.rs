//! A thread that is stopped at a call: its arguments, its memory, the files it means.

use crate::calls::{Call, TABLE, Which};
use crate::place::{Area, Place};
use anyhow::{Context, Result};
use nix::libc::{self, user_regs_struct};
use nix::sys::ptrace;
use nix::sys::uio::{RemoteIoVec, process_vm_readv};
use nix::unistd::Pid;
use std::ffi::OsString;
use std::fs;
use std::io::IoSliceMut;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

/// A call that concerns us, seen before the kernel does it.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    /// Which it is.
    pub(crate) call: Call,
    /// Where its file is; of a rename, where the new name is.
    pub(crate) area: Area,
    /// The file, or the old name.
    pub(crate) path: PathBuf,
    /// The new name of a rename or a link.
    pub(crate) to: Option<PathBuf>,
    /// The descriptor, if that is how the file was named.
    pub(crate) descriptor: Option<i32>,
    /// Its number.
    pub(crate) number: i64,
    pub(crate) arguments: [u64; 6],
    pub(crate) thread: Pid,
}

/// The longest path the kernel takes.
const PATH_MAX: usize = 4096;
const PAGE: usize = 4096;

impl Seen {
    /// What `thread` is about to do, if it concerns `place`.
    pub(crate) fn look(thread: Pid, regs: &user_regs_struct, place: &Place) -> Option<Self> {
        let number = regs.orig_rax as i64;
        let row = TABLE.iter().find(|row| row.number == number)?;
        let arguments = [regs.rdi, regs.rsi, regs.rdx, regs.r10, regs.r8, regs.r9];
        let (path, to, descriptor) = files(thread, row.which, &arguments)?;
        let area = place.find(to.as_ref().unwrap_or(&path))?;
        // No file system has anything to say when a directory is closed.
        if row.call == Call::Close && path.is_dir() {
            return None;
        }
        let call = match row.call {
            Call::Open if flags_of(thread, number, &arguments) & libc::O_CREAT != 0 => Call::Create,
            call => call,
        };
        Some(Self { call, area, path, to, descriptor, number, arguments, thread })
    }
    /// The bytes that a write is about to write.
    pub(crate) fn bytes(&self) -> Result<Vec<u8>> {
        match self.number {
            libc::SYS_write | libc::SYS_pwrite64 => {
                read(self.thread, self.arguments[1], self.arguments[2] as usize)
            }
            libc::SYS_writev | libc::SYS_pwritev | libc::SYS_pwritev2 => {
                let vectors =
                    read(self.thread, self.arguments[1], self.arguments[2] as usize * 16)?;
                let mut bytes = Vec::new();
                for vector in vectors.chunks_exact(16) {
                    let word =
                        |at: usize| vector[at..at + 8].try_into().map_or(0, u64::from_le_bytes);
                    bytes.extend(read(self.thread, word(0), word(8) as usize)?);
                }
                Ok(bytes)
            }
            _ => Ok(Vec::new()),
        }
    }

    /// Where in its file a write begins; asked before the kernel does it.
    pub(crate) fn offset(&self) -> Result<u64> {
        match self.number {
            libc::SYS_pwrite64 | libc::SYS_pwritev | libc::SYS_pwritev2 => Ok(self.arguments[3]),
            libc::SYS_copy_file_range if self.arguments[3] != 0 => {
                let bytes = read(self.thread, self.arguments[3], 8)?;
                Ok(bytes.try_into().map_or(0, u64::from_le_bytes))
            }
            _ => self.position(),
        }
    }

    fn position(&self) -> Result<u64> {
        let descriptor = self.descriptor.unwrap_or(-1);
        let info = fs::read_to_string(format!("/proc/{}/fdinfo/{descriptor}", self.thread))?;
        let field = |name: &str| info.lines().find_map(|line| line.strip_prefix(name));
        let flags = field("flags:").and_then(|text| i32::from_str_radix(text.trim(), 8).ok());
        if flags.is_some_and(|flags| flags & libc::O_APPEND != 0) {
            return Ok(fs::metadata(self.link())?.len());
        }
        field("pos:").and_then(|text| text.trim().parse().ok()).context("a file has a position")
    }

    /// The path by which others can open the file behind the descriptor.
    pub(crate) fn link(&self) -> PathBuf {
        link(self.thread, self.descriptor.unwrap_or(-1))
    }

    /// How much a call may read or write at most, if it says that in one number.
    pub(crate) fn length(&self) -> Option<u64> {
        let says = matches!(
            self.number,
            libc::SYS_read | libc::SYS_pread64 | libc::SYS_write | libc::SYS_pwrite64
        );
        says.then_some(self.arguments[2])
    }
    /// Whether an open throws away what was in the file.
    pub(crate) fn empties(&self) -> bool {
        let flags = flags_of(self.thread, self.number, &self.arguments);
        self.number == libc::SYS_creat || flags & libc::O_TRUNC != 0
    }
}

fn link(thread: Pid, descriptor: i32) -> PathBuf {
    PathBuf::from(format!("/proc/{thread}/fd/{descriptor}"))
}

type Files = (PathBuf, Option<PathBuf>, Option<i32>);

fn files(thread: Pid, which: Which, arguments: &[u64; 6]) -> Option<Files> {
    let at = |dir: usize, path: usize| beneath(thread, arguments[dir] as i32, arguments[path]);
    let path = |path: usize| beneath(thread, libc::AT_FDCWD, arguments[path]);
    match which {
        Which::Descriptor(index) => {
            let descriptor = arguments[index] as i32;
            Some((fs::read_link(link(thread, descriptor)).ok()?, None, Some(descriptor)))
        }
        Which::Path(index) => Some((path(index)?, None, None)),
        Which::At(dir, name) => {
            let is_empty = arguments[name] == 0 || text(thread, arguments[name])?.is_empty();
            if is_empty {
                return files(thread, Which::Descriptor(dir), arguments);
            }
            Some((at(dir, name)?, None, None))
        }
        Which::Paths(from, to) => Some((path(from)?, Some(path(to)?), None)),
        Which::Both(from, to) => Some((at(from.0, from.1)?, Some(at(to.0, to.1)?), None)),
    }
}

/// The path at `address` as seen from `dir`.
fn beneath(thread: Pid, dir: i32, address: u64) -> Option<PathBuf> {
    let path = PathBuf::from(OsString::from_vec(text(thread, address)?));
    if path.is_absolute() {
        return Some(path);
    }
    let base = match dir {
        libc::AT_FDCWD => PathBuf::from(format!("/proc/{thread}/cwd")),
        dir => link(thread, dir),
    };
    let base = fs::read_link(base).ok()?;
    Some(if path == Path::new(".") { base } else { base.join(path) })
}

/// What an open asks for.
fn flags_of(thread: Pid, number: i64, arguments: &[u64; 6]) -> i32 {
    let flags = match number {
        libc::SYS_open => arguments[1],
        libc::SYS_openat => arguments[2],
        // They are the first eight bytes of what is pointed to.
        libc::SYS_openat2 => read(thread, arguments[2], 8)
            .ok()
            .and_then(|bytes| bytes.try_into().ok())
            .map_or(0, u64::from_le_bytes),
        _ => 0,
    };
    flags as i32
}

/// The text at `address` up to its zero.
fn text(thread: Pid, address: u64) -> Option<Vec<u8>> {
    if address == 0 {
        return None;
    }
    let (mut bytes, mut at) = (Vec::new(), address);
    while bytes.len() < PATH_MAX {
        // The page behind may not be there.
        let here = PAGE - at as usize % PAGE;
        let part = read(thread, at, here.min(256)).ok()?;
        if let Some(end) = part.iter().position(|&byte| byte == 0) {
            bytes.extend_from_slice(&part[..end]);
            return Some(bytes);
        }
        at += part.len() as u64;
        bytes.extend(part);
    }
    None
}

fn read(thread: Pid, address: u64, length: usize) -> Result<Vec<u8>> {
    let mut bytes = vec![0; length];
    let mut done = 0;
    while done < length {
        let remote = RemoteIoVec { base: address as usize + done, len: length - done };
        let count =
            process_vm_readv(thread, &mut [IoSliceMut::new(&mut bytes[done..])], &[remote])?;
        anyhow::ensure!(count > 0, "memory of the program ends");
        done += count;
    }
    Ok(bytes)
}

/// Makes the kernel skip the call and the program see `result`.
pub(crate) fn skip(thread: Pid, regs: &user_regs_struct, result: i64) -> nix::Result<()> {
    let changed = user_regs_struct { orig_rax: u64::MAX, rax: result as u64, ..*regs };
    ptrace::setregs(thread, changed)
}

/// Makes the call ask for `length` bytes only.
pub(crate) fn shorten(thread: Pid, regs: &user_regs_struct, length: u64) -> nix::Result<()> {
    ptrace::setregs(thread, user_regs_struct { rdx: length, ..*regs })
}

/// At the call's end: what it gave. The register that [`shorten`] changed is put back.
pub(crate) fn result(thread: Pid, before: &user_regs_struct) -> nix::Result<i64> {
    let regs = ptrace::getregs(thread)?;
    if regs.rdx != before.rdx {
        ptrace::setregs(thread, user_regs_struct { rdx: before.rdx, ..regs })?;
    }
    Ok(regs.rax as i64)
}

/// At the call's end: the program sees `result` in place of what it gave.
pub(crate) fn answer(thread: Pid, result: i64) -> nix::Result<()> {
    let regs = ptrace::getregs(thread)?;
    ptrace::setregs(thread, user_regs_struct { rax: result as u64, ..regs })
}
