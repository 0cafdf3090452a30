//! A web server of a few files that gives ranges and versions, and records requests and connections.

use super::proxy::server;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// The head of a request.
pub(crate) struct Request {
    /// Its lines, each with a line feed.
    head: String,
    /// The first and the last byte that it asks for.
    range: Option<(usize, Option<usize>)>,
}

impl Request {
    /// Reads the next one. `None`: the client has closed the connection.
    pub(crate) fn read(reader: &mut impl BufRead) -> std::io::Result<Option<Self>> {
        let (mut head, mut range) = (String::new(), None);
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line)? == 0 {
                return Ok(None);
            }
            let line = line.trim_end();
            head.extend([line, "\n"]);
            let lower = line.to_ascii_lowercase();
            if let Some((first, last)) =
                lower.strip_prefix("range: bytes=").and_then(|text| text.split_once('-'))
            {
                range = Some((first.parse().unwrap_or(0), last.parse().ok()));
            }
            if line.is_empty() {
                return Ok(Some(Self { head, range }));
            }
        }
    }

    /// A word of its first line: method, target, version.
    pub(crate) fn word(&self, at: usize) -> &str {
        self.head.split([' ', '\n']).nth(at).unwrap_or_default()
    }

    /// The bytes that it asks for, of a file of this size.
    pub(crate) fn range(&self, size: usize) -> Option<Range<usize>> {
        let (first, last) = self.range?;
        Some(first.min(size)..last.map_or(size, |last| (last + 1).min(size)))
    }
}

/// The server. It answers as long as the test runs.
pub(crate) struct Web {
    pub(crate) port: u16,
    served: Arc<Served>,
    seen: Arc<Seen>,
}

/// The requests and connections up to now.
#[derive(Default)]
struct Seen {
    heads: Mutex<Vec<String>>,
    connections: AtomicUsize,
}

/// The files by their paths, the address of all others, and the limit of the connections.
#[derive(Default)]
struct Served {
    files: BTreeMap<String, Vec<u8>>,
    elsewhere: Option<String>,
    grants: Option<Grants>,
}

struct Grants {
    most: usize,
    open: AtomicUsize,
    refused: AtomicUsize,
}

/// Bytes that a server with a limit sends at once, with a pause before each.
const PIECE_BYTES: usize = 256 << 10;
const PAUSE: Duration = Duration::from_millis(10);

impl Web {
    /// Serves these files by their names.
    pub(crate) fn start(files: &[(&str, Vec<u8>)]) -> Self {
        Self::serve(Served { files: by_path(files), ..Served::default() })
    }

    /// The same, slowly, over this number of connections at once. Others get status 503.
    pub(crate) fn granting(files: &[(&str, Vec<u8>)], most: usize) -> Self {
        let (open, refused) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let grants = Some(Grants { most, open, refused });
        Self::serve(Served { files: by_path(files), grants, ..Served::default() })
    }

    /// Redirects all requests to an address.
    pub(crate) fn redirecting(to: &str) -> Self {
        Self::serve(Served { elsewhere: Some(to.to_owned()), ..Served::default() })
    }

    fn serve(served: Served) -> Self {
        let (served, seen) = (Arc::new(served), Arc::<Seen>::default());
        let (of_server, noted) = (Arc::clone(&served), Arc::clone(&seen));
        let port = server(move |stream| {
            // An error means that the client has closed the connection.
            noted.connections.fetch_add(1, Ordering::Relaxed);
            let _ = match &of_server.grants {
                Some(grants) => grants.answer(stream, &of_server, &noted.heads),
                None => answer(stream, &of_server, &noted.heads),
            };
        });
        Self { port, served, seen }
    }

    /// Connections that were refused.
    pub(crate) fn refused(&self) -> usize {
        self.served.grants.as_ref().map_or(0, |grants| grants.refused.load(Ordering::SeqCst))
    }

    pub(crate) fn url(&self, name: &str) -> String {
        format!("http://127.0.0.1:{}/{name}", self.port)
    }

    /// The heads of the requests since the last call, of this one and of `methods`. Their lines end with a line feed.
    pub(crate) fn heads(&self) -> Vec<String> {
        self.seen.heads.lock().unwrap().drain(..).collect()
    }

    /// The methods of the requests.
    pub(crate) fn methods(&self) -> Vec<String> {
        let method = |head: &String| head.split(' ').next().unwrap_or_default().to_owned();
        self.heads().iter().map(method).collect()
    }

    /// The number of connections up to now.
    pub(crate) fn connections(&self) -> usize {
        self.seen.connections.load(Ordering::Relaxed)
    }
}

impl Grants {
    fn answer(
        &self,
        stream: TcpStream,
        served: &Served,
        heads: &Mutex<Vec<String>>,
    ) -> std::io::Result<()> {
        let done = match self.open.fetch_add(1, Ordering::SeqCst) < self.most {
            true => answer(stream, served, heads),
            false => self.refuse(stream),
        };
        self.open.fetch_sub(1, Ordering::SeqCst);
        done
    }

    fn refuse(&self, mut stream: TcpStream) -> std::io::Result<()> {
        self.refused.fetch_add(1, Ordering::SeqCst);
        Request::read(&mut BufReader::new(stream.try_clone()?))?;
        stream.write_all(b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
    }
}

fn by_path(files: &[(&str, Vec<u8>)]) -> BTreeMap<String, Vec<u8>> {
    files.iter().map(|(name, bytes)| (format!("/{name}"), bytes.clone())).collect()
}

fn answer(stream: TcpStream, served: &Served, heads: &Mutex<Vec<String>>) -> std::io::Result<()> {
    let pause = served.grants.as_ref().map(|_| PAUSE);
    let mut reader = BufReader::new(stream);
    loop {
        let Some(request) = Request::read(&mut reader)? else { return Ok(()) };
        let found = served.files.get(request.word(1));
        heads.lock().unwrap().push(request.head.clone());
        if let Some(to) = &served.elsewhere {
            let answer =
                format!("HTTP/1.1 302 Found\r\nLocation: {to}\r\nContent-Length: 0\r\n\r\n");
            reader.get_mut().write_all(answer.as_bytes())?;
            continue;
        }
        let Some(bytes) = found else {
            reader.get_mut().write_all(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")?;
            continue;
        };
        let size = bytes.len();
        let part = request.range(size);
        let status = if part.is_some() { "206 Partial Content" } else { "200 OK" };
        let body = part.clone().unwrap_or(0..size);
        let mut head = format!(
            "HTTP/1.1 {status}\r\nContent-Length: {}\r\nETag: \"one\"\r\nAccept-Ranges: bytes\r\n",
            body.len()
        );
        if let Some(part) = part.filter(|part| !part.is_empty()) {
            head.push_str(&format!(
                "Content-Range: bytes {}-{}/{size}\r\n",
                part.start,
                part.end - 1
            ));
        }
        reader.get_mut().write_all(format!("{head}\r\n").as_bytes())?;
        if request.word(0) != "HEAD" {
            for piece in bytes[body].chunks(pause.map_or(usize::MAX, |_| PIECE_BYTES)) {
                pause.into_iter().for_each(thread::sleep);
                reader.get_mut().write_all(piece)?;
            }
        }
    }
}
