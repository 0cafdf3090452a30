//! Random changes of names and bytes, each made in a mount and in a local directory: results, errors, bytes and metadata are
//! equal, also of files that are open while their names change.
//!
//! A few hundred run with the other tests, 10^5 in each mode at night: `cargo xtask nightly --only mounts random_trees`.

mod held;

use super::place::{Mode, can_mount, random, seeds};
use held::Held;
use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// Names at each level: few, so that operations meet.
const NAMES: [&str; 6] = ["a", "b", "c", "d", "e", "f"];
/// Around the sizes of pages, of the kernel's requests and of messages.
const SIZES: [usize; 11] = [1, 7, 100, 4095, 4096, 4097, 65536, 131_072, 131_073, 200_000, 300_001];

/// Whether files stay open while others change names. A file that has no name any more changes the time of its directory at
/// the last close in a mount, and not here, so that times of directories are compared where none does.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Holds {
    Files,
    Nothing,
}

/// What an operation tells.
type Told = Result<Vec<u8>, Option<i32>>;

struct Both {
    rng: fastrand::Rng,
    mount: PathBuf,
    local: PathBuf,
    /// Files that are open.
    held: Vec<Held>,
    holds: Holds,
    /// What was done, for whoever looks for a difference.
    log: Vec<String>,
}

impl Both {
    fn path(&mut self) -> String {
        let depth = [1, 1, 1, 2, 2, 3][self.rng.usize(..6)];
        let names: Vec<&str> = (0..depth).map(|_| NAMES[self.rng.usize(..6)]).collect();
        names.join("/")
    }

    /// Does it in both, and compares.
    fn both(&mut self, what: String, act: impl Fn(&Path) -> io::Result<Vec<u8>>) {
        let tell = |base: &Path| -> Told { act(base).map_err(|error| error.raw_os_error()) };
        let (mount, local) = (tell(&self.mount), tell(&self.local));
        self.compare(what, &mount, &local);
    }

    fn compare(&mut self, what: String, mount: &Told, local: &Told) {
        let short = |told: &Told| match told {
            Ok(bytes) if bytes.len() > 100 => format!("{} bytes", bytes.len()),
            told => format!("{:?}", told.as_ref().map(|bytes| String::from_utf8_lossy(bytes))),
        };
        self.log.push(format!("{what} = {}", short(local)));
        if mount != local {
            let last = self.log[self.log.len().saturating_sub(40)..].join("\n");
            let place = self.mount.display();
            panic!("operation {} in {place}: {} there\n{last}", self.log.len(), short(mount));
        }
    }

    fn step(&mut self) {
        let holds = self.holds;
        let kinds = if holds == Holds::Files { 122 } else { 104 };
        let (path, kind) = (self.path(), self.rng.u32(..kinds));
        let size = SIZES[self.rng.usize(..SIZES.len())];
        let at = if self.rng.bool() { 0 } else { self.rng.u64(..400_000) };
        let bytes = random(self.rng.u64(..), size);
        match kind {
            0..14 => self.write(&path, at, &bytes),
            14..28 => self.both(format!("read {path}"), |base| fs::read(base.join(&path))),
            28..36 => self.both(format!("stat {path}"), |base| {
                fs::symlink_metadata(base.join(&path))
                    .map(|found| described(&found, holds).into_bytes())
            }),
            36..45 => self.both(format!("list {path}"), |base| listed(&base.join(&path))),
            45..47 => self.both("list .".to_owned(), listed),
            47..55 => {
                self.both(format!("mkdir {path}"), |base| done(fs::create_dir(base.join(&path))))
            }
            55..60 => {
                self.both(format!("rmdir {path}"), |base| done(fs::remove_dir(base.join(&path))))
            }
            60..67 => {
                self.both(format!("unlink {path}"), |base| done(fs::remove_file(base.join(&path))));
            }
            67..79 => {
                let to = self.path();
                self.both(format!("rename {path} {to}"), |base| {
                    done(fs::rename(base.join(&path), base.join(&to)))
                });
            }
            79..84 => self.both(format!("truncate {path} {at}"), |base| {
                done(File::options().write(true).open(base.join(&path))?.set_len(at))
            }),
            84..88 => {
                let text = ["a", "b", "c", "nowhere", "a/b"][self.rng.usize(..5)];
                self.both(format!("symlink {text} {path}"), |base| {
                    done(symlink(text, base.join(&path)))
                });
            }
            88..90 => self.both(format!("readlink {path}"), |base| {
                fs::read_link(base.join(&path))
                    .map(|text| text.into_os_string().into_encoded_bytes())
            }),
            90..95 => {
                let mode = [0o644, 0o600, 0o755, 0o444, 0o777][self.rng.usize(..5)];
                self.both(format!("chmod {path} {mode:o}"), |base| {
                    let path = base.join(&path);
                    let more = if path.is_dir() { 0o700 } else { 0 };
                    done(fs::set_permissions(path, Permissions::from_mode(mode | more)))
                });
            }
            100..104 => {
                let to = self.path();
                self.both(format!("copy {path} {to}"), |base| {
                    fs::copy(base.join(&path), base.join(&to))
                        .map(|length| length.to_string().into_bytes())
                });
            }
            104.. => self.held_step(&path, at, &bytes),
            _ => {
                let time = Duration::new(self.rng.u64(1..1 << 31), self.rng.u32(..1_000_000_000));
                self.both(format!("utime {path} {time:?}"), |base| {
                    let file = File::open(base.join(&path))?;
                    file.set_modified(SystemTime::UNIX_EPOCH + time)?;
                    let found = fs::metadata(base.join(&path))?;
                    Ok(format!("{} {}", found.mtime(), found.mtime_nsec()).into_bytes())
                });
            }
        }
    }

