//! A small HTTP server for one page: GET only, on the loopback address, behind a token.
//!
//! Other users of this machine can connect to the port, and pages of other sites can make the user's browser do so. Neither
//! knows the token, without which nothing is answered, and requests for another host than a loopback address are refused.

use crate::window::Window;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

/// Answers a path behind the token, without its slash at the front.
pub(crate) type Answer = dyn Fn(&str) -> Reply + Send + Sync;

/// What is answered.
pub(crate) struct Reply {
    pub(crate) status: Status,
    /// The type of the content.
    pub(crate) kind: &'static str,
    pub(crate) body: Body,
}

/// The content of an answer.
pub(crate) enum Body {
    Text(String),
    Static(&'static [u8]),
    Window(Arc<Window>),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Status {
    Ok,
    NotFound,
    Failed,
}

/// The port, and the token that addresses begin with.
pub(crate) struct Door {
    listener: TcpListener,
    token: String,
    port: u16,
}

/// Connections at once. A browser opens six.
const CONNECTIONS_MAX: usize = 32;
/// Bytes of the head of a request.
const HEAD_BYTES_MAX: usize = 16 << 10;
const HEADERS_MAX: usize = 64;
/// A request comes and an answer goes within this time, between two of its bytes.
const SILENCE: Duration = Duration::from_secs(120);
/// Bytes of the token.
const TOKEN_BYTES: usize = 16;

impl Reply {
    pub(crate) fn text(status: Status, text: String) -> Self {
        Self { status, kind: "text/plain; charset=utf-8", body: Body::Text(text) }
    }

    pub(crate) fn not_found() -> Self {
        Self::text(Status::NotFound, "not found".to_owned())
    }
}

impl Body {
    fn bytes(&self) -> &[u8] {
        match self {
            Self::Text(text) => text.as_bytes(),
            Self::Static(bytes) => bytes,
            Self::Window(window) => window.bytes(),
        }
    }
}

impl Door {
    /// Takes a port of the loopback address; 0 for any that is free.
    ///
    /// # Errors
    ///
    /// The port is taken, or the system has no random numbers.
    pub(crate) fn open(port: u16) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))?;
        let mut random = [0; TOKEN_BYTES];
        std::fs::File::open("/dev/urandom")?.read_exact(&mut random)?;
        let token = random.iter().map(|byte| format!("{byte:02x}")).collect();
        let port = listener.local_addr()?.port();
        Ok(Self { listener, token, port })
    }

    /// The address of the page.
    pub(crate) fn address(&self) -> String {
        format!("http://127.0.0.1:{}/{}/", self.port, self.token)
    }

    /// Answers requests until the process ends.
    ///
    /// # Errors
    ///
    /// The socket fails.
    pub(crate) fn serve(self, answer: Arc<Answer>) -> io::Result<()> {
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
            if thread::Builder::new().name("view-page".to_owned()).spawn(attend).is_err() {
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
        let (mut head, mut piece) = (Vec::new(), [0; 4096]);
        loop {
            let asked = loop {
                match read_request(&head, self.port) {
                    Asked::More if head.len() < HEAD_BYTES_MAX => {}
                    Asked::More => break Asked::Broken,
                    asked => break asked,
                }
                let length = stream.read(&mut piece)?;
                if length == 0 {
                    return Ok(());
                }
                head.extend_from_slice(&piece[..length]);
            };
            let reply = match &asked {
                Asked::Path(path, _) => match path.strip_prefix(&format!("/{}/", self.token)) {
                    Some(path) => answer(path),
                    None => Reply::not_found(),
                },
                Asked::More | Asked::Broken => Reply::not_found(),
            };
            send(stream, &reply)?;
            match asked {
                Asked::Path(_, length) => drop(head.drain(..length)),
                Asked::More | Asked::Broken => return Ok(()),
            }
        }
    }
}

/// What the bytes of a request are.
#[derive(PartialEq, Eq, Debug)]
enum Asked {
    /// A GET of this path, and how many bytes the request has.
    Path(String, usize),
    /// The head is not complete.
    More,
    /// Nothing that is answered.
    Broken,
}

