//! A server with the answers of a test.

use super::connect;
use crate::{Conditions, S3};
use hikyaku_store::{Access, ErrorKind, Finish, Make, Naming, Open, Store, StorePath, Time};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex};
use std::thread;

/// A request as it came: the first line, the other lines in small letters, and the length of the body.
#[derive(Clone, Debug, Default)]
struct Request {
    line: String,
    headers: Vec<String>,
    body: Vec<u8>,
}

impl Request {
    fn header(&self, name: &str) -> Option<&str> {
        let with_colon = format!("{name}:");
        self.headers.iter().find_map(|line| line.strip_prefix(&with_colon)).map(str::trim)
    }
}

/// An answer of the server, as bytes, after which the connection is closed.
type Answer = Box<dyn Fn(&Request) -> Vec<u8> + Send + Sync>;

struct Server {
    url: String,
    seen: Arc<Mutex<Vec<Request>>>,
}

/// Starts a server. It lists nothing, and answers everything else by `answer`.
fn serve(answer: impl Fn(&Request) -> Vec<u8> + Send + Sync + 'static) -> (Server, S3) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let (seen, answer): (Arc<Mutex<Vec<Request>>>, Answer) = (Arc::default(), Box::new(answer));
    let (noted, answer) = (seen.clone(), Arc::new(answer));
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let (noted, answer) = (noted.clone(), answer.clone());
            thread::spawn(move || one(stream, &noted, &**answer));
        }
    });
    let s3 = connect(&url, "b", Conditions::Unknown);
    seen.lock().unwrap().clear();
    (Server { url, seen }, s3)
}

fn one(
    mut stream: TcpStream,
    seen: &Mutex<Vec<Request>>,
    answer: &(dyn Fn(&Request) -> Vec<u8> + Send + Sync),
) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut request = Request::default();
    reader.read_line(&mut request.line).unwrap();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        match line.trim() {
            "" => break,
            line => request.headers.push(line.to_ascii_lowercase()),
        }
    }
    let length = request.header("content-length").map_or(0, |length| length.parse().unwrap());
    request.body = vec![0; length];
    reader.read_exact(&mut request.body).unwrap();
    let bytes = match request.line.contains("list-type=2") {
        true => told("200 OK", "", b"<ListBucketResult></ListBucketResult>"),
        false => answer(&request),
    };
    seen.lock().unwrap().push(request);
    // The client may have had enough.
    let _ = stream.write_all(&bytes);
}

fn told(status: &str, headers: &str, body: &[u8]) -> Vec<u8> {
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status}\r\nconnection: close\r\ncontent-length: {length}\r\n{headers}\r\n"
    );
    [head.into_bytes(), body.to_vec()].concat()
}

const HEAD: &str = "etag: \"1\"\r\nlast-modified: Thu, 26 Nov 2026 09:43:51 GMT\r\n";

/// The object of these tests.
fn object() -> Vec<u8> {
    (0..100_000_u32).map(|n| (n ^ (n >> 8)) as u8).collect()
}

/// The answer to `HEAD`, which has no body.
fn head(size: usize, more: &str) -> Vec<u8> {
    format!("HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: {size}\r\n{HEAD}{more}\r\n")
        .into_bytes()
}

/// The range that a request wants.
fn range(request: &Request) -> Option<(usize, usize)> {
    let (first, last) = request.header("range")?.strip_prefix("bytes=")?.split_once('-')?;
    Some((first.parse().unwrap(), last.parse::<usize>().unwrap() + 1))
}

fn part(request: &Request, e_tag: &str) -> Vec<u8> {
    let (object, range) = (object(), range(request));
    match range {
        Some((from, to)) => {
            let (last, size) = (to - 1, object.len());
            let headers = format!("etag: {e_tag}\r\ncontent-range: bytes {from}-{last}/{size}\r\n");
            told("206 Partial Content", &headers, &object[from..to])
        }
        None => told("200 OK", &format!("etag: {e_tag}\r\n"), &object),
    }
}