    fn write(&mut self, path: &str, at: u64, bytes: &[u8]) {
        let how =
            ["open", "create", "truncate", "exclusive", "append", "sync"][self.rng.usize(..6)];
        self.both(format!("write {path}, {how}, at {at}, {} bytes", bytes.len()), |base| {
            let mut options = OpenOptions::new();
            options.write(true).mode(0o644).create(how != "open").truncate(how == "truncate");
            match how {
                "exclusive" => drop(options.create_new(true)),
                "append" => drop(options.write(false).append(true)),
                "sync" => drop(options.custom_flags(rustix::fs::OFlags::SYNC.bits() as i32)),
                _ => {}
            }
            let mut file = options.open(base.join(path))?;
            done(if how == "append" { file.write_all(bytes) } else { file.write_all_at(bytes, at) })
        });
    }
}

fn done(result: io::Result<()>) -> io::Result<Vec<u8>> {
    result.map(|()| Vec::new())
}

fn listed(dir: &Path) -> io::Result<Vec<u8>> {
    let name = |entry: io::Result<fs::DirEntry>| {
        let entry = entry?;
        Ok(format!("{:?} {:?}", entry.file_name(), entry.file_type()?))
    };
    let mut names = fs::read_dir(dir)?.map(name).collect::<io::Result<Vec<String>>>()?;
    names.sort();
    Ok(names.join("/").into_bytes())
}

/// What of the metadata is equal in both: the kind, the mode but of links, the size but of directories, whether a file has
/// a name, and a time that was set.
fn described(found: &fs::Metadata, holds: Holds) -> String {
    let mode = if found.is_symlink() { 0 } else { found.mode() & 0o7777 };
    let size = if found.is_dir() { 0 } else { found.len() };
    let is_named = found.is_dir() || found.nlink() > 0;
    let age = found.modified().ok().and_then(|time| time.elapsed().ok());
    let time = match age {
        // A few clocks are apart, and a run takes a while.
        _ if found.is_dir() && holds == Holds::Files => "not compared".to_owned(),
        Some(age) if age < Duration::from_secs(7200) => "of this run".to_owned(),
        _ => format!("{}.{:09}", found.mtime(), found.mtime_nsec()),
    };
    format!("{:?} {mode:o} {size} {is_named} {time}", found.file_type())
}

/// Everything below a directory.
fn tree(top: &Path, holds: Holds) -> BTreeMap<PathBuf, (String, Vec<u8>)> {
    let (mut all, mut dirs) = (BTreeMap::new(), vec![top.to_owned()]);
    while let Some(dir) = dirs.pop() {
        for entry in fs::read_dir(&dir).unwrap() {
            let path = entry.unwrap().path();
            let found = fs::symlink_metadata(&path).unwrap();
            let bytes = match (found.is_file(), found.is_symlink()) {
                (true, _) => fs::read(&path).unwrap(),
                (_, true) => fs::read_link(&path).unwrap().into_os_string().into_encoded_bytes(),
                _ => Vec::new(),
            };
            if found.is_dir() {
                dirs.push(path.clone());
            }
            let below = path.strip_prefix(top).unwrap().to_owned();
            all.insert(below, (described(&found, holds), bytes));
        }
    }
    all
}

/// Compares so many operations of a seed.
fn check(mode: Mode, seed: u64, count: usize) {
    let place = mode.place(&format!("mount-random-{seed}"));
    fs::create_dir(place.at("local")).unwrap();
    let holds = if seed.is_multiple_of(2) { Holds::Files } else { Holds::Nothing };
    let mut both = Both {
        rng: fastrand::Rng::with_seed(seed),
        mount: place.mnt(""),
        local: place.at("local"),
        held: Vec::new(),
        holds,
        log: Vec::new(),
    };
    (0..count).for_each(|_| both.step());
    both.held.clear();
    let local = tree(&both.local, holds);
    assert!(tree(&both.mount, holds) == local, "{mode:?}, seed {seed}: the mount at the end");
    assert_eq!(place.status()["lost_changes"], 0);
    assert!(place.umount(&[]).status.success());
    assert!(tree(&place.root(""), holds) == local, "{mode:?}, seed {seed}: the server at the end");
}

#[test]
fn a_mount_answers_random_operations_as_a_local_directory_does() {
    if can_mount() {
        for mode in [Mode::Plain, Mode::Leases, Mode::Stage] {
            (1..3).for_each(|seed| check(mode, seed, 500));
        }
    }
}

/// 10^5 operations in 20 seeds.
fn check_many(mode: Mode) {
    if can_mount() {
        for seed in seeds(100..120) {
            check(mode, seed, 5_000);
            eprintln!("{mode:?}, seed {seed}: 5000 random operations, no difference");
        }
    }
}

#[test]
#[ignore = "takes an hour: 10^5 random operations of names and bytes"]
fn a_mount_answers_many_random_operations_as_a_local_directory_does() {
    check_many(Mode::Plain);
}

#[test]
#[ignore = "takes an hour: 10^5 random operations of names and bytes"]
fn a_mount_with_leases_answers_many_random_operations_as_a_local_directory_does() {
    check_many(Mode::Leases);
}

#[test]
#[ignore = "takes an hour: 10^5 random operations of names and bytes"]
fn a_staged_mount_answers_many_random_operations_as_a_local_directory_does() {
    check_many(Mode::Stage);
}
