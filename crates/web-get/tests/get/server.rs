//! A web server for tests: each answer is made by a function of the test.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// A request.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    /// The first line without its version: `GET /x`.
    pub(crate) line: String,
    /// Names in lower case.
    pub(crate) headers: BTreeMap<String, String>,
    /// Number of the connection, from 0.
    pub(crate) connection: usize,
    /// Connections that were open when this one was accepted.
    pub(crate) others: usize,
    /// Number of the request, over all connections.
    pub(crate) number: usize,
}

/// An answer.
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Body,
}

pub(crate) enum Body {
    /// With its length.
    Whole(Vec<u8>),
    /// In chunks.
    Chunked(Vec<u8>),
    /// With its length, but with only this many bytes before the connection is closed.
    Cut(Vec<u8>, usize),
    /// With its length, but with only this many bytes. The connection stays open.
    Stalled(Vec<u8>, usize),
    /// With its length, this many bytes each 10 ms.
    Paced(Vec<u8>, usize),
    /// These bytes follow the head, whatever it says.
    Raw(Vec<u8>),
    /// The connection is closed without an answer.
    Nothing,
}

type Answer = dyn Fn(&Request) -> Reply + Send + Sync;

/// A running server. It ends with the process.
pub(crate) struct Server {
    pub(crate) port: u16,
    pub(crate) log: Arc<Mutex<Vec<Request>>>,
    /// Bytes of bodies that were sent.
    pub(crate) sent: Arc<AtomicUsize>,
}

impl Request {
    pub(crate) fn path(&self) -> &str {
        self.line.split(' ').nth(1).unwrap_or("")
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(String::as_str)
    }

    /// The range, within a file of this size.
    pub(crate) fn range(&self, size: usize) -> Option<Range<usize>> {
        let (first, last) = self.header("range")?.strip_prefix("bytes=")?.split_once('-')?;
        let last: usize = last.parse().unwrap_or(usize::MAX - 1);
        Some(first.parse().ok()?..size.min(last + 1))
    }
}

impl Reply {
    pub(crate) fn status(status: u16) -> Self {
        Self { status, headers: Vec::new(), body: Body::Whole(Vec::new()) }
    }

    pub(crate) fn whole(content: &[u8]) -> Self {
        Self { body: Body::Whole(content.to_vec()), ..Self::status(200) }
    }

    /// The answer of an honest server: a part if one is requested and `If-Range` is met.
    pub(crate) fn honest(request: &Request, content: &[u8], etag: &str) -> Self {
        let is_met = request.header("if-range").is_none_or(|wanted| wanted == etag);
        let reply = match request.range(content.len()).filter(|_| is_met) {
            Some(range) if range.is_empty() => Self::status(416),
            Some(range) => Self::part(content, range),
            None => Self::whole(content),
        };
        reply.with("ETag", etag)
    }

    pub(crate) fn part(content: &[u8], range: Range<usize>) -> Self {
        let told = format!("bytes {}-{}/{}", range.start, range.end - 1, content.len());
        let body = Body::Whole(content[range].to_vec());
        Self { body, ..Self::status(206) }.with("Content-Range", &told)
    }

    pub(crate) fn with(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Another body for the same bytes.
    pub(crate) fn body(mut self, body: impl FnOnce(Vec<u8>) -> Body) -> Self {
        if let Body::Whole(bytes) = std::mem::replace(&mut self.body, Body::Nothing) {
            self.body = body(bytes);
        }
        self
    }
}

impl Server {
    pub(crate) fn start(answer: impl Fn(&Request) -> Reply + Send + Sync + 'static) -> Self {
        Self::start_with(answer, |stream| Some(Box::new(stream)))
    }

