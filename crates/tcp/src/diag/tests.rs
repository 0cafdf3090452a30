//! Sockets of this process, seen from outside.

use super::*;
use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

fn pair(address: &str) -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind(address).unwrap();
    let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    (client, listener.accept().unwrap().0)
}

#[test]
fn what_a_program_has_not_read_is_seen_from_the_other_end() {
    let mut diag = Diag::new().unwrap();
    for address in ["127.0.0.1:0", "[::1]:0"] {
        let (client, mut server) = pair(address);
        server.write_all(&[7; 50_000]).unwrap();
        let (own, peer) = (server.local_addr().unwrap(), server.peer_addr().unwrap());
        // The bytes cross loopback in some microseconds.
        let end = Instant::now() + Duration::from_secs(10);
        let queues = loop {
            let queues = diag.queues(peer, own).unwrap().unwrap();
            if queues.unread == 50_000 || Instant::now() > end {
                break queues;
            }
        };
        assert_eq!(queues.unread, 50_000, "{address}");
        let (held, most) = queues.receive_memory.unwrap();
        assert!((50_000..=most).contains(&held), "{held} of {most}");
        assert_eq!(queues.uid, rustix::process::geteuid().as_raw());
        let link = std::fs::read_link(format!("/proc/self/fd/{}", client.as_raw_fd())).unwrap();
        assert_eq!(link.to_string_lossy(), format!("socket:[{}]", queues.inode));
        assert_eq!(diag.queues(own, peer).unwrap().unwrap().unread, 0);
        drop(client);
    }
}

#[test]
fn a_connection_that_does_not_exist_is_none() {
    let mut diag = Diag::new().unwrap();
    let (one, two) = ("127.0.0.1:1".parse().unwrap(), "127.0.0.1:2".parse().unwrap());
    assert_eq!(diag.queues(one, two).unwrap(), None);
    // The netlink socket answers further requests.
    let (client, server) = pair("127.0.0.1:0");
    let (own, peer) = (client.local_addr().unwrap(), client.peer_addr().unwrap());
    assert!(diag.queues(own, peer).unwrap().is_some());
    drop(server);
}

#[test]
fn answers_that_are_cut_are_no_answers() {
    let answer = request("127.0.0.1:1".parse().unwrap(), "127.0.0.1:2".parse().unwrap());
    for length in 0..answer.len() {
        assert!(read(&answer[..length]).is_err(), "{length}");
    }
}
