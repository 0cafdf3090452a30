//! A port with a thread for each connection.

use crate::gate::{Asked, Gate};
use crate::reply::{After, Reply};
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

/// Answers a path behind the token, without its slash at the front.
pub type Answer = dyn Fn(&str) -> Reply + Send + Sync;

/// A port of the loopback address.
pub struct Door {
    listener: TcpListener,
    gate: Gate,
}

/// Connections at once. A browser opens six.
const CONNECTIONS_MAX: usize = 32;
/// A request comes and an answer goes within this time, between two of its bytes.
const SILENCE: Duration = Duration::from_secs(120);
/// Bytes of a read.
const READ_BYTES: usize = 4096;

impl Door {
    /// Takes a port of the loopback address; 0 for any that is free.
    ///
    /// # Errors
    ///
    /// The port is taken, or the system has no random numbers.
    pub fn open(port: u16) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))?;
        let gate = Gate::new(listener.local_addr()?.port())?;
        Ok(Self { listener, gate })
    }

    /// The address of the page.
    pub fn address(&self) -> String {
        self.gate.address()
    }

    /// Answers requests until the process ends.
    ///
    /// # Errors
    ///
    /// The socket fails.
    pub fn serve(self, answer: Arc<Answer>) -> io::Result<()> {
        let door = Arc::new(self);
        let open = Arc::new(AtomicUsize::new(0));
        for stream in door.listener.incoming() {
            let Ok(stream) = stream else { continue };
            if open.fetch_add(1, Ordering::Relaxed) >= CONNECTIONS_MAX {
                open.fetch_sub(1, Ordering::Relaxed);
                continue;
            }
            let (door, answer, counted) = (door.clone(), answer.clone(), open.clone());
            let attend = move || {
                // A browser that has gone is not told.
                let _ = door.attend(&stream, &*answer);
                counted.fetch_sub(1, Ordering::Relaxed);
            };
            if thread::Builder::new().name("page".to_owned()).spawn(attend).is_err() {
                open.fetch_sub(1, Ordering::Relaxed);
            }
        }
        Ok(())
    }

    /// Answers the requests of a connection, one after the other.
    fn attend(&self, mut stream: &TcpStream, answer: &Answer) -> io::Result<()> {
        stream.set_read_timeout(Some(SILENCE))?;
        stream.set_write_timeout(Some(SILENCE))?;
        stream.set_nodelay(true)?;
        let (mut head, mut piece) = (Vec::new(), [0; READ_BYTES]);
        loop {
            match self.gate.read(&head) {
                Asked::More => {
                    let length = stream.read(&mut piece)?;
                    if length == 0 {
                        return Ok(());
                    }
                    head.extend_from_slice(&piece[..length]);
                }
                Asked::Path { path, length } => {
                    send(stream, &answer(&path), After::Stay)?;
                    head.drain(..length);
                }
                Asked::Refused => return send(stream, &Reply::not_found(), After::Close),
            }
        }
    }
}

fn send(mut stream: &TcpStream, reply: &Reply, after: After) -> io::Result<()> {
    stream.write_all(reply.head(after).as_bytes())?;
    stream.write_all(reply.body.bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reply::Status;

    #[test]
    fn nothing_is_answered_without_the_token() {
        let door = Door::open(0).unwrap();
        let (address, port) = (door.address(), door.gate.socket().port());
        let path = address.split(&port.to_string()).nth(1).unwrap().to_owned();
        let answer = |path: &str| Reply::text(Status::Ok, format!("<{path}>"));
        thread::spawn(move || door.serve(Arc::new(answer)));
        let ask = |paths: &[&str]| {
            let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
            for path in paths {
                let request = format!("GET {path} HTTP/1.1\r\nHost: localhost:{port}\r\n\r\n");
                stream.write_all(request.as_bytes()).unwrap();
            }
            stream.shutdown(std::net::Shutdown::Write).unwrap();
            let mut reply = String::new();
            stream.read_to_string(&mut reply).unwrap();
            reply
        };
        let good = ask(&[&format!("{path}a?b=1")]);
        assert!(good.starts_with("HTTP/1.1 200") && good.ends_with("<a?b=1>"), "{good}");
        let both = ask(&[&format!("{path}1"), &format!("{path}2")]);
        assert!(both.contains("<1>") && both.ends_with("<2>"), "{both}");
        for bad in ["/", "/a", &format!("/{}/a", "0".repeat(32)), &path[..path.len() - 1]] {
            assert!(ask(&[bad]).starts_with("HTTP/1.1 404"), "{bad}");
        }
    }
}
