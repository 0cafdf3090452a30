//! `hikyaku get`, ended within segments: a byte that came is not sent again, whatever has ended its connection.

use crate::common::proxy::server;
use crate::common::scratch;
use crate::common::web::Request;
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::io::{BufReader, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Bytes of the file.
const BYTES: u64 = 24 << 20;
/// Bytes that a server sends at once.
const CHUNK_BYTES: u64 = 32 << 10;
/// Connections of a command.
const CONNECTIONS: u64 = 8;
/// Bytes that may be sent twice: of each connection those that the client had not read when it ended.
const TWICE_BYTES: u64 = 3 * CONNECTIONS * CHUNK_BYTES;

/// A web server that sends a chunk, waits, and counts the bytes of the file that it has sent.
struct Site {
    port: u16,
    sent: Arc<AtomicU64>,
    /// Milliseconds between two chunks of a connection.
    pause: Arc<AtomicU64>,
}

impl Site {
    /// Serves the file. Behind `most` bytes all connections end, and the file does not exist any more.
    fn start(pause: u64, most: u64) -> Self {
        let (sent, pause) = (Arc::<AtomicU64>::default(), Arc::new(AtomicU64::new(pause)));
        let (count, every) = (sent.clone(), pause.clone());
        // An error means that the client has gone.
        let port = server(move |stream| drop(answer(stream, (&count, most), &every)));
        Self { port, sent, pause }
    }

    fn url(&self) -> String {
        format!("http://127.0.0.1:{}/f", self.port)
    }

    fn sent(&self) -> u64 {
        self.sent.load(Ordering::SeqCst)
    }

    /// Waits until it has sent this number of bytes.
    fn wait(&self, bytes: u64) {
        until(|| self.sent() >= bytes);
    }
}

fn until(is_so: impl Fn() -> bool) {
    let end = Instant::now() + Duration::from_secs(60);
    while !is_so() {
        assert!(Instant::now() < end, "nothing comes");
        sleep(Duration::from_millis(2));
    }
}

fn content(at: u64) -> u8 {
    (at % 251) as u8
}

fn answer(
    stream: TcpStream,
    (count, most): (&AtomicU64, u64),
    every: &AtomicU64,
) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream);
    while let Some(request) = Request::read(&mut reader)? {
        let mut range = request
            .range(BYTES as usize)
            .map_or(0..BYTES, |range| range.start as u64..range.end as u64);
        let stream = reader.get_mut();
        if count.load(Ordering::SeqCst) >= most {
            stream.write_all(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")?;
            continue;
        }
        let (first, last) = (range.start, range.end - 1);
        let head = format!(
            "HTTP/1.1 206 Partial Content\r\nETag: \"a\"\r\nContent-Length: {}\r\n\
             Content-Range: bytes {first}-{last}/{BYTES}\r\n\r\n",
            range.end - range.start
        );
        stream.write_all(head.as_bytes())?;
        while !range.is_empty() {
            let end = range.end.min(range.start + CHUNK_BYTES);
            let chunk: Vec<u8> = (range.start..end).map(content).collect();
            stream.write_all(&chunk)?;
            if count.fetch_add(chunk.len() as u64, Ordering::SeqCst) >= most {
                return Ok(());
            }
            range.start = end;
            sleep(Duration::from_millis(every.load(Ordering::SeqCst)));
        }
    }
    Ok(())
}

fn client(folder: &Path, urls: &[String]) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hikyaku"));
    command.args(["get", "-n", &CONNECTIONS.to_string(), "-o", "f"]).args(urls);
    command.env("XDG_STATE_HOME", state_of(folder)).current_dir(folder);
    command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
}

/// The state folder of the downloads in a folder.
fn state_of(folder: &Path) -> PathBuf {
    folder.with_extension("state")
}

fn made(name: &str) -> PathBuf {
    let folder = scratch(name);
    fs::create_dir_all(&folder).unwrap();
    folder
}

/// Downloads what is missing. The file is right then.
fn completes(folder: &Path, urls: &[String]) {
    let output = client(folder, urls).wait_with_output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let bytes = fs::read(folder.join("f")).unwrap();
    assert!(
        bytes.len() as u64 == BYTES && (0..).zip(&bytes).all(|(at, byte)| content(at) == *byte)
    );
    let _ = fs::remove_dir_all(state_of(folder));
    let _ = fs::remove_dir_all(folder);
}

#[test]
fn after_three_interruptions_each_byte_was_sent_once() {
    let (folder, site) = (made("get-thrice"), Site::start(100, u64::MAX));
    for stop in 1..=3 {
        let child = client(&folder, &[site.url()]);
        // No segment of these connections is complete.
        site.wait(stop * (4 << 20));
        kill_process(Pid::from_child(&child), Signal::INT).unwrap();
        let output = child.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(said.contains("the same command continues from here"), "{said}");
    }
    site.pause.store(5, Ordering::SeqCst);
    completes(&folder, &[site.url()]);
    let twice = site.sent() - BYTES;
    assert!(twice <= 4 * TWICE_BYTES, "{twice} bytes were sent twice");
}

#[test]
fn after_a_kill_the_bytes_before_the_last_record_are_not_sent_again() {
    let (folder, site) = (made("get-killed"), Site::start(250, u64::MAX));
    let mut child = client(&folder, &[site.url()]);
    let is_begun = || fs::read_dir(&folder).unwrap().count() > 0;
    until(is_begun);
    let recorded = site.sent();
    // No segment is complete.
    assert!((1 << 20..7 << 20).contains(&recorded), "{recorded}");
    // The record is written within this time.
    sleep(Duration::from_millis(500));
    kill_process(Pid::from_child(&child), Signal::KILL).unwrap();
    child.wait().unwrap();
    let before = site.sent();
    site.pause.store(5, Ordering::SeqCst);
    completes(&folder, &[site.url()]);
    let second = site.sent() - before;
    assert!(second + recorded <= BYTES + 2 * TWICE_BYTES, "{second} bytes after {recorded}");
}

#[test]
fn the_rest_of_the_segments_of_a_mirror_that_is_gone_comes_from_another() {
    let (folder, other) = (made("get-mirror"), Site::start(20, u64::MAX));
    let gone = Site::start(20, 3 << 20);
    completes(&folder, &[gone.url(), other.url()]);
    let (gone, all) = (gone.sent(), gone.sent() + other.sent());
    assert!(gone >= 3 << 20, "{gone}");
    assert!(all <= BYTES + 2 * TWICE_BYTES, "{} bytes were sent twice", all - BYTES);
}
