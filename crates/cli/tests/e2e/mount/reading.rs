//! Programs that read through a mount.

use super::place::{Place, can_mount, date, random, said, until};
use rustix::mount::{MountFlags, mount_remount};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{BufRead, BufReader, ErrorKind, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{DirEntryExt, FileExt, MetadataExt, symlink};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

#[test]
fn programs_read_the_bytes_of_the_server() {
    if !can_mount() {
        return;
    }
    let place = Place::new("mount-bytes");
    let sizes = [0, 1, 4096, 131_072, 262_145, 1 << 20, 9_000_001, 37_000_003];
    let files: Vec<Vec<u8>> =
        sizes.iter().enumerate().map(|(n, &size)| random(n as u64, size)).collect();
    for (bytes, size) in files.iter().zip(sizes) {
        fs::write(place.root(&size.to_string()), bytes).unwrap();
    }
    place.mount(&[]);
    for (bytes, size) in files.iter().zip(sizes) {
        let path = place.mnt(&size.to_string());
        let cat = Command::new("cat").arg(&path).output().unwrap();
        assert!(cat.stdout == *bytes, "cat of {size} bytes");
        // A second time, from what is kept.
        assert!(fs::read(&path).unwrap() == *bytes, "{size} bytes again");
    }
    let largest = &files[7];
    let path = place.mnt("37000003");
    // Mapped into memory: cmp(1) maps neither, so a program that does.
    let mapped = Command::new("python3")
        .arg("-c")
        .arg("import mmap,sys,hashlib\nf=open(sys.argv[1],'rb')\nm=mmap.mmap(f.fileno(),0,access=mmap.ACCESS_READ)\nsys.stdout.buffer.write(m[:])")
        .arg(&path)
        .output();
    match mapped {
        Ok(output) => assert!(output.stdout == *largest, "mmap: {}", said(&output)),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            eprintln!("\n*** mmap SKIPPED, because there is no python3 ***\n");
        }
        Err(error) => panic!("{error}"),
    }
    let output = place.umount(&[]);
    assert!(output.status.success(), "{}", said(&output));
    assert!(!place.is_mounted());
}

#[test]
fn eight_threads_read_at_random_places() {
    if !can_mount() {
        return;
    }
    let place = Place::new("mount-random");
    let bytes = random(4, 60_000_001);
    fs::write(place.root("a"), &bytes).unwrap();
    // Less memory than the file has, so that blocks are evicted.
    place.mount(&["--cache", "32MiB"]);
    thread::scope(|scope| {
        for seed in 0..8 {
            let (place, bytes) = (&place, &bytes);
            scope.spawn(move || {
                let file = File::open(place.mnt("a")).unwrap();
                let mut rng = fastrand::Rng::with_seed(seed);
                for _ in 0..150 {
                    let at = rng.usize(..bytes.len());
                    let length = 1 + rng.usize(..300_000);
                    let end = bytes.len().min(at + length);
                    let mut read = vec![0; end - at];
                    file.read_exact_at(&mut read, at as u64).unwrap();
                    assert!(read == bytes[at..end], "{at}..{end}");
                }
                // Behind the end is nothing.
                assert_eq!(file.read_at(&mut [0; 10], bytes.len() as u64).unwrap(), 0);
            });
        }
    });
    // Backwards, in short steps.
    let mut file = File::open(place.mnt("a")).unwrap();
    let mut at = 40_000_000;
    while at > 20_000_000 {
        at -= 65_536;
        file.seek(SeekFrom::Start(at as u64)).unwrap();
        let mut read = vec![0; 65_536];
        file.read_exact(&mut read).unwrap();
        assert!(read == bytes[at..at + 65_536], "{at}");
    }
}

