//! The control connection: commands out, replies in.

use crate::command::Command;
use crate::error::FtpError;
use crate::gsi::Shield;
use crate::reply::{Reply, ReplyReader};
use crate::settings::{Settings, Spoken};
use hikyaku_tuner::RttMean;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

/// Interval at which a wait checks the request to stop.
pub(crate) const LOOK_EVERY: Duration = Duration::from_millis(100);
/// Bytes that are read at once.
const READ_BYTES: usize = 4096;

/// The control connection.
#[derive(Debug)]
pub(crate) struct Control {
    stream: TcpStream,
    reader: ReplyReader,
    settings: Settings,
    /// TLS, once the login by certificate has begun to use it, and the replies in it.
    shield: Option<(Shield, ReplyReader)>,
    /// Mean time from a command that does no work to its reply.
    rtt: RttMean,
    /// Commands whose last reply has not come.
    due: u32,
    /// When bytes came last.
    heard: Instant,
}

impl Control {
    pub(crate) fn new(stream: TcpStream, settings: Settings) -> Result<Self, FtpError> {
        stream.set_nonblocking(true).map_err(FtpError::Control)?;
        stream.set_nodelay(true).map_err(FtpError::Control)?;
        let (reader, rtt) = (ReplyReader::new(), RttMean::new());
        Ok(Self { stream, reader, settings, shield: None, rtt, due: 0, heard: Instant::now() })
    }

    /// Ends its waits when `stop` is set.
    pub(crate) fn stopped_by(&mut self, stop: &Arc<AtomicBool>) {
        self.settings.stop = Arc::clone(stop);
    }

    pub(crate) fn peer(&self) -> Result<SocketAddr, FtpError> {
        self.stream.peer_addr().map_err(FtpError::Control)
    }

    pub(crate) fn local(&self) -> Result<SocketAddr, FtpError> {
        self.stream.local_addr().map_err(FtpError::Control)
    }

    pub(crate) const fn rtt(&self) -> Option<Duration> {
        self.rtt.mean()
    }

    /// Whether every command has its last reply.
    pub(crate) const fn is_in_step(&self) -> bool {
        self.due == 0
    }

    /// From here on commands and replies are encrypted.
    pub(crate) fn shield(&mut self, shield: Shield) {
        self.shield = Some((shield, ReplyReader::new()));
    }

    /// Sends a command. Its replies are read later.
    pub(crate) fn send(&mut self, command: &Command) -> Result<(), FtpError> {
        if let Some(trace) = &self.settings.trace {
            trace(Spoken::Command(&command.shown()));
        }
        self.due += 1;
        let mut line = [command.as_bytes(), b"\r\n"].concat();
        if let Some((shield, _)) = &mut self.shield {
            line = format!("ENC {}\r\n", shield.seal_command(&line)?).into_bytes();
        }
        let (mut rest, until) = (line.as_slice(), Instant::now() + self.settings.patience);
        while !rest.is_empty() {
            match self.stream.write(rest) {
                Ok(written) => rest = &rest[written..],
                Err(error) if is_pause(error.kind()) => self.wait(PollFlags::OUT, until)?,
                Err(error) => return Err(FtpError::Control(error)),
            }
        }
        Ok(())
    }

    /// The next reply, if it has come. Does not wait.
    pub(crate) fn poll_reply(&mut self) -> Result<Option<Reply>, FtpError> {
        loop {
            if let Some(reply) = self.next_reply()? {
                if let Some(trace) = &self.settings.trace {
                    trace(Spoken::Reply(&reply));
                }
                self.due = self.due.saturating_sub(u32::from(!reply.is_preliminary()));
                return Ok(Some(reply));
            }
            let mut bytes = [0; READ_BYTES];
            match self.stream.read(&mut bytes) {
                Ok(0) => return Err(FtpError::Control(ErrorKind::UnexpectedEof.into())),
                Ok(read) => {
                    self.heard = Instant::now();
                    self.reader.handle_bytes(&bytes[..read]);
                }
                Err(error) if is_pause(error.kind()) => return Ok(None),
                Err(error) => return Err(FtpError::Control(error)),
            }
        }
    }

