//! T01: noise at a listener draws next to nothing and leaves nothing behind.
#![allow(clippy::unwrap_used, reason = "a test that cannot begin has failed")]

mod common;

use common::perf::{Server, hikyaku};
use std::fs;
use std::net::{SocketAddr, UdpSocket};
use std::process::{Child, Stdio};
use std::thread::sleep;
use std::time::Duration;

const NOISE: usize = 1_000_000;
/// So many first, until all that is used once and kept is there.
const BEFORE: usize = 50_000;
const MOST_GROWTH: u64 = 1 << 20;
/// What asks for a proof of the address, or names a version.
const LONGEST_ANSWER: usize = 100;

/// What a real client says first.
fn hello(server: &Server) -> Vec<u8> {
    let ear = UdpSocket::bind("127.0.0.1:0").unwrap();
    ear.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    let port = ear.local_addr().unwrap().port().to_string();
    let mut client = hikyaku(&server.state);
    client
        .args(["perf", "-c", "127.0.0.1", "-p", &port])
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let mut client = client.spawn().unwrap();
    let mut room = vec![0; 2000];
    let heard = ear.recv_from(&mut room);
    client.kill().unwrap();
    client.wait().unwrap();
    let (len, _) = heard.unwrap();
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
    let mut server = Server::with_errors_to(Stdio::piped(), &[]);
    let hello = hello(&server);
    let target = SocketAddr::from(([127, 0, 0, 1], server.port));
    let honest = |server: &Server| {
        let output = server.run(&["-n", "1000"]);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    };
    honest(&server);
    let mut rng = fastrand::Rng::with_seed(7);
    noise(BEFORE, &hello, target, &mut rng);
    sleep(Duration::from_secs(1));
    let before = resident(&server.child);
    let answers = noise(NOISE, &hello, target, &mut rng);
    sleep(Duration::from_secs(1));
    let grown = resident(&server.child).saturating_sub(before);
    println!("{grown} bytes more, {} answers", answers.len());
    assert!(grown < MOST_GROWTH, "{grown} bytes more than before");
    assert!(answers.iter().all(|len| *len < LONGEST_ANSWER), "{:?}", answers.iter().max());
    honest(&server);
    server.child.kill().unwrap();
    let said = std::io::read_to_string(server.child.stderr.take().unwrap()).unwrap();
    assert!(said.lines().count() < 10, "{said}");
}
