//! A port with a thread for each connection.

use crate::gate::{Asked, Gate};
use crate::guests::{Guests, Place, Stage};
use crate::reply::{After, Reply};
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

/// Answers a path behind the token, without its slash at the front.
pub type Answer = dyn Fn(&str) -> Reply + Send + Sync;

/// A port of the loopback address.
pub struct Door {
    listener: TcpListener,
    gate: Gate,
}

/// The first request of a connection is whole within this time.
const FIRST_HEAD: Duration = Duration::from_secs(5);
/// A later request begins, and an answer goes, within this time.
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
        let (door, guests) = (Arc::new(self), Arc::new(Guests::default()));
        for stream in door.listener.incoming() {
            let Ok(stream) = stream else { continue };
            let Some(place) = guests.enter(&stream) else { continue };
            let (door, answer) = (door.clone(), answer.clone());
            let attend = move || {
                // An error means that the browser has closed the connection.
                let _ = door.attend(&stream, &place, &*answer);
            };
            // Without a thread the place is given back, and the connection ends.
            let _ = thread::Builder::new().name("page".to_owned()).spawn(attend);
        }
        Ok(())
    }

    /// Answers the requests of a connection, one after the other.
    fn attend(&self, mut stream: &TcpStream, place: &Place, answer: &Answer) -> io::Result<()> {
        stream.set_write_timeout(Some(SILENCE))?;
        stream.set_nodelay(true)?;
        let (mut head, mut piece) = (Vec::new(), [0; READ_BYTES]);
        let mut until = Instant::now() + FIRST_HEAD;
        loop {
            match self.gate.read(&head) {
                Asked::More => {
                    let left = until.saturating_duration_since(Instant::now());
                    if left.is_zero() {
                        return Err(io::ErrorKind::TimedOut.into());
                    }
                    stream.set_read_timeout(Some(left))?;
                    let length = stream.read(&mut piece)?;
                    if length == 0 {
                        return Ok(());
                    }
                    head.extend_from_slice(&piece[..length]);
                }
                Asked::Path { path, length } => {
                    place.set(Stage::Answered);
                    send(stream, &answer(&path), After::Stay)?;
                    place.set(Stage::Idle);
                    until = Instant::now() + SILENCE;
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
    use crate::guests::CONNECTIONS_MAX;
    use crate::reply::Status;

    #[test]
    fn silent_connections_keep_no_browser_out() {
        let door = Door::open(0).unwrap();
        let (address, port) = (door.address(), door.gate.socket().port());
        let path = address.split(&port.to_string()).nth(1).unwrap().to_owned();
        thread::spawn(move || {
            door.serve(Arc::new(|_: &str| Reply::text(Status::Ok, "fine".into())))
        });
        let connect = || TcpStream::connect(("127.0.0.1", port)).unwrap();
        let ask = |mut stream: &TcpStream| {
            let request = format!("GET {path} HTTP/1.1\r\nHost: localhost:{port}\r\n\r\n");
            stream.write_all(request.as_bytes()).unwrap();
            let mut answer = [0; 15];
            stream.read_exact(&mut answer).map(|()| answer == *b"HTTP/1.1 200 OK")
        };
        let browser = connect();
        assert!(ask(&browser).unwrap());
        let silent: Vec<TcpStream> = (0..2 * CONNECTIONS_MAX).map(|_| connect()).collect();
        assert!(ask(&connect()).unwrap());
        // The first of them have ended to make room.
        assert_eq!((&silent[0]).read(&mut [0]).unwrap_or(0), 0);
    }

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
