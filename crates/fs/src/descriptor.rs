//! A target that names an open descriptor of this process: `/dev/stdout`, `/dev/fd/3`,
//! `/proc/self/fd/1`. What comes is written into it, behind what stands there; to open its name anew would
//! begin at the start of the file that a shell has redirected it to.

use rustix::io::Errno;
use rustix::net::getpeername;
use rustix::process::{PidfdFlags, PidfdGetfdFlags, getpid, pidfd_getfd, pidfd_open};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsFd;
use std::path::Path;

/// The number of the descriptor that a path names; `None` if it names none.
pub fn descriptor_number(path: &Path) -> Option<u32> {
    match path.to_str()? {
        "/dev/stdin" => Some(0),
        "/dev/stdout" => Some(1),
        "/dev/stderr" => Some(2),
        text => {
            let own = format!("/proc/{}/fd/", std::process::id());
            let folders = ["/dev/fd/", "/proc/self/fd/", "/proc/thread-self/fd/", own.as_str()];
            folders.iter().find_map(|folder| text.strip_prefix(folder))?.parse().ok()
        }
    }
}

/// Opens a second descriptor of the same open file (`pidfd_getfd`, or dup(2) for the standard ones).
///
/// # Errors
///
/// There is no such descriptor, or the kernel is older than 5.6 and it is that of a regular file.
pub fn open_descriptor(number: u32) -> io::Result<File> {
    let file: File = match number {
        0 => io::stdin().as_fd().try_clone_to_owned()?.into(),
        1 => io::stdout().as_fd().try_clone_to_owned()?.into(),
        2 => io::stderr().as_fd().try_clone_to_owned()?.into(),
        _ => other(number)?,
    };
    // A socket without another end stands for a standard descriptor that was closed.
    match getpeername(&file) {
        Err(Errno::NOTCONN) => Err(Errno::BADF.into()),
        _ => Ok(file),
    }
}

fn other(number: u32) -> io::Result<File> {
    let raw = i32::try_from(number).map_err(io::Error::other)?;
    let duplicate = pidfd_open(getpid(), PidfdFlags::empty())
        .and_then(|us| pidfd_getfd(us, raw, PidfdGetfdFlags::empty()));
    match duplicate {
        Ok(file) => Ok(File::from(file)),
        Err(Errno::BADF) => Err(Errno::BADF.into()),
        // Before Linux 5.6: a pipe is the same pipe when its name is opened.
        Err(_) => {
            let file = OpenOptions::new().write(true).open(format!("/proc/self/fd/{number}"))?;
            if file.metadata()?.is_file() {
                return Err(io::Error::from(io::ErrorKind::Unsupported));
            }
            Ok(file)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Seek, Write};
    use std::os::fd::AsRawFd;

    #[test]
    fn names_of_descriptors_are_known() {
        let own = format!("/proc/{}/fd/7", std::process::id());
        let cases = [("/dev/stdout", 1), ("/dev/fd/3", 3), ("/proc/self/fd/12", 12), (&own, 7)];
        for (path, wanted) in cases {
            assert_eq!(descriptor_number(Path::new(path)), Some(wanted), "{path}");
        }
        for path in ["/dev/null", "/dev/fd/", "/dev/fd/x", "/proc/1/fd/1", "dev/stdout", "/dev/fd"]
        {
            assert_eq!(descriptor_number(Path::new(path)), None, "{path}");
        }
    }

    #[test]
    fn what_is_written_comes_behind_what_was() {
        let path = std::env::temp_dir().join(format!("hikyaku-descriptor-{}", std::process::id()));
        let mut options = File::options();
        let mut file =
            options.read(true).write(true).create(true).truncate(true).open(&path).unwrap();
        file.write_all(b"before ").unwrap();
        let raw = u32::try_from(file.as_raw_fd()).unwrap();
        open_descriptor(raw).unwrap().write_all(b"between ").unwrap();
        file.write_all(b"after").unwrap();
        let mut text = String::new();
        file.rewind().unwrap();
        file.read_to_string(&mut text).unwrap();
        assert_eq!(text, "before between after");
        std::fs::remove_file(path).unwrap();
        assert!(open_descriptor(1 << 20).is_err());
    }
}
