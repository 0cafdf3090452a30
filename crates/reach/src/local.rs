//! Within one machine: the far side is a thread of this program, at the other end of a socket, so that a local session is
//! like any other to the application.

use crate::carrier::{Connection, Stream};
use crate::near::{FarSide, Reached};
use crate::service::Service;
use crate::speaks::Agreed;
use crate::watch::Fate;
use hikyaku_net::Side;
use hikyaku_net::blocking::block_on;
use hikyaku_pipes::{Config, Pipe};
use hikyaku_units::Rate;
use std::io::{self, IoSlice, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// A far side of this program that goes on for longer than this after its session has ended is left alone: a disk may
/// hold it for ever.
const GRACE: Duration = Duration::from_secs(5);
const LOOK: Duration = Duration::from_millis(2);

/// A far side that is a thread of this program. Who drops it waits until it has put its work away: with the program
/// it would end in the midst of that.
pub(crate) struct Neighbour(JoinHandle<()>);

impl Drop for Neighbour {
    fn drop(&mut self) {
        let begin = Instant::now();
        while !self.0.is_finished() && begin.elapsed() < GRACE {
            thread::sleep(LOOK);
        }
    }
}

/// Starts a far side here: `work` runs on a thread of its own with the connection and the stream on which the near side
/// begins to speak. Each end sends at most `limit`.
pub fn here(
    service: &Service,
    limit: Option<Rate>,
    work: impl FnOnce(Connection, Stream) + Send + 'static,
) -> io::Result<Reached> {
    let (ours, theirs) = UnixStream::pair()?;
    let far = connect(theirs, Side::Server, service, limit)?;
    let thread = thread::Builder::new().name("reach-local".to_owned()).spawn(move || {
        if let Ok(stream) = block_on(far.accept_stream()) {
            work(far, stream);
        }
    })?;
    let connection = connect(ours, Side::Client, service, limit)?;
    let side = FarSide::here(Neighbour(thread));
    let (agreed, fate) = (Agreed::with_itself(), Fate::default());
    Ok(Reached { connection, agreed, fate, advice: None, side })
}

fn connect(
    socket: UnixStream,
    side: Side,
    service: &Service,
    rate: Option<Rate>,
) -> io::Result<Connection> {
    let config = Config { streams_max: service.streams_max as usize, ..Config::default() };
    let pipe = Pipe::new(socket.try_clone()?, HalfClosed(socket));
    let connection = Connection::from(hikyaku_pipes::Connection::new(vec![pipe], side, config)?);
    connection.set_payload_rate(rate);
    Ok(connection)
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
