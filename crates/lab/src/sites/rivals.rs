//! TCP cross traffic between the gateways of two sites. The flows start one after another at an
//! interval and send until the lab ends. They use the kernel's TCP with the hosts' settings.

use hikyaku_tun::in_namespace;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread::{self, JoinHandle, sleep};
use std::time::{Duration, Instant};

#[cfg(test)]
mod tests;

/// Number of cross-traffic flows on a link, and the interval between their starts. The first starts
/// with the lab's clock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RivalSpec {
    /// Number of flows.
    pub flows: u32,
    /// Time between the starts of two flows.
    pub every: Duration,
}

/// Limit on the flows of a link: each has a thread at both ends.
const FLOWS_MAX: u32 = 64;

impl FromStr for RivalSpec {
    type Err = String;
    /// Parses `4`, which start at once, or `4:100s`, one every 100 s.
    fn from_str(text: &str) -> Result<Self, String> {
        let (flows, every) = match text.split_once(':') {
            Some((flows, every)) => (flows, hikyaku_link::parse_time(every)?),
            None => (text, Duration::ZERO),
        };
        match flows.parse() {
            Ok(flows) if flows <= FLOWS_MAX => Ok(Self { flows, every }),
            _ => Err(format!(
                "'{text}' is not a number of TCP flows up to {FLOWS_MAX} and an interval (4:100s)"
            )),
        }
    }
}

/// Interval at which the threads check whether the flows have to end.
const STOP_CHECK_INTERVAL: Duration = Duration::from_millis(50);
/// Timeout of a connection attempt.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Size of one read or write, in bytes.
const IO_BYTES: usize = 64 * 1024;

/// The cross-traffic flows of one link. Dropping this ends them.
#[derive(Debug)]
pub(super) struct Rivals {
    is_over: Arc<AtomicBool>,
    begun: Arc<AtomicU32>,
    threads: Vec<JoinHandle<()>>,
}

impl Rivals {
    /// Starts the flows of `spec` between two namespaces; `to` is an address in the second.
    pub(super) fn start(places: [PathBuf; 2], to: Ipv4Addr, spec: RivalSpec) -> io::Result<Self> {
        let [near, far] = places;
        let listener = in_namespace(&far, || TcpListener::bind((to, 0)))?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let mut rivals =
            Self { is_over: Arc::default(), begun: Arc::default(), threads: Vec::new() };
        let is_over = Arc::clone(&rivals.is_over);
        rivals.spawn(move || receive_all(&listener, &is_over))?;
        let begin = Instant::now();
        for number in 0..spec.flows {
            let (near, due) = (near.clone(), begin + spec.every * number);
            let (is_over, begun) = (Arc::clone(&rivals.is_over), Arc::clone(&rivals.begun));
            rivals.spawn(move || send(&near, address, due, &is_over, &begun))?;
        }
        Ok(rivals)
    }

    /// Number of flows that have started.
    pub(super) fn begun(&self) -> u32 {
        self.begun.load(Ordering::Relaxed)
    }

    fn spawn(&mut self, work: impl FnOnce() + Send + 'static) -> io::Result<()> {
        self.threads.push(thread::Builder::new().name("lab-rival".into()).spawn(work)?);
        Ok(())
    }
}

impl Drop for Rivals {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

/// Sends from the time `due` on. A flow whose connection fails connects again, because the link may
/// have an outage.
fn send(near: &Path, to: SocketAddr, due: Instant, is_over: &AtomicBool, begun: &AtomicU32) {
    while Instant::now() < due && !is_over.load(Ordering::Relaxed) {
        sleep(STOP_CHECK_INTERVAL.min(due.saturating_duration_since(Instant::now())));
    }
    let mut is_first = true;
    while !is_over.load(Ordering::Relaxed) {
        let connect = || TcpStream::connect_timeout(&to, CONNECT_TIMEOUT);
        let Ok(stream) = in_namespace(near, connect) else {
            sleep(STOP_CHECK_INTERVAL);
            continue;
        };
        if std::mem::take(&mut is_first) {
            begun.fetch_add(1, Ordering::Relaxed);
        }
        let piece = [0; IO_BYTES];
        let _ = stream.set_write_timeout(Some(STOP_CHECK_INTERVAL));
        let _ = until_over(is_over, || (&stream).write(&piece));
    }
}

/// Accepts all flows and reads each on a thread of its own.
fn receive_all(listener: &TcpListener, is_over: &AtomicBool) {
    thread::scope(|scope| {
        while !is_over.load(Ordering::Relaxed) {
            match listener.accept() {
                Ok((stream, _)) => {
                    scope.spawn(move || {
                        let mut buffer = vec![0; IO_BYTES];
                        let _ = stream.set_nonblocking(false);
                        let _ = stream.set_read_timeout(Some(STOP_CHECK_INTERVAL));
                        let _ = until_over(is_over, || (&stream).read(&mut buffer));
                    });
                }
                Err(_) => sleep(STOP_CHECK_INTERVAL),
            }
        }
    });
}

/// Repeats `step` until the flows have to end or the connection ends.
fn until_over(is_over: &AtomicBool, mut step: impl FnMut() -> io::Result<usize>) -> io::Result<()> {
    while !is_over.load(Ordering::Relaxed) {
        match step() {
            Ok(0) => return Ok(()),
            Ok(_) => {}
            Err(error) if is_retryable(error.kind()) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn is_retryable(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted)
}
