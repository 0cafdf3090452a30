//! Mounts of a daemon's files, whose limit is the daemon's or the key's.

use super::places::{KEY, MOUNT, SERVE};
use super::{Cell, LIMIT, WAYS, Way, timed, word};
use crate::common::daemon::{Client, Daemon};
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

/// Each cell has a daemon and a mount of its own. There are none where the machine has no FUSE.
pub(super) struct Mounts {
    all: Vec<Mounted>,
    client: Client,
}

struct Mounted {
    at: PathBuf,
    place: &'static str,
    way: Way,
    _daemon: Daemon,
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
        let free = client.authorized("free", "");
        let capped = client.authorized("capped", &format!("max-rate={LIMIT}"));
        let mut all = Vec::new();
        if !can_mount() {
            println!("SKIPPED: no /dev/fuse");
            return Self { all, client };
        }
        let places: [(&'static str, &Path, &[&str]); 2] =
            [(SERVE, &free, &["--rate", LIMIT]), (KEY, &capped, &[])];
        for (place, keys, of_serve) in places {
            for way in WAYS {
                let of_serve = [&["--writable"], of_serve].concat();
                let daemon = Daemon::start_with(&client, &root, keys, &of_serve);
                let at = client.at(&word((place, MOUNT, way)));
                fs::create_dir(&at).unwrap();
                let url = format!("hikyaku://{}/", daemon.address);
                timed(client.command(&["mount", &url]).arg(&at));
                all.push(Mounted { at, place, way, _daemon: daemon });
            }
        }
        Self { all, client }
    }

    pub(super) fn cells(&self) -> Vec<Cell<'_>> {
        self.all.iter().map(|mounted| self.cell(mounted)).collect()
    }

    fn cell<'a>(&'a self, mounted: &'a Mounted) -> Cell<'a> {
        let (place, by, way) = (mounted.place, MOUNT, mounted.way);
        let work = move |bytes: usize| {
            let name = format!("{}-{bytes}", word((place, by, way)));
            let (far, near) = (self.client.at("root").join(&name), mounted.at.join(&name));
            if way == Way::Down {
                fs::write(&far, vec![7; bytes]).unwrap();
            }
            let begin = Instant::now();
            match way {
                Way::Down => assert_eq!(fs::read(&near).unwrap().len(), bytes),
                Way::Up => {
                    let mut file = File::create(&near).unwrap();
                    file.write_all(&vec![7; bytes]).unwrap();
                    file.sync_all().unwrap();
                }
            }
            begin.elapsed()
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
