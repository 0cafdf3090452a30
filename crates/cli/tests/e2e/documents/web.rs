//! A web server at `a.example.org` and `b.example.org` of the two hosts.

use super::hosts::Hosts;
use hikyaku_tun::in_namespace;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::spawn;

/// SHA-256 of [`body`].
pub(super) const DIGEST: &str = "9f8807c96dc74efeca7e6793108f0ef0bdd2d436b0f106a02817a61119133fe8";

pub(super) struct Server {
    last: Arc<Mutex<String>>,
}

/// Every file but archives.
fn body() -> Vec<u8> {
    vec![b'7'; 200_000]
}

impl Server {
    /// Listens at port 80 in the network namespace of the hosts, until the end of the process.
    pub(super) fn start(hosts: &Hosts) -> Self {
        let bind = || TcpListener::bind("127.0.0.2:80");
        let listener = in_namespace(&hosts.network(), bind).unwrap();
        // The archive has the file `x`.
        let packed = "cd \"$(mktemp -d)\" && echo x > x && tar cz x && rm x && rmdir \"$PWD\"";
        let packed = Command::new("sh").args(["-c", packed]).stdin(Stdio::null()).output().unwrap();
        let last = Arc::new(Mutex::new(String::new()));
        let kept = Arc::clone(&last);
        spawn(move || {
            for stream in listener.incoming().flatten() {
                let (archive, kept) = (packed.stdout.clone(), Arc::clone(&kept));
                // An error means that the client has closed the connection.
                spawn(move || answer(stream, &archive, &kept));
            }
        });
        Self { last }
    }

    /// The head of the last request.
    pub(super) fn last_request(&self) -> String {
        self.last.lock().unwrap().clone()
    }
}

fn answer(stream: TcpStream, archive: &[u8], last: &Mutex<String>) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head)? == 0 {
            return Ok(());
        }
    }
    let is_archive = head.lines().next().is_some_and(|line| line.contains(".tgz "));
    let sent = if is_archive { archive.to_vec() } else { body() };
    *last.lock().unwrap() = head;
    let answer =
        format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", sent.len());
    let stream = reader.get_mut();
    stream.write_all(answer.as_bytes())?;
    stream.write_all(&sent)
}
