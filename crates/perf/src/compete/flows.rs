//! The competing flows themselves: a thread for each that writes, or reads and counts.

use super::tcp;
use crate::plan::{Kind, Plan};
use crate::session::Event;
use crate::wait::{Stop, Worker};
use crate::worker::{self, Counter};
use hikyaku_net::{Bytes, Connection, code};
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::time::{Duration, Instant};

/// A connection on which a competitor sends.
pub(crate) enum Line {
    Tcp(TcpStream),
    Hikyaku(Connection),
}

/// How long a thread waits for a socket before it looks whether it is to end.
const TURN: Duration = Duration::from_millis(100);
const READ: usize = 128 << 10;
const WRITE: usize = 128 << 10;

/// Sends on `line` for `lasts`, as much as goes.
pub(super) fn send(line: Line, index: usize, block: Bytes, lasts: Duration) -> Worker {
    let until = Instant::now() + lasts;
    Worker::spawn(&format!("rival-{index}"), move |stop| match line {
        Line::Tcp(stream) => write(stream, &block, until, stop),
        Line::Hikyaku(connection) => {
            // How it goes is seen at the receiving end.
            let (post, _events) = channel();
            let writer = worker::writer(connection.clone(), &endless(), 0, block, post);
            stop.sleep(until.saturating_duration_since(Instant::now()));
            drop(writer);
            connection.close(code::DONE, "the competition is over");
        }
    })
}

/// Reads from `line` until told to stop; its end is posted.
pub(super) fn receive(
    line: &Line,
    index: usize,
    counter: Arc<Counter>,
    zero: Instant,
    post: Sender<Event>,
) -> std::io::Result<Worker> {
    Ok(match line {
        Line::Hikyaku(connection) => {
            worker::reader(connection.clone(), &endless(), index, counter, zero, post)
        }
        Line::Tcp(stream) => {
            let stream = stream.try_clone()?;
            Worker::spawn(&format!("rival-{index}"), move |stop| {
                read(stream, &counter, zero, stop);
                let _ = post.send(Event::ReaderDone);
            })
        }
    })
}

/// What a competitor of our own does: it has no target and no end.
fn endless() -> Plan {
    Plan { kind: Kind::Ordered, ..Plan::default() }
}

fn write(mut stream: TcpStream, block: &[u8], until: Instant, stop: &Stop) {
    let mut at = 0;
    let is_ready = stream.set_write_timeout(Some(TURN)).is_ok();
    while is_ready && !stop.is_set() && Instant::now() < until {
        match stream.write(&block[at..(at + WRITE).min(block.len())]) {
            Ok(0) => break,
            Ok(written) => at = (at + written) % block.len(),
            Err(error) if is_patient(error.kind()) => {}
            // The receiving end finds it missing.
            Err(_) => break,
        }
    }
    tcp::cut_off(stream);
}

fn read(mut stream: TcpStream, counter: &Counter, zero: Instant, stop: &Stop) {
    let mut buffer = vec![0; READ];
    let is_ready = stream.set_read_timeout(Some(TURN)).is_ok();
    while is_ready && !stop.is_set() {
        match stream.read(&mut buffer) {
            Ok(0) => break,
            Ok(bytes) => counter.add(zero, bytes as u64),
            Err(error) if is_patient(error.kind()) => {}
            Err(_) => break,
        }
    }
}

fn is_patient(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted)
}