#[test]
fn a_tree_of_names_is_the_same() {
    if !can_mount() {
        return;
    }
    let place = Place::new("mount-tree");
    for dir in 0..30 {
        fs::create_dir_all(place.root(&format!("d{dir}/deep/er"))).unwrap();
        for file in 0..40 {
            let path = place.root(&format!("d{dir}/deep/file {file} \u{e9}"));
            fs::write(&path, vec![b'x'; dir * file]).unwrap();
        }
    }
    fs::create_dir(place.root("many")).unwrap();
    (0..3000).for_each(|n| fs::write(place.root(&format!("many/{n}")), "").unwrap());
    symlink("d1/deep", place.root("link")).unwrap();
    symlink("/nowhere/at all", place.root("dangling")).unwrap();
    place.mount(&["-o", "ro,default_permissions"]);
    let list = |dir: PathBuf| {
        // The size of a directory is a matter of the server's file system.
        let dirs = ["-type", "d", "-printf", "%P|d|%m|%T@\n", "-o"];
        let find = dirs.into_iter().chain(["-printf", "%P|%y|%s|%m|%T@|%l\n"]);
        let output = Command::new("find").arg(dir).args(find).output().unwrap();
        assert!(output.status.success(), "{}", said(&output));
        let mut lines: Vec<String> =
            String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect();
        lines.sort();
        lines
    };
    assert_eq!(list(place.at("mnt")), list(place.at("root")));
    assert_eq!(fs::read_link(place.mnt("dangling")).unwrap(), Path::new("/nowhere/at all"));
    assert_eq!(fs::read(place.mnt("link/file 3 \u{e9}")).unwrap(), b"xxx");
    let missing = fs::metadata(place.mnt("d1/nothing")).unwrap_err();
    assert_eq!(missing.kind(), ErrorKind::NotFound);
    let not_a_dir = fs::metadata(place.mnt("many/1/x")).unwrap_err();
    assert_eq!(not_a_dir.kind(), ErrorKind::NotADirectory);
    assert!(fs::metadata(place.mnt(&"n".repeat(256))).is_err());
    let refused = fs::write(place.mnt("new"), "x").unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::ReadOnlyFilesystem);
    assert_eq!(fs::metadata(place.mnt("many")).unwrap().uid(), 0);
    let stat = Command::new("stat").args(["-f", "-c", "%b"]).arg(place.at("mnt")).output().unwrap();
    assert_ne!(String::from_utf8_lossy(&stat.stdout).trim(), "0");
}

#[test]
fn a_file_that_changed_is_seen_at_the_next_open_and_never_mixed() {
    if !can_mount() {
        return;
    }
    let place = Place::new("mount-changes");
    let (old, new) = (random(1, 20_000_000), random(2, 20_000_000));
    fs::write(place.root("a"), &old).unwrap();
    date(&place.root("a"), 1000);
    place.mount(&[]);
    let file = File::open(place.mnt("a")).unwrap();
    let mut read = vec![0; 200_000];
    file.read_exact_at(&mut read, 0).unwrap();
    assert!(read == old[..200_000]);
    fs::write(place.root("a"), &new).unwrap();
    date(&place.root("a"), 2000);
    // Who opens now sees the new content.
    assert!(fs::read(place.mnt("a")).unwrap() == new);
    // Who has it open gets old bytes or an error.
    let mut errors = 0;
    for at in (0..20_000_000).step_by(1_000_000) {
        match file.read_exact_at(&mut read, at as u64) {
            Ok(()) => assert!(read == old[at..at + 200_000], "mixed at {at}"),
            Err(error) => {
                assert_eq!(error.raw_os_error(), Some(116), "{error}");
                errors += 1;
            }
        }
    }
    assert!(errors > 0, "the old bytes cannot all be here");
    // One that is replaced, as most programs do it.
    fs::write(place.root("b"), &old).unwrap();
    fs::rename(place.root("b"), place.root("a")).unwrap();
    assert!(fs::read(place.mnt("a")).unwrap() == old);
    fs::remove_file(place.root("a")).unwrap();
    until("the file is seen after it was removed", || !place.mnt("a").exists());
    // One that grows is read on, as tail(1) needs.
    fs::write(place.root("log"), "first\n").unwrap();
    // That a name is not there may be known for a second.
    until("the log is not seen", || place.mnt("log").exists());
    let mut log = File::open(place.mnt("log")).unwrap();
    let mut text = String::new();
    log.read_to_string(&mut text).unwrap();
    assert_eq!(text, "first\n");
    let mut writer = File::options().append(true).open(place.root("log")).unwrap();
    writer.write_all(b"second\n").unwrap();
    until("the second line is not seen", || {
        log.read_to_string(&mut text).unwrap();
        text == "first\nsecond\n"
    });
    // A name that was not there, and is.
    assert!(!place.mnt("late").exists());
    fs::write(place.root("late"), "x").unwrap();
    until("the new name is not seen", || place.mnt("late").exists());
}

