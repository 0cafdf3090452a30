//! Random operations on one file, compared with memory: our own, and those of the program fsx, which has mappings as well.
//!
//! A few hundred run with the other tests, 10^5 of each in each mode at night: `cargo xtask nightly --only mounts one_file`.

use super::place::{Mode, Place, can_mount, random, said, seeds};
use std::fs::{self, File};
use std::io::{Read, Seek, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::Command;

const MODES: [Mode; 3] = [Mode::Plain, Mode::Leases, Mode::Stage];
const SIZE_MAX: usize = 600_000;

/// Operations of fsx: all that its documentation names but `posix_fallocate`, which FUSE's servers may lack.
const FSX: &str = "flen = 600000\n[opsize]\nmax = 80000\n[weights]\nclose_open = 2\nread = 10\nwrite = 10\nmapread = 10\n\
                   mapwrite = 10\ninvalidate = 1\ntruncate = 5\nfsync = 1\nfdatasync = 1\nsendfile = 3\n\
                   copy_file_range = 3\nposix_fadvise = 1\n";

/// A file, and what it is to have.
struct Modelled<'a> {
    rng: fastrand::Rng,
    path: &'a Path,
    file: File,
    model: Vec<u8>,
}

impl<'a> Modelled<'a> {
    fn new(path: &'a Path, seed: u64) -> Self {
        Self { rng: fastrand::Rng::with_seed(seed), path, file: opened(path), model: Vec::new() }
    }

    /// A range that begins anywhere, or where pages and requests of the kernel begin.
    fn range(&mut self) -> (usize, usize) {
        let at = match self.rng.u8(..4) {
            0 => self.rng.usize(..SIZE_MAX / 4096) * 4096,
            1 => self.rng.usize(..SIZE_MAX / 131_072) * 131_072,
            _ => self.rng.usize(..SIZE_MAX),
        };
        let length = match self.rng.u8(..4) {
            0 => 4096,
            1 => 1,
            _ => self.rng.usize(1..80_000),
        };
        (at, length.min(SIZE_MAX - at).max(1))
    }

    fn put(&mut self, at: usize, bytes: &[u8]) {
        let end = at + bytes.len();
        self.model.resize(self.model.len().max(end), 0);
        self.model[at..end].copy_from_slice(bytes);
    }

    /// What a read gives.
    fn expected(&self, at: usize, length: usize) -> &[u8] {
        let size = self.model.len();
        &self.model[at.min(size)..(at + length).min(size)]
    }

    fn step(&mut self, number: usize) {
        let (at, length) = self.range();
        let bytes = random(self.rng.u64(..), length);
        match self.rng.u8(..26) {
            0..7 => {
                self.file.write_all_at(&bytes, at as u64).unwrap();
                self.put(at, &bytes);
            }
            7..13 => {
                let mut read = vec![0; length];
                let read_length = read_whole(&self.file, &mut read, at);
                assert!(
                    read[..read_length] == *self.expected(at, length),
                    "{number}: {at} {length}"
                );
            }
            // By another descriptor.
            13..15 => {
                let read = fs::read(self.path).unwrap();
                assert!(read == self.model, "{number}: {} of {}", read.len(), self.model.len());
            }
            15..17 => {
                self.file.set_len(at as u64).unwrap();
                self.model.resize(at, 0);
            }
            17 => self.file.sync_all().unwrap(),
            18 => self.file.sync_data().unwrap(),
            19 => {
                let size = self.model.len() as u64;
                assert_eq!(self.file.metadata().unwrap().len(), size, "{number}");
                assert_eq!(fs::metadata(self.path).unwrap().len(), size, "{number}");
                assert_eq!(self.file.seek(std::io::SeekFrom::End(0)).unwrap(), size, "{number}");
            }
            20 if self.model.len() + length <= SIZE_MAX => {
                let mut end = File::options().append(true).open(self.path).unwrap();
                end.write_all(&bytes).unwrap();
                self.put(self.model.len(), &bytes);
            }
            21 => self.copy_range(at, length),
            22 => {
                // The file goes on under its name as another one.
                let copy = self.path.with_extension("copy");
                fs::copy(self.path, &copy).unwrap();
                fs::rename(&copy, self.path).unwrap();
                self.file = opened(self.path);
            }
            _ => self.file = opened(self.path),
        }
    }

