//! A web server of a few files that gives ranges and versions, and records the requests.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

/// The server. It answers as long as the test runs.
pub(crate) struct Web {
    pub(crate) port: u16,
    methods: Arc<Mutex<Vec<String>>>,
}

impl Web {
    /// Serves these files by their names.
    pub(crate) fn start(files: &[(&str, Vec<u8>)]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let methods = Arc::<Mutex<Vec<_>>>::default();
        let files = files.iter().map(|(name, bytes)| (format!("/{name}"), bytes.clone()));
        let files = Arc::new(files.collect::<BTreeMap<_, _>>());
        let seen = Arc::clone(&methods);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (files, seen) = (Arc::clone(&files), Arc::clone(&seen));
                // An error means that the client has closed the connection.
                thread::spawn(move || answer(stream, &files, &seen));
            }
        });
        Self { port, methods }
    }

    pub(crate) fn url(&self, name: &str) -> String {
        format!("http://127.0.0.1:{}/{name}", self.port)
    }

    /// The methods of the requests since the last call.
    pub(crate) fn methods(&self) -> Vec<String> {
        self.methods.lock().unwrap().drain(..).collect()
    }
}

fn answer(
    stream: TcpStream,
    files: &BTreeMap<String, Vec<u8>>,
    seen: &Mutex<Vec<String>>,
) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream);
    loop {
        let (mut request, mut range) = (String::new(), None);
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line)? == 0 {
                return Ok(());
            }
            let line = line.trim_end();
            if request.is_empty() {
                line.clone_into(&mut request);
            }
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
        let mut words = request.split(' ');
        let method = words.next().unwrap_or_default().to_owned();
        let found = words.next().and_then(|path| files.get(path));
        seen.lock().unwrap().push(method.clone());
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