#[test]
fn files_of_an_attribute_cache_are_opened_without_the_server() {
    if !can_mount() {
        return;
    }
    let mut place = Place::new("mount-attr-cache");
    fs::create_dir(place.root("dir")).unwrap();
    fs::write(place.root("dir/a"), "what is known").unwrap();
    fs::write(place.root("dir/b"), "before").unwrap();
    place.mount(&["--attr-cache", "10m", "--timeout", "2s"]);
    assert_eq!(fs::read(place.mnt("dir/a")).unwrap(), b"what is known");
    assert_eq!(fs::read(place.mnt("dir/b")).unwrap(), b"before");
    assert!(fs::read(place.mnt("dir/none")).is_err());
    // A change at the server is not seen, as was said.
    fs::write(place.root("dir/b"), "behind").unwrap();
    date(&place.root("dir/b"), 1_000_000_000);
    assert_eq!(fs::read(place.mnt("dir/b")).unwrap(), b"before");
    place.kill_daemon();
    for _ in 0..3 {
        assert_eq!(fs::read(place.mnt("dir/a")).unwrap(), b"what is known");
        assert_eq!(fs::metadata(place.mnt("dir/a")).unwrap().size(), 13);
        let absent = fs::read(place.mnt("dir/none")).unwrap_err();
        assert_eq!(absent.kind(), ErrorKind::NotFound);
    }
}

#[test]
fn a_lost_server_is_waited_for_and_a_restarted_one_goes_on() {
    if !can_mount() {
        return;
    }
    let mut place = Place::new("mount-lost");
    let bytes = random(1, 50_000_000);
    fs::write(place.root("a"), &bytes).unwrap();
    place.mount(&["--timeout", "40s"]);
    let file = File::open(place.mnt("a")).unwrap();
    let mut read = vec![0; 100_000];
    file.read_exact_at(&mut read, 0).unwrap();
    place.kill_daemon();
    thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let mut read = vec![0; 1_000_000];
            file.read_exact_at(&mut read, 45_000_000).unwrap();
            assert!(read == bytes[45_000_000..46_000_000]);
        });
        thread::sleep(Duration::from_millis(300));
        place.start();
        reader.join().unwrap();
    });
    assert!(fs::read(place.mnt("a")).unwrap() == bytes);
}

#[test]
fn a_server_that_stays_away_is_an_error_and_umount_works() {
    if !can_mount() {
        return;
    }
    let mut place = Place::new("mount-gone");
    fs::write(place.root("a"), random(1, 50_000_000)).unwrap();
    place.mount(&["--timeout", "2s"]);
    let file = File::open(place.mnt("a")).unwrap();
    file.read_exact_at(&mut [0; 1000], 0).unwrap();
    place.kill_daemon();
    let error = file.read_exact_at(&mut [0; 1000], 45_000_000).unwrap_err();
    assert_eq!(error.raw_os_error(), Some(5), "{error}");
    let error = fs::metadata(place.mnt("nothing known")).unwrap_err();
    assert_eq!(error.raw_os_error(), Some(5), "{error}");
    // A program still has a file open.
    let busy = place.umount(&[]);
    assert!(!busy.status.success() && said(&busy).contains("umount --now"), "{}", said(&busy));
    drop(file);
    let output = place.umount(&[]);
    assert!(output.status.success(), "{}", said(&output));
}

#[test]
fn umount_now_ends_a_read_that_waits() {
    if !can_mount() {
        return;
    }
    let mut place = Place::new("mount-waits");
    fs::write(place.root("a"), random(1, 50_000_000)).unwrap();
    place.mount(&["--timeout", "1000s"]);
    let server = place.server();
    let file = File::open(place.mnt("a")).unwrap();
    file.read_exact_at(&mut [0; 1000], 0).unwrap();
    place.kill_daemon();
    thread::scope(|scope| {
        let reader = scope.spawn(|| file.read_exact_at(&mut [0; 1000], 45_000_000));
        thread::sleep(Duration::from_millis(200));
        let output = place.umount(&["--now"]);
        assert!(output.status.success(), "{}", said(&output));
        assert!(reader.join().unwrap().is_err());
    });
    assert!(!place.is_mounted());
    // One that has ended and was not waited for is a zombie.
    let stat = fs::read_to_string(format!("/proc/{server}/stat")).unwrap_or_default();
    assert!(stat.is_empty() || stat.contains(") Z"), "{stat}");
}