    /// The same behind what `wrap` makes of a connection, such as TLS.
    pub(crate) fn start_with(
        answer: impl Fn(&Request) -> Reply + Send + Sync + 'static,
        wrap: impl Fn(TcpStream) -> Option<Box<dyn Duplex>> + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let log = Arc::new(Mutex::new(Vec::new()));
        let sent = Arc::new(AtomicUsize::new(0));
        let (answer, wrap): (Arc<Answer>, _) = (Arc::new(answer), Arc::new(wrap));
        let server = Self { port, log: Arc::clone(&log), sent: Arc::clone(&sent) };
        thread::spawn(move || {
            let open = Arc::new(AtomicUsize::new(0));
            for (connection, stream) in listener.incoming().enumerate() {
                let Ok(stream) = stream else { continue };
                let open = Arc::clone(&open);
                let others = open.fetch_add(1, Ordering::Relaxed);
                let (answer, log) = (Arc::clone(&answer), Arc::clone(&log));
                let (sent, wrap) = (Arc::clone(&sent), Arc::clone(&wrap));
                thread::spawn(move || {
                    if let Some(stream) = wrap(stream) {
                        serve(stream, (connection, others), (&*answer, &log, &sent));
                    }
                    open.fetch_sub(1, Ordering::Relaxed);
                });
            }
        });
        server
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    pub(crate) fn requests(&self) -> Vec<Request> {
        self.log.lock().unwrap().clone()
    }

    /// Connections that asked for something.
    pub(crate) fn connections(&self) -> usize {
        let mut numbers: Vec<_> =
            self.requests().iter().map(|request| request.connection).collect();
        numbers.sort_unstable();
        numbers.dedup();
        numbers.len()
    }
}

/// Both directions of a connection.
pub(crate) trait Duplex: Read + Write {}
impl<T: Read + Write> Duplex for T {}

type Shared<'a> = (&'a Answer, &'a Mutex<Vec<Request>>, &'a AtomicUsize);

fn serve(
    stream: Box<dyn Duplex>,
    (connection, others): (usize, usize),
    (answer, log, sent): Shared<'_>,
) {
    let mut stream = BufReader::new(stream);
    while let Some((line, headers)) = read_head(&mut stream) {
        let request = {
            let mut log = log.lock().unwrap();
            let number = log.len();
            let request = Request { line, headers, connection, others, number };
            log.push(request.clone());
            request
        };
        let reply = answer(&request);
        if !write_reply(stream.get_mut(), reply, sent) {
            return;
        }
    }
}

fn read_head(stream: &mut impl BufRead) -> Option<(String, BTreeMap<String, String>)> {
    let mut next = || {
        let mut line = String::new();
        stream.read_line(&mut line).ok().filter(|&length| length > 0)?;
        Some(line.trim_end().to_owned())
    };
    let line = next()?.trim_end_matches(" HTTP/1.1").to_owned();
    let mut headers = BTreeMap::new();
    loop {
        let header = next()?;
        let Some((name, value)) = header.split_once(':') else { return Some((line, headers)) };
        headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
    }
}

/// Returns whether the connection stays open.
fn write_reply(stream: &mut impl Write, reply: Reply, sent: &AtomicUsize) -> bool {
    let mut head = format!("HTTP/1.1 {} Text\r\n", reply.status);
    for (name, value) in &reply.headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    match &reply.body {
        Body::Whole(bytes)
        | Body::Cut(bytes, _)
        | Body::Stalled(bytes, _)
        | Body::Paced(bytes, _) => {
            head.push_str(&format!("Content-Length: {}\r\n", bytes.len()));
        }
        Body::Chunked(_) => head.push_str("Transfer-Encoding: chunked\r\n"),
        Body::Raw(_) => {}
        Body::Nothing => return false,
    }
    head.push_str("\r\n");
    let mut send = |bytes: &[u8]| {
        sent.fetch_add(bytes.len(), Ordering::Relaxed);
        stream.write_all(bytes).and_then(|()| stream.flush()).is_ok()
    };
    if !send(head.as_bytes()) {
        return false;
    }
    sent_nothing(sent, head.len());
    sent_body(reply.body, &mut send)
}

/// The head does not count.
fn sent_nothing(sent: &AtomicUsize, bytes: usize) {
    sent.fetch_sub(bytes, Ordering::Relaxed);
}

fn sent_body(body: Body, send: &mut dyn FnMut(&[u8]) -> bool) -> bool {
    match body {
        Body::Whole(bytes) => bytes.chunks(64 << 10).all(send),
        Body::Chunked(bytes) => {
            let chunk = |part: &[u8]| {
                let mut chunk = format!("{:x};ext=1\r\n", part.len()).into_bytes();
                chunk.extend_from_slice(part);
                chunk.extend_from_slice(b"\r\n");
                send(&chunk)
            };
            bytes.chunks(10_000).all(chunk) && send(b"0\r\nTrailer: x\r\n\r\n")
        }
        Body::Cut(bytes, length) => {
            send(&bytes[..length.min(bytes.len())]);
            false
        }
        Body::Stalled(bytes, length) => {
            send(&bytes[..length.min(bytes.len())]);
            thread::sleep(Duration::from_secs(60));
            false
        }
        Body::Paced(bytes, step) => bytes.chunks(step).all(|part| {
            thread::sleep(Duration::from_millis(10));
            send(part)
        }),
        Body::Raw(bytes) => {
            send(&bytes);
            false
        }
        Body::Nothing => false,
    }
}
