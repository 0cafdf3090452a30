//! A web server with limits: the number of connections, the rate of all connections together, and the rate of each.
//!
//! Benches run it as `bench odd-web` at one end of a lab. It serves one file, with ranges and persistent connections, and writes
//! a line into its log for each connection that it turns away.

use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};
use rustix::net::sockopt::set_socket_linger;
use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// The file and the limits.
#[derive(Args, Clone)]
pub(crate) struct OddArgs {
    /// Where it listens
    #[arg(long)]
    listen: SocketAddr,
    /// The file, whatever path is asked for
    #[arg(long)]
    file: PathBuf,
    /// The file for a line for each connection that is turned away
    #[arg(long)]
    log: PathBuf,
    /// Connections that are served at once
    #[arg(long)]
    grants: Option<usize>,
    /// What happens to further ones
    #[arg(long, value_enum, default_value_t = Refusal::Busy)]
    refusal: Refusal,
    /// Mbit/s of all connections together
    #[arg(long)]
    all: Option<f64>,
    /// Mbit/s of each connection
    #[arg(long)]
    each: Option<f64>,
    /// Seconds after the first connection at which --all becomes a tenth
    #[arg(long)]
    slow_from: Option<f64>,
    /// For how many seconds
    #[arg(long, default_value_t = 12.0)]
    slow_for: f64,
}

/// How a connection is turned away.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum Refusal {
    /// By 503
    #[value(name = "503")]
    Busy,
    /// By 403
    #[value(name = "403")]
    Forbidden,
    /// By a reset
    Reset,
    /// By no answer
    Silence,
}

/// Size of a write.
const PIECE_BYTES: usize = 16 << 10;
/// Bytes of a request.
const REQUEST_BYTES_MAX: usize = 16 << 10;
const TAG: &str = "\"odd\"";
/// Share of the rate of all connections while the server is slow.
const SLOW_SHARE: f64 = 0.1;

/// Serves until the process is ended.
pub(crate) fn run(args: &OddArgs) -> Result<ExitCode> {
    let file =
        File::open(&args.file).with_context(|| format!("cannot open {}", args.file.display()))?;
    let server = Arc::new(Server {
        size: file.metadata()?.len(),
        file,
        args: args.clone(),
        open: AtomicUsize::new(0),
        first: Mutex::new(None),
        all: Mutex::new(Instant::now()),
    });
    let listener = TcpListener::bind(args.listen)
        .with_context(|| format!("cannot listen at {}", args.listen))?;
    for stream in listener.incoming() {
        let (stream, server) = (stream?, Arc::clone(&server));
        thread::spawn(move || {
            // A client may leave at any time.
            let _ = server.accept(stream);
        });
    }
    Ok(ExitCode::SUCCESS)
}

/// When a server turned connections away, in seconds after its first connection, by its log. It has no log before that.
pub(crate) fn turned_away(log: &Path) -> Vec<f64> {
    let text = fs::read_to_string(log).unwrap_or_default();
    text.lines().filter_map(|line| line.split(' ').next()?.parse().ok()).collect()
}

struct Server {
    args: OddArgs,
    file: File,
    size: u64,
    /// Connections that are served.
    open: AtomicUsize,
    /// When the first connection came.
    first: Mutex<Option<Instant>>,
    /// When the next piece of any connection is due.
    all: Mutex<Instant>,
}

impl Server {
    fn accept(&self, stream: TcpStream) -> Result<()> {
        let first = *self
            .first
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get_or_insert_with(Instant::now);
        let open = self.open.fetch_add(1, Ordering::SeqCst) + 1;
        let done = match self.args.grants {
            Some(grants) if open > grants => {
                self.open.fetch_sub(1, Ordering::SeqCst);
                return self.turn_away(stream, first.elapsed());
            }
            _ => self.serve(stream, first),
        };
        self.open.fetch_sub(1, Ordering::SeqCst);
        done
    }

    fn turn_away(&self, mut stream: TcpStream, at: Duration) -> Result<()> {
        let mut log = OpenOptions::new().create(true).append(true).open(&self.args.log)?;
        log.write_all(format!("{:.3} turned away\n", at.as_secs_f64()).as_bytes())?;
        let status = match self.args.refusal {
            Refusal::Busy => "503 Service Unavailable",
            Refusal::Forbidden => "403 Forbidden",
            Refusal::Reset => return Ok(set_socket_linger(&stream, Some(Duration::ZERO))?),
            Refusal::Silence => {
                // Until the client gives up.
                while stream.read(&mut [0; 1024])? > 0 {}
                return Ok(());
            }
        };
        request(&mut stream)?;
        let answer = format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
        Ok(stream.write_all(answer.as_bytes())?)
    }