#[test]
fn a_signal_unmounts_and_figures_are_told() {
    if !can_mount() {
        return;
    }
    let place = Place::new("mount-signal");
    fs::write(place.root("a"), random(1, 3_000_000)).unwrap();
    let mut command = place.command(&["mount", "-f", "--json", &place.source("")]);
    let mut child = command.arg(place.at("mnt")).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    let mut next = || serde_json::from_str::<serde_json::Value>(&lines.next().unwrap()).unwrap();
    let begun = next();
    assert_eq!((&begun["event"], &begun["access"]), (&"mounted".into(), &"read".into()), "{begun}");
    assert!(place.is_mounted());
    until("nothing is there", || fs::read(place.mnt("a")).is_ok_and(|a| a.len() == 3_000_000));
    let status = place.command(&["mount", "--status"]).arg(place.at("mnt")).output().unwrap();
    let figures: serde_json::Value = serde_json::from_slice(&status.stdout).unwrap();
    assert_eq!(figures["connected"], true);
    assert!(figures["read_bytes"].as_u64() >= Some(3_000_000), "{figures}");
    let again = place.command(&["mount", &place.source("")]).arg(place.at("mnt")).output().unwrap();
    assert!(said(&again).contains("a mount already"), "{}", said(&again));
    assert_eq!(again.status.code(), Some(6));
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    let ended = child.wait().unwrap();
    assert_eq!(ended.signal(), Some(15), "{ended}");
    assert!(!place.is_mounted());
    let last = next();
    assert!(last["status"]["read_bytes"].as_u64() >= Some(3_000_000), "{last}");
    let mut command = place.command(&["mount", "--json", &place.source("")]);
    let output = command.arg(place.at("mnt")).output().unwrap();
    let begun: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(begun["directory"], place.at("mnt").display().to_string());
}

#[test]
fn a_mount_without_udp_is_carried_by_tcp() {
    if !can_mount() {
        return;
    }
    let place = Place::new("mount-no-udp");
    fs::write(place.root("a"), "content").unwrap();
    let port: u16 = place.source("").split([':', '/']).nth(4).unwrap().parse().unwrap();
    // Connections of this machine to the port of the daemon: proc_net_tcp(5).
    let connections = || {
        let (all, port) = (fs::read_to_string("/proc/net/tcp").unwrap(), format!(":{port:04X}"));
        let words = all.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
        words.filter(|words| words[2].ends_with(&port) && words[3] == "01").count()
    };
    place.mount(&["--no-udp"]);
    assert_eq!(fs::read(place.mnt("a")).unwrap(), b"content");
    assert!(connections() > 0);
}

#[test]
fn the_program_is_a_helper_of_mount() {
    if !can_mount() {
        return;
    }
    let place = Place::new("mount-helper");
    fs::write(place.root("a"), "content").unwrap();
    let helper = place.at("mount.hikyaku");
    symlink(env!("CARGO_BIN_EXE_hikyaku"), &helper).unwrap();
    let mounted = Command::new(&helper)
        .env("XDG_STATE_HOME", place.at("state"))
        .arg(place.source(""))
        .arg(place.mnt(""))
        .args(["-v", "-o", "ro,_netdev,attr_cache=5m,timeout=3s", "-t", "hikyaku"])
        .output()
        .unwrap();
    assert!(mounted.status.success(), "{}", said(&mounted));
    assert_eq!(fs::read(place.mnt("a")).unwrap(), b"content");
}

#[test]
fn figures_are_a_file_that_listings_do_not_show() {
    if !can_mount() {
        return;
    }
    let place = Place::new("mount-figures");
    fs::write(place.root("a"), "content").unwrap();
    place.mount(&[]);
    let read = || -> serde_json::Value {
        serde_json::from_slice(&fs::read(place.mnt(".hikyaku/stats")).unwrap()).unwrap()
    };
    assert_eq!(read()["read_bytes"], 0);
    assert!(read()["limit"].is_string());
    assert_eq!(fs::read(place.mnt("a")).unwrap(), b"content");
    assert_eq!(read()["read_bytes"], 7);
    let names = |dir: &str| -> Vec<_> {
        fs::read_dir(place.mnt(dir)).unwrap().map(|entry| entry.unwrap().file_name()).collect()
    };
    assert_eq!((names(""), names(".hikyaku")), (vec!["a".into()], vec!["stats".into()]));
    assert!(fs::write(place.mnt(".hikyaku/stats"), "x").is_err());
    assert!(fs::write(place.mnt(".hikyaku/new"), "x").is_err());
}