fn path(text: &str) -> StorePath {
    StorePath::new(text.as_bytes()).unwrap()
}

fn opened(s3: &S3) -> Box<dyn Open> {
    s3.open(&path("f"), Access::Read).unwrap()
}

fn read(open: &dyn Open, at: u64, length: usize) -> Result<Vec<u8>, ErrorKind> {
    let mut into = vec![0; length];
    let read = open.read_at(at, &mut into).map_err(|error| error.kind)?;
    into.truncate(read);
    Ok(into)
}

#[test]
fn a_range_of_the_opened_version_is_asked_for_with_a_signature() {
    let (server, s3) = serve(|request| match request.line.starts_with("HEAD") {
        true => head(100_000, "x-amz-meta-mtime: 5.25\r\n"),
        false => part(request, "\"1\""),
    });
    let open = opened(&s3);
    let found = open.found().unwrap();
    assert_eq!((found.size, found.modified), (100_000, Time { secs: 5, nanos: 250_000_000 }));
    assert!(read(&*open, 10, 1000).unwrap() == object()[10..1010]);
    assert!(read(&*open, 0, 200_000).unwrap() == object());
    let seen = server.seen.lock().unwrap();
    let (ranged, whole) = (&seen[1], &seen[2]);
    assert_eq!(ranged.line.trim(), "GET /b/f HTTP/1.1");
    assert_eq!(ranged.header("range"), Some("bytes=10-1009"));
    assert_eq!(ranged.header("if-match"), Some("\"1\""));
    assert!(ranged.header("authorization").unwrap().starts_with("aws4-hmac-sha256 credential=id/"));
    assert_eq!(whole.header("range"), None);
    assert!(server.url.starts_with("http://127."));
}

#[test]
fn a_failure_that_may_pass_is_tried_again_and_another_is_not() {
    let tries = Arc::new(Mutex::new(0));
    let counted = tries.clone();
    let (_, s3) = serve(move |request| {
        let mut tries = counted.lock().unwrap();
        *tries += 1;
        match (request.line.contains("/b/f "), *tries) {
            (true, 1) => told("503 Slow Down", "", b""),
            // The connection ends without an answer.
            (true, 2) => Vec::new(),
            (true, _) => head(7, ""),
            (false, _) => told("403 Forbidden", "", b""),
        }
    });
    assert_eq!(s3.look(&path("f")).unwrap().size, 7);
    assert_eq!(*tries.lock().unwrap(), 3);
    assert_eq!(s3.look(&path("g")).map_err(|error| error.kind), Err(ErrorKind::Denied));
    assert_eq!(*tries.lock().unwrap(), 4);
}

#[test]
fn an_answer_that_ends_early_goes_on_where_it_ended() {
    let (server, s3) = serve(|request| {
        if request.line.starts_with("HEAD") {
            return head(100_000, "");
        }
        let mut answer = part(request, "\"1\"");
        let length = answer.len();
        // Each answer ends in the middle, the last one has little left.
        answer.truncate(if length > 20_000 { length / 2 } else { length });
        answer
    });
    let open = opened(&s3);
    assert!(read(&*open, 0, 100_000).unwrap() == object());
    let mut all = Vec::new();
    let told = open.stream(0..100_000, &mut |bytes| {
        all.extend_from_slice(bytes);
        ControlFlow::Continue(())
    });
    assert_eq!(told.unwrap(), 100_000);
    assert!(all == object());
    assert!(server.seen.lock().unwrap().len() > 6);
}

