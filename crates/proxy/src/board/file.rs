//! The file that a program writes what it downloads into: found among the program's open files, and looked at from
//! outside.
//!
//! The owner of a socket is found by the socket's number. A browser has several processes: one has the socket, and its
//! parent writes the file. So the files of the owner and of the processes above it are looked at. The one whose length is
//! nearest below what has arrived is taken.

use super::limit::Disk;
use super::status::FileBuffers;
use hikyaku_tcp::{FilePages, file_pages};
use std::ffi::OsString;
use std::fs::{self, File};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// A file that a program writes.
#[derive(Debug)]
pub(super) struct Partial {
    file: File,
    /// What `/proc` calls it.
    path: PathBuf,
}

/// Processes of a program that have its socket or may write its file.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Writers(Vec<u32>);

/// Bytes of a download from which on its file is looked for.
pub(super) const SOUGHT_BYTES: u64 = 4 << 20;
/// Processes above the owner of a socket that may write its file.
const PARENTS_MAX: usize = 2;
/// A file may be shorter than what has arrived by so much: the program's own buffers.
const BEHIND_BYTES_MAX: u64 = 64 << 20;
/// Names of files that browsers write: they are taken before others.
const UNFINISHED: [&str; 2] = ["crdownload", "part"];

impl Writers {
    /// The processes that may write what comes through a socket. Only those of this user are seen, unless this is root.
    pub(super) fn of_socket(inode: u32) -> Self {
        let wanted = OsString::from(format!("socket:[{inode}]"));
        let has_socket = |process: &u32| {
            fds(*process).any(|fd| fs::read_link(fd).is_ok_and(|link| link == wanted))
        };
        let mut all: Vec<u32> = processes().find(has_socket).into_iter().collect();
        while let Some(parent) = all.last().and_then(|&process| parent(process)) {
            // Process 1 writes nobody's downloads.
            if parent <= 1 || all.len() > PARENTS_MAX {
                break;
            }
            all.push(parent);
        }
        Self(all)
    }

    /// Their numbers.
    pub(super) fn processes(&self) -> &[u32] {
        &self.0
    }

    /// Whether there is none.
    pub(super) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The file into which a download of which `arrived` bytes have come is written.
    pub(super) fn file(&self, arrived: u64) -> Option<Partial> {
        let mut best: Option<(bool, u64, PathBuf)> = None;
        for fd in self.0.iter().flat_map(|&process| fds(process)) {
            let Some((path, size)) = written(&fd) else { continue };
            let fits = size <= arrived
                && size >= (arrived / 2).max(arrived.saturating_sub(BEHIND_BYTES_MAX));
            let is_unfinished =
                path.extension().is_some_and(|end| UNFINISHED.iter().any(|name| end == *name));
            let is_better = |(other, length, _): &(bool, u64, PathBuf)| {
                (is_unfinished, size) > (*other, *length)
            };
            if fits && best.as_ref().is_none_or(is_better) {
                best = Some((is_unfinished, size, fd));
            }
        }
        let (_, _, fd) = best?;
        // The link leads to the file itself, whatever has become of its name.
        Some(Partial { path: fs::read_link(&fd).ok()?, file: File::open(&fd).ok()? })
    }
}

impl Partial {
    /// The file as it is. `None` if it cannot be looked at any more.
    pub(super) fn look(&self) -> Option<FileBuffers> {
        let size_bytes = self.file.metadata().ok()?.len();
        let FilePages { cached, dirty, writeback } = file_pages(&self.file).ok()?;
        let name = self.path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        Some(FileBuffers {
            name,
            size_bytes,
            cached_bytes: cached,
            dirty_bytes: dirty,
            writeback_bytes: writeback,
        })
    }

    /// What `/proc` calls it.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The file, open for reading.
    pub(super) const fn as_file(&self) -> &File {
        &self.file
    }

    /// The bytes that it has.
    pub(super) fn size(&self) -> u64 {
        self.file.metadata().map_or(0, |meta| meta.len())
    }
}