    fn serve(&self, mut stream: TcpStream, first: Instant) -> Result<()> {
        stream.set_nodelay(true)?;
        let mut own = Instant::now();
        while let Some(request) = request(&mut stream)? {
            let (status, range) = match range(&request, self.size) {
                Some(range) => ("206 Partial Content", range),
                None => ("200 OK", 0..self.size),
            };
            let length = range.end - range.start;
            let mut head = format!(
                "HTTP/1.1 {status}\r\nContent-Length: {length}\r\nETag: {TAG}\r\nAccept-Ranges: bytes\r\n"
            );
            if status.starts_with("206") {
                let (first, last) = (range.start, range.end - 1);
                head.push_str(&format!("Content-Range: bytes {first}-{last}/{}\r\n", self.size));
            }
            head.push_str("\r\n");
            stream.write_all(head.as_bytes())?;
            if !request.starts_with("HEAD ") {
                self.send(&mut stream, range, &mut own, first)?;
            }
        }
        Ok(())
    }

    /// Sends a range of the file, at the rates that are allowed.
    fn send(
        &self,
        stream: &mut TcpStream,
        range: Range<u64>,
        own: &mut Instant,
        first: Instant,
    ) -> Result<()> {
        let mut piece = vec![0; PIECE_BYTES];
        let mut at = range.start;
        while at < range.end {
            let count = (range.end - at).min(PIECE_BYTES as u64) as usize;
            self.file.read_exact_at(&mut piece[..count], at)?;
            if let Some(mbit) = self.args.each {
                wait_until(due(own, count, mbit));
            }
            if let Some(mbit) = self.args.all {
                let mbit = mbit * self.share(first.elapsed().as_secs_f64());
                let due =
                    due(&mut self.all.lock().unwrap_or_else(PoisonError::into_inner), count, mbit);
                wait_until(due);
            }
            stream.write_all(&piece[..count])?;
            at += count as u64;
        }
        Ok(())
    }

    /// Share of the rate of all connections at a time after the first connection.
    fn share(&self, seconds: f64) -> f64 {
        let is_slow = self
            .args
            .slow_from
            .is_some_and(|from| (from..from + self.args.slow_for).contains(&seconds));
        if is_slow { SLOW_SHARE } else { 1.0 }
    }
}

/// When `count` bytes may be sent at a rate, and in `next` when the bytes after them may be. Unused time is lost.
fn due(next: &mut Instant, count: usize, mbit: f64) -> Instant {
    let at = (*next).max(Instant::now());
    *next = at + Duration::from_secs_f64(count as f64 * 8e-6 / mbit);
    at
}

fn wait_until(at: Instant) {
    thread::sleep(at.saturating_duration_since(Instant::now()));
}

/// The head of the next request; `None` if the client has closed the connection.
fn request(stream: &mut TcpStream) -> Result<Option<String>> {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        if stream.read(&mut byte)? == 0 {
            return Ok(None);
        }
        head.push(byte[0]);
        if head.len() > REQUEST_BYTES_MAX {
            bail!("a request is too long");
        }
    }
    Ok(Some(String::from_utf8_lossy(&head).into_owned()))
}

/// The range that a request asks for, within a file of `size` bytes.
fn range(request: &str, size: u64) -> Option<Range<u64>> {
    let value = request.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("range").then_some(value.trim())
    })?;
    let (first, last) = value.strip_prefix("bytes=")?.split_once('-')?;
    let first: u64 = first.parse().ok()?;
    let last = if last.is_empty() { size - 1 } else { last.parse().ok()? };
    (first <= last && first < size).then_some(first..(last + 1).min(size))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_lie_in_the_file() {
        let of = |value: &str| range(&format!("GET / HTTP/1.1\r\nRange: {value}\r\n\r\n"), 100);
        assert_eq!(of("bytes=0-9"), Some(0..10));
        assert_eq!(of("bytes=90-"), Some(90..100));
        assert_eq!(of("bytes=90-500"), Some(90..100));
        assert_eq!((of("bytes=100-"), of("lines=1-2"), of("bytes=-5")), (None, None, None));
    }

    #[test]
    fn pieces_are_due_one_after_the_other() {
        let begin = Instant::now();
        let mut next = begin;
        let at: Vec<Instant> = (0..3).map(|_| due(&mut next, 125_000, 1.0)).collect();
        let apart = at[2] - at[0];
        assert!((apart.as_secs_f64() - 2.0).abs() < 0.5, "{apart:?}");
    }
}
