//! The threads that read and write a pipe.

use crate::connection::Shared;
use crate::frame::{HEADER_BYTES, Header};
use crate::mux::{Breaker, PipeId, Task};
use hikyaku_proto::CloseReason;
use std::io::{self, BufReader, IoSlice, Read, Write};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

/// A pipe in both directions.
pub struct Pipe {
    /// The bytes that the peer sends.
    pub input: Box<dyn Read + Send>,
    /// The bytes to the peer. The writer must not hold bytes back beyond a [`Write::flush`].
    pub output: Box<dyn Write + Send>,
    /// Ends both directions at once, so that threads that wait for them continue.
    pub(crate) breaker: Option<Breaker>,
}

/// The read buffer for headers and small payloads. Large payloads bypass it.
const READ_BUFFER_BYTES: usize = 64 << 10;
/// How long, after a pipe takes nothing more, what the peer has sent before is still read.
const LAST_WORD: Duration = Duration::from_secs(1);

impl Pipe {
    /// A pipe that consists of these two directions.
    pub fn new(input: impl Read + Send + 'static, output: impl Write + Send + 'static) -> Self {
        Self { input: Box::new(input), output: Box::new(output), breaker: None }
    }

    /// Adds a function that ends both directions at once, so that a thread that waits for them continues.
    /// Without it a pipe that is stuck keeps its two threads.
    #[must_use]
    pub fn with_breaker(self, breaker: impl Fn() + Send + 'static) -> Self {
        Self { breaker: Some(Box::new(breaker)), ..self }
    }

    /// Starts the threads of the pipe, which the connection knows by its number.
    pub(crate) fn start(self, id: PipeId, shared: &Arc<Shared>) -> io::Result<()> {
        let Self { input, output, .. } = self;
        let (reads, writes) = (shared.clone(), shared.clone());
        shared.writers.begin();
        thread::Builder::new()
            .name("pipe-write".to_owned())
            .spawn(move || {
                if let Err(error) = write(&writes, id, output) {
                    // A peer that has closed the connection takes nothing more. Why it has done so is on its way.
                    if writes.needs(id) {
                        writes.wait_for_end(LAST_WORD);
                    }
                    writes.lose(id, lost(&error));
                }
                writes.writers.end();
            })
            .inspect_err(|_| shared.writers.end())?;
        thread::Builder::new().name("pipe-read".to_owned()).spawn(move || {
            match read(&reads, id, input) {
                reason @ CloseReason::Violation(_) => reads.fail(reason),
                reason => reads.lose(id, reason),
            }
        })?;
        Ok(())
    }
}

/// A broken pipe is reported as a lost connection.
const fn lost(_: &io::Error) -> CloseReason {
    CloseReason::TimedOut
}

fn write(shared: &Shared, id: PipeId, mut output: Box<dyn Write + Send>) -> io::Result<()> {
    loop {
        match shared.next_task(id) {
            Task::Write(header, payload) => {
                write_frame(&mut output, &header, &payload)?;
                shared.wrote(payload.len());
            }
            Task::WriteLast(header, payload) => {
                write_frame(&mut output, &header, &payload)?;
                return output.flush();
            }
            Task::Wait(time) => {
                output.flush()?;
                shared.wait(id, time);
            }
            Task::End => return Ok(()),
        }
    }
}

fn write_frame(output: &mut impl Write, header: &Header, payload: &[u8]) -> io::Result<()> {
    let header = header.write();
    let mut slices = [IoSlice::new(&header), IoSlice::new(payload)];
    let mut rest = &mut slices[..];
    while !rest.is_empty() {
        match output.write_vectored(rest) {
            Ok(0) if rest.iter().all(|slice| slice.is_empty()) => break,
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => IoSlice::advance_slices(&mut rest, written),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Counts arriving bytes: a large frame occupies a slow pipe for a long time, so that frames are no measure of its rate.
struct Counted<'a> {
    input: Box<dyn Read + Send>,
    shared: &'a Shared,
}

impl Read for Counted<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let read = self.input.read(out)?;
        self.shared.has_arrived(read);
        Ok(read)
    }
}

/// Reads frames until the pipe ends. Returns the reason.
fn read(shared: &Shared, id: PipeId, input: Box<dyn Read + Send>) -> CloseReason {
    let input = Counted { input, shared };
    let mut input = BufReader::with_capacity(READ_BUFFER_BYTES, input);
    let mut header = [0; HEADER_BYTES];
    loop {
        if let Err(error) = input.read_exact(&mut header) {
            return lost(&error);
        }
        let header = match Header::read(&header) {
            Ok(header) => header,
            Err(error) => return CloseReason::Violation(error.to_string()),
        };
        let mut payload = Vec::with_capacity(header.length);
        match input.by_ref().take(header.length as u64).read_to_end(&mut payload) {
            Ok(length) if length == header.length => {}
            Ok(_) => return lost(&io::ErrorKind::UnexpectedEof.into()),
            Err(error) => return lost(&error),
        }
        if let Err(text) = shared.on_frame(id, header, payload) {
            return CloseReason::Violation(text);
        }
        if let Some(reason) = shared.end() {
            return reason;
        }
    }
}
