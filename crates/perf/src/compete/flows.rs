//! The threads of competing flows: each writes, or reads and counts.

use crate::plan::{Kind, Plan};
use crate::session::Event;
use crate::wait::{Stop, Worker};
use crate::worker::{self, Counter, Source, Tally};
use hikyaku_net::{AppCode, Connection};
use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::time::{Duration, Instant};

/// The connection of a competing flow.
pub(crate) enum Line {
    Tcp(TcpStream),
    Hikyaku(Connection),
}

/// Timeout of a socket operation, after which the thread checks whether it has been told to stop.
const STOP_CHECK_INTERVAL: Duration = Duration::from_millis(100);
/// Largest read and write of a TCP flow, in bytes.
const READ_BYTES: usize = 128 << 10;
const WRITE_BYTES: usize = 128 << 10;

/// Starts a thread that sends on `line` for the time `lasts`, as fast as the flow can.
pub(super) fn send(
    line: Line,
    index: usize,
    source: Source,
    lasts: Duration,
) -> io::Result<Worker> {
    let until = Instant::now() + lasts;
    Worker::spawn(&format!("rival-{index}"), move |stop| match line {
        Line::Tcp(stream) => write(stream, source.block(), until, stop),
        Line::Hikyaku(connection) => {
            // The receiving end reports how the flow does.
            let (post, _events) = channel();
            let writer = worker::writer(connection.clone(), &endless(), 0, source, post);
            stop.sleep(until.saturating_duration_since(Instant::now()));
            drop(writer);
            connection.close(AppCode::DONE, "the competition is over");
        }
    })
}

/// Starts a thread that reads from `line` until it is told to stop. When the flow ends it posts an
/// event.
pub(super) fn receive(
    line: &Line,
    index: usize,
    counter: Arc<Counter>,
    zero: Instant,
    post: Sender<Event>,
) -> io::Result<Worker> {
    match line {
        Line::Hikyaku(connection) => {
            let tally = Tally { counter, zero, most: None };
            worker::reader(connection.clone(), &endless(), index, tally, post)
        }
        Line::Tcp(stream) => {
            let stream = stream.try_clone()?;
            Worker::spawn(&format!("rival-{index}"), move |stop| {
                read(stream, &counter, zero, stop);
                let _ = post.send(Event::ReaderDone);
            })
        }
    }
}

/// The plan of a competing hikyaku flow: without a target rate and without an end of its own.
fn endless() -> Plan {
    Plan { kind: Kind::Ordered, ..Plan::default() }
}

fn write(mut stream: TcpStream, block: &[u8], until: Instant, stop: &Stop) {
    let mut at = 0;
    let is_ready = stream.set_write_timeout(Some(STOP_CHECK_INTERVAL)).is_ok();
    while is_ready && !stop.is_set() && Instant::now() < until {
        match stream.write(&block[at..(at + WRITE_BYTES).min(block.len())]) {
            Ok(0) => break,
            Ok(written) => at = (at + written) % block.len(),
            Err(error) if is_retryable(error.kind()) => {}
            // The receiving end notices the missing flow.
            Err(_) => break,
        }
    }
    hikyaku_tcp::reset(stream);
}

fn read(mut stream: TcpStream, counter: &Counter, zero: Instant, stop: &Stop) {
    let mut buffer = vec![0; READ_BYTES];
    let is_ready = stream.set_read_timeout(Some(STOP_CHECK_INTERVAL)).is_ok();
    while is_ready && !stop.is_set() {
        match stream.read(&mut buffer) {
            Ok(0) => break,
            Ok(bytes) => counter.add(zero, bytes as u64),
            Err(error) if is_retryable(error.kind()) => {}
            Err(_) => break,
        }
    }
}

fn is_retryable(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted)
}
