//! `get` and `put`: files and trees in either direction, written under their final names as OpenSSH's sftp does.

mod fetch;
mod get;
mod put;

use crate::fault::{Done, Fault, failed, told};
use crate::shell::Shell;
use crate::show::Shown;
use hikyaku_sftp::{Client, DATA_BYTES_MAX, Handle, Limits, NO_SUCH_TIME, Request};
use hikyaku_transfer::Limit;
use hikyaku_units::Rate;
use std::io::{Write, stderr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Directories within each other, as in OpenSSH's sftp.
const DEPTH_MAX: usize = 64;
/// How much of what is there is compared before a transfer is resumed, in bytes from its end.
const COMPARED_BYTES: u64 = 1 << 20;
/// How often the progress is printed.
const UPDATE: Duration = Duration::from_millis(200);

/// How the requests of a transfer follow each other.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Flow {
    /// Bytes of a READ or WRITE.
    pub(crate) chunk: usize,
    /// Requests of a file that are under way at once.
    pub(crate) requests: usize,
    /// The most that is copied in a second.
    pub(crate) limit: Option<Rate>,
}

/// The time of a source is none that the protocol tells or sets.
fn no_time(path: &[u8]) -> Fault {
    told(format!("set times of \"{}\": its time is not kept: {NO_SUCH_TIME}", Shown::new(path)))
}

/// What carries the requests.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Carrier {
    /// The transport, or a pipe of this machine.
    Wide,
    /// The channel of ssh.
    Ssh,
}

/// Bytes of a READ or WRITE over a wide carrier: what OpenSSH's server takes.
const WIDE_CHUNK: usize = 255 << 10;
/// Requests of a file that are under way, as in OpenSSH's sftp: over ssh 2 MiB, the window of its channels.
const REQUESTS: usize = 64;
/// Bytes that a message has beyond its data.
const HEAD_BYTES: u64 = 1024;

impl Flow {
    /// What fits a carrier and a server, unless the user says it.
    pub(crate) fn new(
        client: &Client,
        carrier: Carrier,
        (requests, chunk): (Option<usize>, Option<usize>),
        limit: Option<Rate>,
    ) -> Done<Self> {
        let limits = match client.limits() {
            Ok(limits) => limits.unwrap_or_default(),
            Err(error) if error.is_end() => return Err(Fault::Lost(error)),
            Err(_) => Limits::default(),
        };
        let fits = if carrier == Carrier::Wide { WIDE_CHUNK } else { DATA_BYTES_MAX };
        // A server that does not tell must take this much.
        let told = |bytes: u64| if bytes == 0 { DATA_BYTES_MAX as u64 } else { bytes };
        let packet = told(limits.packet).max(HEAD_BYTES + DATA_BYTES_MAX as u64) - HEAD_BYTES;
        let most = told(limits.read).min(told(limits.write)).min(packet).min(WIDE_CHUNK as u64);
        let most = usize::try_from(most).unwrap_or(DATA_BYTES_MAX);
        let chunk = chunk.unwrap_or(fits).clamp(1, most);
        // A request more would wait for many answers, and nothing would be seen of those that come.
        let room = Client::requests_at_once(chunk);
        Ok(Self { chunk, requests: requests.unwrap_or(REQUESTS).clamp(1, room), limit })
    }
}

impl Shell {
    /// Closes a file of the server, of which this has come. After Ctrl-C the answer is not waited for: it comes after those
    /// of all requests that are under way.
    fn closed(&self, handle: &Handle, path: &[u8], done: Done) -> Done {
        if matches!(done, Err(Fault::Stopped)) {
            drop(self.client.ask(&Request::Close(handle.bytes())));
            return done;
        }
        let closed = self.client.close(handle);
        let what = || format!("remote close \"{}\"", Shown::new(path));
        done.and_then(|()| closed.map_err(|error| failed(what())(error)))
    }
}

/// Whether the progress of each file is printed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Meter {
    /// On standard error, where that is a terminal.
    Shown,
    /// Not at all.
    Hidden,
}

/// The progress of a file.
struct Progress<'a> {
    name: &'a [u8],
    total: u64,
    first: u64,
    done: u64,
    begin: Instant,
    printed: Option<Instant>,
    meter: Meter,
    limit: Limit,
    stop: &'a AtomicBool,
}

impl<'a> Progress<'a> {
    /// Of a file of so many bytes, of which `first` are there.
    fn new(name: &'a [u8], (first, total): (u64, u64), shell: &'a Shell) -> Self {
        let (begin, meter, stop) = (Instant::now(), shell.meter, &*shell.stop);
        let limit = Limit::new(shell.flow.limit);
        Self { name, total, first, done: first, begin, printed: None, meter, limit, stop }
    }

    /// More bytes are copied. Waits for their time if there is a limit, unless the transfer is to end.
    fn add(&mut self, bytes: usize) {
        self.done += bytes as u64;
        self.limit.wait(bytes as u64, || self.stop.load(Ordering::Relaxed));
        if self.printed.is_none_or(|at| at.elapsed() >= UPDATE) {
            self.print("");
        }
    }

    fn print(&mut self, end: &str) {
        if self.meter == Meter::Hidden {
            return;
        }
        self.printed = Some(Instant::now());
        let percent = (self.done * 100).checked_div(self.total).unwrap_or(100).min(100);
        let rate = (self.done - self.first) as f64 / self.begin.elapsed().as_secs_f64().max(1e-3);
        let (done, rate) = (self.done as f64 / 1e6, rate / 1e6);
        let name = Shown::new(self.name);
        // If standard error cannot be written, the progress is not seen.
        let _ =
            write!(stderr(), "\r{name}  {percent:>3}%  {done:.1} MB  {rate:.1} MB/s\x1b[K{end}");
    }
}

impl Drop for Progress<'_> {
    fn drop(&mut self) {
        self.print("\n");
    }
}
