//! Files that are open while their names change.

use super::{Both, Holds, Told, described, done};
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

/// Open files at once.
const HELD_MAX: usize = 5;

/// A file that is open in both.
pub(super) struct Held {
    mount: File,
    local: File,
    /// How it was opened.
    what: String,
}

impl Both {
    /// Opens a file, or uses one that is open.
    pub(super) fn held_step(&mut self, path: &str, at: u64, bytes: &[u8]) {
        let opens = self.held.len() < HELD_MAX && self.rng.u8(..10) < 3;
        if opens || self.held.is_empty() {
            return self.open(path);
        }
        let number = self.rng.usize(..self.held.len());
        let length = bytes.len();
        match self.rng.u32(..100) {
            0..22 => self.each(number, &format!("pwrite {length} at {at}"), |file| {
                done(file.write_all_at(bytes, at))
            }),
            22..34 => self
                .each(number, &format!("write {length}"), |mut file| done(file.write_all(bytes))),
            34..50 => self.each(number, &format!("pread {length} at {at}"), |file| {
                let mut read = vec![0; length];
                let length = file.read_at(&mut read, at)?;
                read.truncate(length);
                Ok(read)
            }),
            50..56 => self.each(number, &format!("read {length}"), |file| {
                let mut read = Vec::new();
                file.take(length as u64).read_to_end(&mut read)?;
                Ok(read)
            }),
            56..64 => self.each(number, &format!("ftruncate {at}"), |file| done(file.set_len(at))),
            64..68 => self.each(number, "fsync", |file| done(file.sync_all())),
            68..78 => self.each(number, "fstat", |file| {
                file.metadata().map(|found| described(&found, Holds::Files).into_bytes())
            }),
            78..82 => self.each(number, "seek to the end", |mut file| {
                let end = file.seek(SeekFrom::End(0));
                end.map(|end| end.to_string().into_bytes())
            }),
            82..86 => self.each(number, "seek to the start", |mut file| done(file.rewind())),
            // One of two descriptors is closed.
            86..90 => self.each(number, "dup, close", |file| file.try_clone().map(|_| Vec::new())),
            _ => {
                let held = self.held.swap_remove(number);
                self.log.push(format!("close {}", held.what));
            }
        }
    }

    fn open(&mut self, path: &str) {
        let how = ["read", "write", "create", "truncate", "append"][self.rng.usize(..5)];
        let open = |base: &Path| -> io::Result<File> {
            let mut options = OpenOptions::new();
            options.read(true).write(how != "read").mode(0o644);
            options.create(matches!(how, "create" | "append"));
            match how {
                "truncate" => drop(options.truncate(true)),
                "append" => drop(options.write(false).append(true)),
                _ => {}
            }
            options.open(base.join(path))
        };
        let (mount, local) = (open(&self.mount), open(&self.local));
        let told = |opened: &io::Result<File>| -> Told {
            opened.as_ref().map(|_| Vec::new()).map_err(io::Error::raw_os_error)
        };
        let what = format!("{path} ({how}, {})", self.log.len() + 1);
        self.compare(format!("open {what}"), &told(&mount), &told(&local));
        // What an open directory answers to lseek(2) is a matter of its file system.
        let is_file = |file: &File| file.metadata().is_ok_and(|found| found.is_file());
        if let (Ok(mount), Ok(local)) = (mount, local)
            && is_file(&local)
        {
            self.held.push(Held { mount, local, what });
        }
    }

    fn each(&mut self, number: usize, what: &str, act: impl Fn(&File) -> io::Result<Vec<u8>>) {
        let held = &self.held[number];
        let tell = |file: &File| -> Told { act(file).map_err(|error| error.raw_os_error()) };
        let (mount, local) = (tell(&held.mount), tell(&held.local));
        let what = format!("{what} of {}", held.what);
        self.compare(what, &mount, &local);
    }
}
