//! T01: noise at a listener draws next to nothing and leaves nothing behind.
#![allow(clippy::unwrap_used, reason = "a test that cannot begin has failed")]

use std::fs;
use std::net::{SocketAddr, UdpSocket};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

const PROGRAM: &str = env!("CARGO_BIN_EXE_hikyaku");
const NOISE: usize = 1_000_000;
/// So many first, until all that is used once and kept is there.
const BEFORE: usize = 50_000;
const MOST_GROWTH: u64 = 1 << 20;
/// What asks for a proof of the address, or names a version.
const LONGEST_ANSWER: usize = 100;

/// A program that ends with the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

struct Scratch(PathBuf);

impl Scratch {
    fn perf(&self, words: &[&str]) -> Command {
        let mut command = Command::new(PROGRAM);
        command.arg("perf").args(words).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.env("XDG_STATE_HOME", &self.0).env("XDG_CACHE_HOME", &self.0);
        command
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// What a real client says first.
fn hello(scratch: &Scratch) -> Vec<u8> {
    let ear = UdpSocket::bind("127.0.0.1:0").unwrap();
    ear.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    let port = ear.local_addr().unwrap().port().to_string();
    let _client = Running(scratch.perf(&["-c", "127.0.0.1", "-p", &port]).spawn().unwrap());
    let mut room = vec![0; 2000];
    let (len, _) = ear.recv_from(&mut room).unwrap();
    room.truncate(len);
    room
}

/// Bytes of memory that a process has now.
fn resident(child: &Child) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    1024 * line.trim().trim_end_matches(" kB").parse::<u64>().unwrap()
}

/// Sends so much noise: random bytes, and the hello cut or with a bit flipped. Gives the answers.
fn noise(count: usize, hello: &[u8], target: SocketAddr, rng: &mut fastrand::Rng) -> Vec<usize> {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_nonblocking(true).unwrap();
    let (mut answers, mut room) = (Vec::new(), [0; 2000]);
    for index in 0..count {
        let datagram = match index % 3 {
            0 => (0..rng.usize(..1473)).map(|_| rng.u8(..)).collect(),
            1 => hello[..rng.usize(..hello.len())].to_vec(),
            _ => {
                let mut flipped = hello.to_vec();
                flipped[rng.usize(..hello.len())] ^= 1 << rng.usize(..8);
                flipped
            }
        };
        // What the host has no room for is noise that did not come.
        let _ = socket.send_to(&datagram, target);
        if index % 100 == 0 {
            answers.extend(std::iter::from_fn(|| socket.recv(&mut room).ok()));
        }
    }
    answers
}

#[test]
fn a_million_datagrams_of_noise_leave_nothing_behind() {
    let folder = std::env::temp_dir().join(format!("hikyaku-noise-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let scratch = Scratch(folder);
    let hello = hello(&scratch);
    let free = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let port = free.port().to_string();
    let mut server = Running(scratch.perf(&["-s", "-p", &port]).spawn().unwrap());
    let honest = || {
        let client = scratch.perf(&["-c", "127.0.0.1", "-p", &port, "-n", "1000"]);
        let output = { client }.output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        (output.status.success(), said)
    };
    let is_up = (0..50).any(|_| {
        sleep(Duration::from_millis(100));
        honest().0
    });
    assert!(is_up, "no server");
    let mut rng = fastrand::Rng::with_seed(7);
    noise(BEFORE, &hello, free, &mut rng);
    sleep(Duration::from_secs(1));
    let before = resident(&server.0);
    let answers = noise(NOISE, &hello, free, &mut rng);
    sleep(Duration::from_secs(1));
    let grown = resident(&server.0).saturating_sub(before);
    println!("{grown} bytes more, {} answers", answers.len());
    assert!(grown < MOST_GROWTH, "{grown} bytes more than before");
    assert!(answers.iter().all(|len| *len < LONGEST_ANSWER), "{:?}", answers.iter().max());
    let (is_in, said) = honest();
    assert!(is_in, "{said}");
    server.0.kill().unwrap();
    let said = std::io::read_to_string(server.0.stderr.take().unwrap()).unwrap();
    assert!(said.lines().count() < 10, "{said}");
}