/// Reads the head of a request.
// fuzz: none, the head is parsed by httparse, and only whole values are compared
fn read_request(head: &[u8], port: u16) -> Asked {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut request = httparse::Request::new(&mut headers);
    match request.parse(head) {
        Ok(httparse::Status::Complete(length)) => {
            let mut hosts =
                request.headers.iter().filter(|header| header.name.eq_ignore_ascii_case("host"));
            let (host, other) = (hosts.next(), hosts.next());
            let ours = [format!("127.0.0.1:{port}"), format!("localhost:{port}")];
            let is_ours = |host: &httparse::Header<'_>| {
                ours.iter().any(|ours| host.value.eq_ignore_ascii_case(ours.as_bytes()))
            };
            match (request.method, request.path) {
                (Some("GET"), Some(path)) if host.is_some_and(is_ours) && other.is_none() => {
                    Asked::Path(path.to_owned(), length)
                }
                _ => Asked::Broken,
            }
        }
        Ok(httparse::Status::Partial) => Asked::More,
        Err(_) => Asked::Broken,
    }
}

fn send(mut stream: &TcpStream, reply: &Reply) -> io::Result<()> {
    let status = match reply.status {
        Status::Ok => "200 OK",
        Status::NotFound => "404 Not Found",
        Status::Failed => "500 Failed",
    };
    let body = reply.body.bytes();
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {}\r\nContent-Length: {}\r\nCache-Control: no-store\r\n\
         X-Content-Type-Options: nosniff\r\nReferrer-Policy: no-referrer\r\n\
         Content-Security-Policy: default-src 'self'; frame-ancestors 'none'\r\n\r\n",
        reply.kind,
        body.len()
    );
    stream.write_all(head.as_bytes())?;
    stream.write_all(body)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_requests_for_this_host_are_answered() {
        let ask = |text: &str| read_request(text.as_bytes(), 80);
        let good = "GET /x/ HTTP/1.1\r\nHost: 127.0.0.1:80\r\n\r\n";
        assert_eq!(ask(good), Asked::Path("/x/".to_owned(), good.len()));
        assert_eq!(ask(&good[..good.len() - 2]), Asked::More);
        for bad in [
            "POST /x/ HTTP/1.1\r\nHost: 127.0.0.1:80\r\n\r\n",
            "GET /x/ HTTP/1.1\r\nHost: evil.example:80\r\n\r\n",
            "GET /x/ HTTP/1.1\r\nHost: 127.0.0.1:81\r\n\r\n",
            "GET /x/ HTTP/1.1\r\nHost: 127.0.0.1:80\r\nHost: a\r\n\r\n",
            "GET /x/ HTTP/1.1\r\n\r\n",
            "nothing\r\n\r\n",
        ] {
            assert_eq!(ask(bad), Asked::Broken, "{bad}");
        }
    }

    #[test]
    fn nothing_is_answered_without_the_token() {
        let door = Door::open(0).unwrap();
        let (address, port) = (door.address(), door.port);
        let path = address.split(&port.to_string()).nth(1).unwrap().to_owned();
        let answer = |path: &str| Reply::text(Status::Ok, format!("<{path}>"));
        thread::spawn(move || door.serve(Arc::new(answer)));
        let ask = |path: &str| {
            let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
            let request = format!("GET {path} HTTP/1.1\r\nHost: localhost:{port}\r\n\r\n");
            stream.write_all(request.as_bytes()).unwrap();
            stream.shutdown(std::net::Shutdown::Write).unwrap();
            let mut reply = String::new();
            stream.read_to_string(&mut reply).unwrap();
            reply
        };
        let good = ask(&format!("{path}a?b=1"));
        assert!(good.starts_with("HTTP/1.1 200") && good.ends_with("<a?b=1>"), "{good}");
        for bad in ["/", "/a", &format!("/{}/a", "0".repeat(32)), &path[..path.len() - 1]] {
            assert!(ask(bad).starts_with("HTTP/1.1 404"), "{bad}");
        }
    }
}
