//! Mounts of a daemon's files, whose limit is the daemon's, the key's, or the mount's own.

use super::places::{KEY, MOUNT, MOUNT_RATE, SERVE};
use super::{Cell, FEW, LIMIT, MANY, WAYS, Way, timed, word};
use crate::common::daemon::{Client, Daemon};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Each cell has a daemon and a mount of its own. There are none where the machine has no FUSE.
pub(super) struct Mounts {
    all: Vec<Mounted>,
    _client: Client,
}

struct Mounted {
    at: PathBuf,
    place: &'static str,
    way: Way,
    _daemon: Daemon,
}

/// The file of so many bytes.
fn name_of(bytes: usize) -> String {
    format!("file-of-{bytes}")
}

/// Whether something can be mounted here.
pub(super) fn can_mount() -> bool {
    Path::new("/dev/fuse").exists()
}

impl Mounts {
    pub(super) fn new(name: &str) -> Self {
        let client = Client::new(name);
        let root = client.at("root");
        fs::create_dir(&root).unwrap();
        // A mount may rely for a second on what it has seen of a directory: the files are there before it.
        for bytes in [1, FEW, MANY] {
            fs::write(root.join(name_of(bytes)), vec![7; bytes]).unwrap();
        }
        let free = client.authorized("free", "");
        let capped = client.authorized("capped", &format!("max-rate={LIMIT}"));
        let mut all = Vec::new();
        if !can_mount() {
            println!("SKIPPED: no /dev/fuse");
            return Self { all, _client: client };
        }
        let limit = &["--rate", LIMIT][..];
        let places: [(&'static str, &Path, &[&str], &[&str]); 3] =
            [(SERVE, &free, limit, &[]), (KEY, &capped, &[], &[]), (MOUNT_RATE, &free, &[], limit)];
        for (place, keys, of_serve, of_mount) in places {
            for way in WAYS {
                let of_serve = [&["--writable"], of_serve].concat();
                let daemon = Daemon::start_with(&client, &root, keys, &of_serve);
                let at = client.at(&word((place, MOUNT, way)));
                fs::create_dir(&at).unwrap();
                let url = format!("hikyaku://{}/", daemon.address);
                timed(client.command(&["mount", &url]).args(of_mount).arg(&at));
                all.push(Mounted { at, place, way, _daemon: daemon });
            }
        }
        Self { all, _client: client }
    }

    pub(super) fn cells(&self) -> Vec<Cell<'_>> {
        self.all.iter().map(Self::cell).collect()
    }

    fn cell(mounted: &Mounted) -> Cell<'_> {
        let (place, by, way) = (mounted.place, MOUNT, mounted.way);
        let work = move |bytes: usize| {
            // Programs of their own: one that this process started meanwhile would get the open file too, and its close waits
            // for all that was written.
            let mut dd = Command::new("dd");
            dd.arg("bs=1M");
            timed(match way {
                Way::Down => {
                    dd.arg(format!("if={}", mounted.at.join(name_of(bytes)).display()));
                    dd.arg("of=/dev/null")
                }
                Way::Up => {
                    let name = format!("{}-{bytes}", word((place, by, way)));
                    dd.arg("if=/dev/zero").arg(format!("of={}", mounted.at.join(name).display()));
                    dd.args(["iflag=count_bytes,fullblock", "conv=fsync"]);
                    dd.arg(format!("count={bytes}"))
                }
            })
        };
        Cell { place, by, way, work: Box::new(work) }
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let mut umount = Command::new(env!("CARGO_BIN_EXE_hikyaku"));
        let _ = umount.arg("umount").arg(&self.at).output();
    }
}