    /// Copies within the file, as copy_file_range(2) does.
    fn copy_range(&mut self, from: usize, length: usize) {
        let to = self.rng.usize(..SIZE_MAX - length);
        // The kernel refuses ranges that overlap.
        if from.abs_diff(to) < length {
            return;
        }
        let expected = self.expected(from, length).to_vec();
        let (mut at, mut into, mut left) = (from as u64, to as u64, expected.len());
        while left > 0 {
            let file = &self.file;
            let copied =
                rustix::fs::copy_file_range(file, Some(&mut at), file, Some(&mut into), left);
            let copied = copied.unwrap();
            assert!(copied > 0, "{left} of {length} from {from} to {to}");
            left -= copied;
        }
        if !expected.is_empty() {
            self.put(to, &expected);
        }
    }
}

fn opened(path: &Path) -> File {
    File::options().read(true).write(true).create(true).truncate(false).open(path).unwrap()
}

/// Reads until the buffer is full or the file ends.
fn read_whole(mut file: &File, into: &mut [u8], at: usize) -> usize {
    file.seek(std::io::SeekFrom::Start(at as u64)).unwrap();
    let mut read = Vec::new();
    file.take(into.len() as u64).read_to_end(&mut read).unwrap();
    into[..read.len()].copy_from_slice(&read);
    read.len()
}

fn operate(mode: Mode, seed: u64, steps: usize) {
    let place = mode.place(&format!("mount-one-file-{seed}"));
    let path = place.mnt("file");
    let mut file = Modelled::new(&path, seed);
    (0..steps).for_each(|number| file.step(number));
    let model = file.model;
    file.file.sync_all().unwrap();
    drop(file.file);
    assert!(place.umount(&[]).status.success());
    assert!(fs::read(place.root("file")).unwrap() == model, "{mode:?}, seed {seed}: the server");
}

#[test]
fn random_operations_leave_what_they_leave_in_memory() {
    if can_mount() {
        MODES.into_iter().for_each(|mode| operate(mode, 1, 300));
    }
}

/// 10^5 operations in 20 seeds.
fn operate_long(mode: Mode) {
    if can_mount() {
        for seed in seeds(100..120) {
            operate(mode, seed, 5_000);
            eprintln!("{mode:?}, seed {seed}: 5000 operations on one file, no difference");
        }
    }
}

#[test]
#[ignore = "takes ten minutes: 10^5 random operations on one file"]
fn many_random_operations_leave_what_they_leave_in_memory() {
    operate_long(Mode::Plain);
}

#[test]
#[ignore = "takes ten minutes: 10^5 random operations on one file"]
fn many_random_operations_with_leases_leave_what_they_leave_in_memory() {
    operate_long(Mode::Leases);
}

#[test]
#[ignore = "takes ten minutes: 10^5 random operations on one file"]
fn many_random_operations_that_are_staged_leave_what_they_leave_in_memory() {
    operate_long(Mode::Stage);
}

/// 10^5 operations of fsx in 20 seeds.
fn fsx_long(mode: Mode) {
    if !can_mount() {
        return;
    }
    if Command::new("fsx").arg("-V").output().is_err() {
        eprintln!("\n*** SKIPPED, because there is no fsx: cargo install fsx ***\n");
        return;
    }
    for seed in seeds(100..120) {
        fsx(&mode.place(&format!("mount-fsx-{seed}")), seed);
        eprintln!("{mode:?}, seed {seed}: 5000 operations of fsx, no difference");
    }
}

#[test]
#[ignore = "takes ten minutes: 10^5 operations of fsx"]
fn fsx_finds_no_difference() {
    fsx_long(Mode::Plain);
}

#[test]
#[ignore = "takes ten minutes: 10^5 operations of fsx"]
fn fsx_finds_no_difference_with_leases() {
    fsx_long(Mode::Leases);
}

#[test]
#[ignore = "takes ten minutes: 10^5 operations of fsx"]
fn fsx_finds_no_difference_with_a_stage() {
    fsx_long(Mode::Stage);
}

fn fsx(place: &Place, seed: u64) {
    fs::write(place.at("fsx.toml"), FSX).unwrap();
    let mut command = Command::new("fsx");
    command.arg("-f").arg(place.at("fsx.toml")).args(["-N", "5000", "-S", &seed.to_string(), "-P"]);
    let output = command.arg(place.at("")).arg(place.mnt("file")).output().unwrap();
    let told = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "seed {seed}: {told}{}", said(&output));
    assert!(place.umount(&[]).status.success());
}
