//! A web server of a few files that gives ranges and versions, and records requests and connections.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

/// The server. It answers as long as the test runs.
pub(crate) struct Web {
    pub(crate) port: u16,
    seen: Arc<Seen>,
}

/// The requests and connections up to now.
#[derive(Default)]
struct Seen {
    heads: Mutex<Vec<String>>,
    connections: AtomicUsize,
}

/// The files by their paths, and the address of all others.
struct Served {
    files: BTreeMap<String, Vec<u8>>,
    elsewhere: Option<String>,
}

impl Web {
    /// Serves these files by their names.
    pub(crate) fn start(files: &[(&str, Vec<u8>)]) -> Self {
        let files = files.iter().map(|(name, bytes)| (format!("/{name}"), bytes.clone()));
        Self::serve(Served { files: files.collect(), elsewhere: None })
    }

    /// Redirects all requests to an address.
    pub(crate) fn redirecting(to: &str) -> Self {
        Self::serve(Served { files: BTreeMap::new(), elsewhere: Some(to.to_owned()) })
    }

    fn serve(served: Served) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let (served, seen) = (Arc::new(served), Arc::<Seen>::default());
        let of_server = Arc::clone(&seen);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (served, seen) = (Arc::clone(&served), Arc::clone(&of_server));
                seen.connections.fetch_add(1, Ordering::Relaxed);
                // An error means that the client has closed the connection.
                thread::spawn(move || answer(stream, &served, &seen.heads));
            }
        });
        Self { port, seen }
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

fn answer(stream: TcpStream, served: &Served, heads: &Mutex<Vec<String>>) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream);
    loop {
        let (mut head, mut range) = (String::new(), None);
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line)? == 0 {
                return Ok(());
            }
            let line = line.trim_end();
            head.extend([line, "\n"]);
            let lower = line.to_ascii_lowercase();
            if let Some((first, last)) =
                lower.strip_prefix("range: bytes=").and_then(|text| text.split_once('-'))
            {
                range = Some((first.parse().unwrap_or(0), last.parse::<usize>().ok()));
            }
            if line.is_empty() {
                break;
            }
        }
        let mut words = head.split(' ');
        let method = words.next().unwrap_or_default().to_owned();
        let found = words.next().and_then(|path| served.files.get(path));
        heads.lock().unwrap().push(head);
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
        let part = range.map(|(first, last): (usize, Option<usize>)| {
            first.min(size)..last.map_or(size, |last| (last + 1).min(size))
        });
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
        if method != "HEAD" {
            reader.get_mut().write_all(&bytes[body])?;
        }
    }
}
