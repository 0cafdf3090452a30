//! Datagrams of noise sent to a listener draw almost no answers and leave no state behind.

use crate::common::perf::{Server, hikyaku};
use std::fs;
use std::net::{SocketAddr, UdpSocket};
use std::process::{Child, Stdio};
use std::thread::sleep;
use std::time::Duration;

const NOISE_DATAGRAMS: usize = 1_000_000;
/// Datagrams sent before the first measurement, so that memory which is allocated once and kept
/// does not count.
const WARM_UP_DATAGRAMS: usize = 50_000;
/// Allowed growth of the server's memory, in bytes.
const GROWTH_BYTES_MAX: u64 = 1 << 20;
/// Longest answer in bytes: an address validation or a version negotiation packet.
const ANSWER_BYTES_MAX: usize = 100;

/// The first packet of a real client.
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

/// Resident memory of a process in bytes.
fn resident(child: &Child) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    1024 * line.trim().trim_end_matches(" kB").parse::<u64>().unwrap()
}

/// Sends `count` datagrams: random bytes, and the first packet truncated or with a bit flipped.
/// Returns the lengths of the answers.
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
        // Datagrams that do not fit into the host's buffers are dropped.
        let _ = socket.send_to(&datagram, target);
        if index % 100 == 0 {
            answers.extend(std::iter::from_fn(|| socket.recv(&mut room).ok()));
        }
    }
    answers
}

#[test]
fn a_million_datagrams_of_noise_leave_no_state_behind() {
    let mut server = Server::with_errors_to(Stdio::piped(), &[]);
    let hello = hello(&server);
    let target = SocketAddr::from(([127, 0, 0, 1], server.port));
    let honest = |server: &Server| {
        let output = server.run(&["-n", "1000"]);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    };
    honest(&server);
    let mut rng = fastrand::Rng::with_seed(7);
    noise(WARM_UP_DATAGRAMS, &hello, target, &mut rng);
    sleep(Duration::from_secs(1));
    let before = resident(&server.child);
    let answers = noise(NOISE_DATAGRAMS, &hello, target, &mut rng);
    sleep(Duration::from_secs(1));
    let grown = resident(&server.child).saturating_sub(before);
    println!("{grown} bytes more, {} answers", answers.len());
    assert!(grown < GROWTH_BYTES_MAX, "{grown} bytes more than before");
    assert!(answers.iter().all(|len| *len < ANSWER_BYTES_MAX), "{:?}", answers.iter().max());
    honest(&server);
    server.child.kill().unwrap();
    let said = std::io::read_to_string(server.child.stderr.take().unwrap()).unwrap();
    assert!(said.lines().count() < 10, "{said}");
}