/// Whether the kernel makes programs wait that write files: half of the dirty pages beyond those that it writes in the
/// background are there (`dirty_freerun_ceiling` of mm/page-writeback.c).
pub(super) fn is_behind(vmstat: &str) -> bool {
    let value = |name: &str| {
        let of_name = |line: &str| line.strip_prefix(name)?.strip_prefix(' ')?.parse::<u64>().ok();
        vmstat.lines().find_map(of_name).unwrap_or(0)
    };
    let waiting = value("nr_dirty") + value("nr_writeback");
    let limits = value("nr_dirty_threshold") + value("nr_dirty_background_threshold");
    limits > 0 && waiting * 2 >= limits
}

/// Whether the disk holds a program that writes this file.
pub(super) fn disk(file: Option<&FileBuffers>) -> Disk {
    let waits = file.is_some_and(|file| file.dirty_bytes + file.writeback_bytes > 0);
    match waits && is_behind(&fs::read_to_string("/proc/vmstat").unwrap_or_default()) {
        true => Disk::Behind,
        false => Disk::Keeps,
    }
}

fn processes() -> impl Iterator<Item = u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// The open files of a process; none if it is another user's.
fn fds(process: u32) -> impl Iterator<Item = PathBuf> {
    let entries = fs::read_dir(format!("/proc/{process}/fd")).into_iter().flatten().flatten();
    entries.map(|entry| entry.path())
}

/// The path and the length of a regular file that a process has open for writing.
fn written(fd: &Path) -> Option<(PathBuf, u64)> {
    const OWNER_WRITES: u32 = 0o200;
    // The rights of the link say for what the file is open (proc(5)).
    let is_written = fs::symlink_metadata(fd).ok()?.permissions().mode() & OWNER_WRITES != 0;
    let meta = fs::metadata(fd).ok().filter(|meta| is_written && meta.is_file())?;
    let path = fs::read_link(fd).ok()?;
    // Anonymous memory is a file as well, of a file system without a disk and without a path.
    let is_anonymous =
        meta.nlink() == 0 || path.starts_with("/memfd:") || path.starts_with("/dev/shm");
    (!is_anonymous).then_some((path, meta.len()))
}

fn parent(process: u32) -> Option<u32> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let value = status.lines().find_map(|line| line.strip_prefix("PPid:"))?;
    value.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::super::tests::open_files;
    use super::*;
    use std::io::Write;
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::AsRawFd;

    #[test]
    fn the_file_of_a_socket_s_process_is_found_by_its_length() {
        let _turn = open_files();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let socket = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let link = fs::read_link(format!("/proc/self/fd/{}", socket.as_raw_fd())).unwrap();
        let text = link.to_string_lossy().into_owned();
        let inode: u32 = text.trim_start_matches("socket:[").trim_end_matches(']').parse().unwrap();
        let writers = Writers::of_socket(inode);
        assert_eq!(writers.0.first(), Some(&std::process::id()));
        assert!(Writers::of_socket(u32::MAX).is_empty());

        let folder = std::env::temp_dir().join(format!("hikyaku-partial-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let make = |name: &str, length: usize| {
            let mut file = File::create(folder.join(name)).unwrap();
            file.write_all(&vec![7; length]).unwrap();
            file
        };
        let _others =
            [make("short", 1_000_000), make("long", 9_000_000), make("a.part", 7_000_000)];
        let found = writers.file(8_000_000).unwrap();
        let look = found.look().unwrap();
        assert_eq!((look.name.as_str(), look.size_bytes), ("a.part", 7_000_000));
        // The name that a browser gives to unfinished files counts more than the length.
        let _plain = make("plain", 7_500_000);
        assert_eq!(writers.file(8_000_000).unwrap().size(), 7_000_000);
        drop(_others);
        assert_eq!(writers.file(8_000_000).unwrap().size(), 7_500_000);
        assert!(writers.file(100 << 30).is_none());
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn writers_wait_when_half_of_the_room_for_dirty_pages_is_full() {
        let vmstat = |dirty: u64, writeback: u64| {
            format!(
                "nr_free_pages 9\nnr_dirty {dirty}\nnr_writeback {writeback}\nnr_writeback_temp 900\n\
                 nr_dirty_threshold 200\nnr_dirty_background_threshold 100\n"
            )
        };
        assert!(!is_behind(&vmstat(100, 49)));
        assert!(is_behind(&vmstat(100, 50)));
        assert!(!is_behind(""));
    }
}