    /// The next reply in what was read.
    fn next_reply(&mut self) -> Result<Option<Reply>, FtpError> {
        let Some((shield, inner)) = &mut self.shield else { return Ok(self.reader.poll_reply()?) };
        loop {
            if let Some(reply) = inner.poll_reply()? {
                return Ok(Some(reply));
            }
            let Some(outer) = self.reader.poll_reply()? else { return Ok(None) };
            if !(631..=633).contains(&outer.code) {
                return Err(FtpError::Lie("answers in the clear where it should be encrypted"));
            }
            let code = format!("{}-", outer.code);
            for line in &outer.lines {
                let text = line.strip_prefix(code.as_bytes()).unwrap_or(line);
                inner.handle_bytes(&shield.open(text)?);
            }
        }
    }

    /// Waits for a reply that is not preliminary.
    pub(crate) fn reply(&mut self) -> Result<Reply, FtpError> {
        self.replies(|_| Ok(()))
    }

    /// Waits for a reply that is not preliminary, and passes each preliminary reply to `preliminary`.
    ///
    /// # Errors
    /// Also that of `preliminary`.
    pub(crate) fn replies(
        &mut self,
        mut preliminary: impl FnMut(&Reply) -> Result<(), FtpError>,
    ) -> Result<Reply, FtpError> {
        let begin = Instant::now();
        loop {
            match self.poll_reply()? {
                Some(reply) if !reply.is_preliminary() => return Ok(reply),
                Some(reply) => preliminary(&reply)?,
                // A long reply takes its time.
                None => {
                    let until = begin.max(self.heard) + self.settings.patience;
                    self.wait(PollFlags::IN, until)?;
                }
            }
        }
    }

    /// Sends a command and waits for its reply.
    pub(crate) fn ask(&mut self, command: &Command) -> Result<Reply, FtpError> {
        self.send(command)?;
        self.reply()
    }

    /// Sends a command and reads its reply. Any reply but a positive one is an error.
    pub(crate) fn demand(&mut self, command: &Command) -> Result<Reply, FtpError> {
        let reply = self.ask(command)?;
        if reply.is_done() { Ok(reply) } else { Err(refused(command, &reply)) }
    }

    /// Like [`Self::demand`], for a command without work for the server: its time counts as a round trip.
    pub(crate) fn demand_timed(&mut self, command: &Command) -> Result<Reply, FtpError> {
        let begin = Instant::now();
        let reply = self.demand(command)?;
        self.rtt.observe(begin.elapsed());
        Ok(reply)
    }

    fn wait(&self, what: PollFlags, until: Instant) -> Result<(), FtpError> {
        if self.settings.is_stopped() {
            return Err(FtpError::Stopped);
        }
        if Instant::now() >= until {
            return Err(FtpError::Stalled(self.settings.patience));
        }
        wait_for(&mut [PollFd::new(&self.stream, what)], LOOK_EVERY);
        Ok(())
    }
}

impl AsFd for Control {
    fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

/// Waits until one of `fds` is ready, or for `within`. An error counts as ready: the operation that follows meets it.
pub(crate) fn wait_for(fds: &mut [PollFd<'_>], within: Duration) {
    let within = Timespec { tv_sec: 0, tv_nsec: within.subsec_nanos().into() };
    let _ = poll(fds, Some(&within));
}

/// A command that was not accepted.
pub(crate) fn refused(command: &Command, reply: &Reply) -> FtpError {
    FtpError::Refused { command: command.verb(), code: reply.code, text: reply.text() }
}

/// Whether an operation has to be tried again.
pub(crate) fn is_pause(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted)
}
