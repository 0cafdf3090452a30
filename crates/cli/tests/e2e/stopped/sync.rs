//! `hikyaku sync`: the same command continues the file that was under way, with hikyaku at the far side and by SFTP.

use super::stopped;
use crate::by_sftp::has_begun;
use crate::common::{Sshd, listing, partials, random};
use std::fs;
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

const BYTES: usize = 20_000_000;
/// A copy is stopped after this number of bytes.
const SOME: usize = 6_000_000;

/// A port on loopback that leads to a server's, and counts connections and what goes through them.
struct Counter {
    port: u16,
    connections: Arc<AtomicU64>,
    bytes: Arc<AtomicU64>,
}

impl Counter {
    fn before(server: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (port, bytes) = (listener.local_addr().unwrap().port(), Arc::<AtomicU64>::default());
        let (counted, connections) = (bytes.clone(), Arc::<AtomicU64>::default());
        let accepted = connections.clone();
        thread::spawn(move || {
            for near in listener.incoming().flatten() {
                accepted.fetch_add(1, Ordering::Relaxed);
                let far = TcpStream::connect(("127.0.0.1", server)).unwrap();
                let ends = [(&near, &far), (&far, &near)];
                for (from, to) in ends.map(|(from, to)| (from.try_clone(), to.try_clone())) {
                    let (from, to, counted) = (from.unwrap(), to.unwrap(), counted.clone());
                    thread::spawn(move || carry(&from, &to, &counted));
                }
            }
        });
        Self { port, connections, bytes }
    }
}

fn carry(mut from: &TcpStream, mut to: &TcpStream, counted: &AtomicU64) {
    let mut buffer = vec![0; 1 << 16];
    // Either end may go at any time.
    while let Ok(length @ 1..) = std::io::Read::read(&mut from, &mut buffer) {
        counted.fetch_add(length as u64, Ordering::Relaxed);
        if std::io::Write::write_all(&mut to, &buffer[..length]).is_err() {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Write);
}

/// A machine that is reached through a port that counts, and trees of both ends.
struct Rig {
    sshd: Sshd,
    counter: Counter,
}

impl Rig {
    fn new(name: &str) -> Self {
        let sshd = Sshd::with_lines(name, "Subsystem sftp internal-sftp\n");
        let config = fs::read_to_string(sshd.at("ssh_config")).unwrap();
        let port = config.lines().find_map(|line| line.trim().strip_prefix("Port ")).unwrap();
        let counter = Counter::before(port.parse().unwrap());
        let counted = config.replace(&format!("Port {port}"), &format!("Port {}", counter.port));
        fs::write(sshd.at("counted_config"), counted).unwrap();
        fs::create_dir_all(sshd.at("from/d")).unwrap();
        for (name, bytes) in [("a", 3_000), ("big", BYTES), ("d/x", 3_000)] {
            fs::write(sshd.at("from").join(name), random(bytes as u64, bytes)).unwrap();
        }
        Self { sshd, counter }
    }

    fn path(&self, name: &str) -> String {
        format!("{}/", self.sshd.at(name).display())
    }

    fn far(&self, name: &str) -> String {
        format!("{}/", self.sshd.far(name))
    }

    fn sync(&self, program: &str, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_hikyaku"));
        let rsh = format!("ssh -F {}", self.sshd.at("counted_config").display());
        command.args(["sync", "-r", "-t", "-e", &rsh, "--remote-path", program]).args(words);
        command.env("XDG_STATE_HOME", self.sshd.at("state")).stdin(Stdio::null());
        command
    }

    /// Stops a copy in the middle of its large file, and runs the same command again. Returns the bytes that went through
    /// the port of ssh meanwhile.
    fn stopped_and_continued(&self, program: &str, ends: [String; 2], to: &Path) -> u64 {
        let (name, ends) = (to.display(), [&*ends[0], &*ends[1]]);
        let mut first = self.sync(program, &["--rate", "16m", ends[0], ends[1]]);
        let said = stopped(&mut first, || has_begun(to, SOME));
        assert!(said.contains("stopped; the same command continues from here"), "{name}: {said}");
        let drafts = partials(to);
        assert_eq!(drafts.len(), 1, "{name}: {said}");
        let inode = |path: &Path| fs::metadata(path).unwrap().ino();
        let begun = inode(&to.join(&drafts[0]));
        let before = self.counter.bytes.load(Ordering::Relaxed);
        let output = self.sync(program, &ends).output().unwrap();
        let moved = self.counter.bytes.load(Ordering::Relaxed) - before;
        assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
        assert!(listing(to) == listing(&self.sshd.at("from")), "{name}");
        assert_eq!(inode(&to.join("big")), begun, "{name}: the file that was begun is not used");
        moved
    }
}

#[test]
fn a_stopped_synchronization_by_sftp_is_continued() {
    let rig = Rig::new("stopped-sync");
    for (name, ends) in
        [("put", [rig.path("from"), rig.far("put")]), ("get", [rig.far("from"), rig.path("get")])]
    {
        let moved = rig.stopped_and_continued("none", ends, &rig.sshd.at(name));
        // Bytes that were under way are sent again.
        assert!(moved < BYTES as u64 - 1_000_000, "{name}: {moved} bytes");
    }
}

#[test]
fn a_stopped_synchronization_with_hikyaku_is_continued() {
    let rig = Rig::new("stopped-sync-native");
    let program = env!("CARGO_BIN_EXE_hikyaku");
    for (name, ends) in [
        ("push", [rig.path("from"), rig.far("push")]),
        ("pull", [rig.far("from"), rig.path("pull")]),
    ] {
        rig.stopped_and_continued(program, ends, &rig.sshd.at(name));
    }
}

#[test]
fn a_synchronization_logs_in_once_for_its_session_and_its_copies() {
    let rig = Rig::new("sync-login");
    for (name, ends) in [
        ("push", [rig.path("from"), rig.far("push")]),
        ("pull", [rig.far("from"), rig.path("pull")]),
    ] {
        let before = rig.counter.connections.load(Ordering::Relaxed);
        let mut sync = rig.sync(env!("CARGO_BIN_EXE_hikyaku"), &[&ends[0], &ends[1]]);
        let output = sync.output().unwrap();
        assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
        assert!(listing(&rig.sshd.at(name)) == listing(&rig.sshd.at("from")), "{name}");
        let logins = rig.counter.connections.load(Ordering::Relaxed) - before;
        assert_eq!(logins, 1, "{name}: {}", String::from_utf8_lossy(&output.stderr));
    }
}