#[test]
fn a_signal_ends_a_program_that_waits_for_a_server() {
    if !can_mount() {
        return;
    }
    let place = Place::with("mount-interrupt", &["--writable"]);
    fs::write(place.root("a"), "content").unwrap();
    place.mount(&["--timeout", "60s", "--attr-ttl", "1ms"]);
    assert_eq!(fs::read(place.mnt("a")).unwrap(), b"content");
    place.stop_daemon();
    let open = format!("cat {}", place.mnt("a").display());
    let look = format!("stat {}", place.mnt("b").display());
    let make = format!("mkdir {}", place.mnt("d").display());
    for (words, signal) in [(open, "INT"), (look, "TERM"), (make, "KILL")] {
        let mut child = Command::new("sh").args(["-c", &format!("exec {words}")]).spawn().unwrap();
        until("the program waits", || {
            let stack = place.stack_of(child.id());
            // Where there is no stack, wchan names the function alone.
            ["fuse", "request_wait_answer"].iter().any(|word| stack.contains(word))
                || child.try_wait().unwrap().is_some()
        });
        let id = child.id().to_string();
        assert!(
            Command::new("kill").args([&format!("-{signal}"), &id]).status().unwrap().success()
        );
        until(&words, || child.try_wait().unwrap().is_some());
    }
    place.go_on_daemon();
    assert_eq!(fs::read(place.mnt("a")).unwrap(), b"content");
}

/// The inode numbers of all entries below a directory, by path, as stat(2) and as readdir(3) tell them.
fn numbers(dir: &Path) -> BTreeMap<PathBuf, u64> {
    let mut numbers = BTreeMap::new();
    for entry in fs::read_dir(dir).unwrap().map(|entry| entry.unwrap()) {
        let found = fs::symlink_metadata(entry.path()).unwrap();
        assert_eq!(entry.ino(), found.ino(), "{}", entry.path().display());
        numbers.insert(entry.path(), found.ino());
        if found.is_dir() {
            numbers.extend(self::numbers(&entry.path()));
        }
    }
    numbers
}

#[test]
fn inode_numbers_are_the_same_after_the_kernel_has_forgotten_and_in_the_next_mount() {
    if !can_mount() {
        return;
    }
    let place = Place::new("mount-numbers");
    let second = place.second();
    for (n, root) in [place.at("root"), second.root.clone()].iter().enumerate() {
        for dir in ["a", "a/b", "c"] {
            fs::create_dir_all(root.join(dir)).unwrap();
            for file in 0..40 {
                fs::write(root.join(dir).join(format!("{file}-{n}")), "x").unwrap();
            }
        }
    }
    let several = format!("{},{}", place.address(), second.address);
    for servers in [place.address(), &several] {
        let mut seen = Vec::new();
        for round in 0..2 {
            place.mount_of(&["--attr-ttl", "10ms"], servers);
            // In another order at the second time.
            if round == 1 {
                fs::metadata(place.mnt("c/7-0")).unwrap();
            }
            seen.push(numbers(&place.at("mnt")));
            // The kernel forgets the names of a file system that is mounted again in its place.
            mount_remount(place.at("mnt"), MountFlags::NOSUID | MountFlags::NODEV, "").unwrap();
            seen.push(numbers(&place.at("mnt")));
            assert!(place.umount(&[]).status.success());
        }
        let distinct: BTreeSet<u64> = seen[0].values().copied().collect();
        assert_eq!(distinct.len(), seen[0].len(), "{servers}");
        assert!(seen.iter().all(|numbers| *numbers == seen[0]), "{servers}");
    }
    // Those of one server are its own.
    place.mount(&[]);
    let own = |path: PathBuf| fs::metadata(path).unwrap().ino();
    assert_eq!(own(place.mnt("a/b/3-0")), own(place.root("a/b/3-0")));
}

/// What of a server is bound to a directory, until the end of the test.
struct Bound(PathBuf);

impl Drop for Bound {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.0).status();
    }
}

#[test]
fn a_file_without_a_size_is_refused_at_once() {
    if !can_mount() {
        return;
    }
    let place = Place::new("mount-sizeless");
    fs::create_dir(place.root("core")).unwrap();
    let bind = ["--bind", "/proc/sys/net/core"];
    let bound = Command::new("mount").args(bind).arg(place.root("core")).status().unwrap();
    assert!(bound.success());
    let _bound = Bound(place.root("core"));
    fs::write(place.root("empty"), "").unwrap();
    place.mount(&[]);
    let path = place.mnt("core/somaxconn");
    let opened = File::open(&path).unwrap_err();
    assert_eq!(opened.raw_os_error(), Some(rustix::io::Errno::NXIO.raw_os_error()), "{opened}");
    assert!(!fs::symlink_metadata(&path).unwrap().is_file());
    assert_eq!(fs::read(place.mnt("empty")).unwrap(), b"");
}