#[test]
fn another_version_is_never_read_in_place_of_the_opened_one() {
    for answer in ["412", "other", "404"] {
        let (_, s3) = serve(move |request| match (request.line.starts_with("HEAD"), answer) {
            (true, _) => head(100_000, ""),
            (_, "412") => told("412 Precondition Failed", "", b""),
            (_, "404") => told("404 Not Found", "", b""),
            // A server that does not know the condition.
            _ => part(request, "\"2\""),
        });
        let wanted = if answer == "404" { ErrorKind::Gone } else { ErrorKind::Changed };
        assert_eq!(read(&*opened(&s3), 0, 10), Err(wanted), "{answer}");
        assert_eq!(read(&*opened(&s3), 0, 100_000), Err(wanted), "{answer}");
    }
}

#[test]
fn a_server_that_ignores_ranges_is_noticed_and_read_right() {
    let (_, s3) = serve(|request| match request.line.starts_with("HEAD") {
        true => head(100_000, ""),
        false => told("200 OK", "etag: \"1\"\r\n", &object()),
    });
    let open = opened(&s3);
    assert!(read(&*open, 0, 100_000).unwrap() == object());
    assert!(!s3.ignores_ranges());
    assert!(read(&*open, 70_000, 1000).unwrap() == object()[70_000..71_000]);
    assert!(s3.ignores_ranges());
}

#[test]
fn a_server_that_does_not_answer_is_not_waited_for_after_a_stop() {
    let (asked, heard) = std::sync::mpsc::channel();
    let asked = Mutex::new(asked);
    let (_, s3) = serve(move |_| {
        asked.lock().unwrap().send(()).unwrap();
        loop {
            thread::park();
        }
    });
    let stopped = s3.clone();
    let looking = thread::spawn(move || s3.look(&path("f")).map_err(|error| error.kind));
    heard.recv().unwrap();
    stopped.stop();
    assert_eq!(looking.join().unwrap(), Err(ErrorKind::Unreachable));
    assert!(stopped.look(&path("g")).is_err());
}

#[test]
fn another_range_than_was_asked_for_is_refused() {
    let (_, s3) = serve(|request| match request.line.starts_with("HEAD") {
        true => head(100_000, ""),
        false => {
            let headers = "etag: \"1\"\r\ncontent-range: bytes 0-9/100000\r\n";
            told("206 Partial Content", headers, &object()[..10])
        }
    });
    assert_eq!(read(&*opened(&s3), 10, 10), Err(ErrorKind::System(5)));
}

#[test]
fn a_failure_within_an_answer_of_success_is_one_and_the_parts_are_dropped() {
    let (server, s3) = serve(|request| match request.line.split(' ').next() {
        Some("POST") if request.line.contains("uploads=") => {
            let id = "<InitiateMultipartUploadResult><UploadId>u/1</UploadId></InitiateMultipartUploadResult>";
            told("200 OK", "", id.as_bytes())
        }
        Some("POST") => told("200 OK", "", b"<Error><Code>AccessDenied</Code></Error>"),
        Some("PUT") => told("200 OK", "etag: \"p\"\r\n", b""),
        _ => told("204 No Content", "", b""),
    });
    let modified = Some(Time { secs: 7, nanos: 0 });
    let make = Make { size: Some(20 << 20), modified, ..Make::default() };
    let draft = s3.create(&path("f"), &make).unwrap();
    for mib in 0..20 {
        draft.write_at(mib << 20, &vec![mib as u8; 1 << 20]).unwrap();
    }
    let named = draft.name(Naming::Replace, &Finish::default()).map(drop);
    assert!(named.is_err());
    let seen = server.seen.lock().unwrap();
    let sizes: Vec<usize> = seen
        .iter()
        .filter(|request| request.line.contains("partNumber="))
        .map(|request| request.body.len())
        .collect();
    assert_eq!(sizes.iter().sum::<usize>(), 20 << 20, "{sizes:?}");
    assert_eq!(sizes.len(), 3);
    assert_eq!(seen[0].header("x-amz-meta-mtime"), Some("7.000000000"));
    let last = &seen.last().unwrap().line;
    assert_eq!(last.trim(), "DELETE /b/f?uploadId=u%2F1 HTTP/1.1");
}
