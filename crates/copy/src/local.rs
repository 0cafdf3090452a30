//! Within one machine: the far side is a thread of this program, at the other end of a socket, so that a local copy is
//! as safe, is taken up again and is shown like any other.

use crate::engine::Descriptors;
use crate::far;
use crate::near::Far;
use crate::session::{MOST_OBJECTS, Order, Session};
use crate::watch::Fate;
use anyhow::Result;
use hikyaku_net::Side;
use hikyaku_net::blocking::block_on;
use hikyaku_pipes::{Config, Pipe};
use hikyaku_reach::Connection;
use hikyaku_units::Rate;
use std::io::{self, IoSlice, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// A far side of this program that goes on for longer than this after its copy has ended is left alone: a disk may
/// hold it for ever.
const GRACE: Duration = Duration::from_secs(5);
const LOOK: Duration = Duration::from_millis(2);

/// A far side that is a thread of this program. Who drops it waits until it has put its unfinished files away: with the
/// program it would end in the midst of that.
pub(crate) struct Neighbour(JoinHandle<()>);

impl Drop for Neighbour {
    fn drop(&mut self) {
        let begin = Instant::now();
        while !self.0.is_finished() && begin.elapsed() < GRACE {
            thread::sleep(LOOK);
        }
    }
}

/// Starts a far side here and gives it `order`; at most so much is copied in a second.
pub(crate) fn open(order: &Order, limit: Option<Rate>) -> Result<Far> {
    let (ours, theirs) = UnixStream::pair()?;
    let far = connection(theirs, Side::Server, limit)?;
    let thread = thread::Builder::new().name("copy-local".to_owned()).spawn(move || {
        if let Ok(stream) = block_on(far.accept_stream()) {
            // The other end has the same user, and tells.
            let _ = far::attend(far, stream, Descriptors::Users);
        }
    })?;
    let session = Session::order(connection(ours, Side::Client, limit)?, order, Fate::default())?;
    Ok(Far::here(session, Neighbour(thread)))
}

fn connection(socket: UnixStream, side: Side, rate: Option<Rate>) -> Result<Connection> {
    let config = Config { rate, streams_max: MOST_OBJECTS as usize, ..Config::default() };
    let pipe = Pipe::new(socket.try_clone()?, HalfClosed(socket));
    Ok(hikyaku_pipes::Connection::new(vec![pipe], side, config)?.into())
}

/// The writing half of a socket: when it is dropped the other end reads the end, though the reading half is open.
struct HalfClosed(UnixStream);

impl Write for HalfClosed {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn write_vectored(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        self.0.write_vectored(slices)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

impl Drop for HalfClosed {
    fn drop(&mut self) {
        // Nobody may be there any more.
        let _ = self.0.shutdown(Shutdown::Write);
    }
}
