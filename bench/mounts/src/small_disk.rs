//! An ext4 that is larger than what it stands on: a loop device on a sparse file in a small tmpfs.
//! When the tmpfs is full the kernel cannot write back what it has accepted, as on a thin volume.

use std::fs;
use std::io::{self, Error, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The disk, which goes with this value.
pub struct SmallDisk {
    folder: PathBuf,
}

impl SmallDisk {
    /// A file system of `size` MB that stands on `room` MB, in `folder`.
    pub fn new(folder: PathBuf, size: u64, room: u64) -> io::Result<Self> {
        if !rustix::process::geteuid().is_root() {
            return Err(Error::other("loop devices need root"));
        }
        let disk = Self { folder };
        for name in ["backing", "disk"] {
            fs::create_dir_all(disk.folder.join(name))?;
        }
        let backing = disk.folder.join("backing");
        sh("mount", &["-t", "tmpfs", "-o", &format!("size={room}m"), "none"], &[&backing])?;
        fs::File::create(disk.image())?.set_len(size << 20)?;
        // Without a journal it is the data that fail, and not the file system as a whole.
        sh("mkfs.ext4", &["-q", "-F", "-O", "^has_journal"], &[&disk.image()])?;
        disk.mount()?;
        Ok(disk)
    }

    fn image(&self) -> PathBuf {
        self.folder.join("backing/image")
    }

    fn mount(&self) -> io::Result<()> {
        sh("mount", &["-o", "loop,errors=continue"], &[&self.image(), &self.at("")])
    }

    /// A path on it.
    pub fn at(&self, name: &str) -> PathBuf {
        self.folder.join("disk").join(name)
    }

    /// Takes all the room that is left.
    pub fn fill(&self) -> io::Result<()> {
        let mut filler = fs::File::create(self.folder.join("backing/filler"))?;
        let zeros = vec![0; 1 << 20];
        for chunk in [&zeros[..], &zeros[..4096]] {
            while filler.write_all(chunk).is_ok() {}
        }
        Ok(())
    }

    /// Gives the room back.
    pub fn free(&self) -> io::Result<()> {
        fs::remove_file(self.folder.join("backing/filler"))
    }

    /// Forgets all that is not on the disk.
    pub fn mount_again(&self) -> io::Result<()> {
        sh("umount", &[], &[&self.at("")])?;
        self.mount()
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // In this order; what is not mounted is said by nobody.
        for name in ["disk", "backing"] {
            let _ = sh("umount", &["--lazy"], &[&self.folder.join(name)]);
        }
    }
}

fn sh(program: &str, arguments: &[&str], paths: &[&Path]) -> io::Result<()> {
    let mut command = Command::new(program);
    command.args(arguments).args(paths).stdin(Stdio::null()).stdout(Stdio::null());
    let output = command.stderr(Stdio::piped()).output()?;
    match output.status.success() {
        true => Ok(()),
        false => Err(Error::other(String::from_utf8_lossy(&output.stderr).trim().to_owned())),
    }
}
