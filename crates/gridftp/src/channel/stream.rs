//! Files in stream mode (RFC 959): one data connection carries a file from an offset to its end, and ends with it.
//!
//! A data connection that ends early looks like the end of a file. So a part counts when all of its bytes have come, and an
//! upload when the server has confirmed it.
//!
//! A part that ends before its file keeps the connection for the part behind it. If another part follows, this end closes
//! the connection, and the server's reply to that is not of interest.

use super::download::LISTING_BYTES_MAX;
use super::replies::Replies;
use super::{Channel, LOOK_EVERY, Mode, Pool, connect};
use crate::command::Command;
use crate::control::{is_pause, refused, wait_for};
use crate::data::Data;
use crate::error::FtpError;
use crate::plan::{Plan, Store, Upload, Wanted};
use crate::transfer::{Flow, Part, Transferred, Watch, lost, share};
use rustix::event::{PollFd, PollFlags};
use std::io::{self, Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Bytes that are read and stored at once.
const PIECE_BYTES: usize = 256 << 10;
/// Maximum time for the reply with the reason of a lost data connection.
const REASON_TIMEOUT: Duration = Duration::from_secs(5);

/// A file that the server is sending.
struct Sending {
    path: Vec<u8>,
    /// Offset of the next byte.
    at: u64,
    data: Data,
    replies: Replies,
}

impl Sending {
    /// Whether its next byte is the first one of a part.
    fn is_at(&self, part: &Part<'_>) -> bool {
        self.path == part.path && self.at == part.offset
    }
}

impl Channel {
    /// Whether the server cannot connect to this end, so that downloads come in stream mode.
    pub fn is_out_of_reach(&self) -> bool {
        self.settings.reach.is_blocked()
    }

    /// Does something in stream mode over a channel in extended block mode.
    pub(super) fn in_stream_mode<T>(
        &mut self,
        work: impl FnOnce(&mut Self) -> Result<T, FtpError>,
    ) -> Result<T, FtpError> {
        self.pool = Pool::Empty;
        self.control.demand(&Command::new("MODE S"))?;
        self.mode = Mode::Stream;
        let done = work(self);
        self.mode = Mode::Extended;
        // After another error the channel is of no use any more.
        if done.as_ref().err().is_none_or(FtpError::leaves_channel) && self.is_in_step() {
            self.control.demand(&Command::new("MODE E"))?;
        }
        done
    }

    pub(super) fn download_streams<'a>(
        &mut self,
        plan: &mut dyn Plan<'a, Arc<Store<'a>>>,
        counted: &AtomicU64,
    ) -> Result<(), FtpError> {
        let settings = self.settings.clone();
        let flow = &Flow::new(&settings, counted);
        let mut sending: Option<Sending> = None;
        while let Some(Wanted { part, with, .. }) = plan.next(None) {
            let (begin, before) = (Instant::now(), flow.local_time());
            let mut now = match sending.take() {
                Some(now) if now.is_at(&part) => now,
                other => {
                    other.map_or(Ok(()), |other| self.leave(other, flow))?;
                    let begun = self.begin_to_receive(&part, flow);
                    begun.map_err(|error| self.explained(error))?
                }
            };
            self.receive_part(&mut now, part.length, flow, &*with)?;
            plan.done(&done(begin, flow.local_time() - before, None));
            sending = Some(now);
        }
        sending.map_or(Ok(()), |last| self.leave(last, flow))
    }

    pub(super) fn upload_streams<'a>(
        &mut self,
        plan: &mut dyn Plan<'a, Upload<'a>>,
        counted: &AtomicU64,
    ) -> Result<(), FtpError> {
        let settings = self.settings.clone();
        let flow = &Flow::new(&settings, counted);
        while let Some(wanted) = plan.next(None) {
            let (begin, before) = (Instant::now(), flow.local_time());
            let sent = self.send_part(&wanted, flow);
            let again = sent.map_err(|error| self.explained(error))?;
            plan.done(&done(begin, flow.local_time() - before, Some(again)));
        }
        Ok(())
    }

    /// The text that the server sends for a command such as MLSD, to its end.
    pub(super) fn text_in_stream(&mut self, command: Command) -> Result<Vec<u8>, FtpError> {
        let (settings, counted) = (self.settings.clone(), AtomicU64::new(0));
        let flow = &Flow::new(&settings, &counted);
        let address = self.passive()?;
        let mut data = connect::connect((address, 0), &settings, flow)
            .map_err(|error| self.explained(error))?;
        self.control.send(&command)?;
        let mut replies = Replies::new([command]);
        let (mut text, mut piece) = (Vec::new(), vec![0; PIECE_BYTES]);
        let mut watch = Watch::new(flow);
        loop {
            match data.read(&mut piece) {
                Ok(0) => break,
                Ok(read) => text.extend_from_slice(&piece[..read]),
                Err(error) if is_pause(error.kind()) => {
                    self.step(flow, &mut watch, &mut replies)?
                }
                Err(error) => return Err(self.reason(replies, flow, FtpError::Data(error))),
            }
            if text.len() as u64 > LISTING_BYTES_MAX {
                return Err(FtpError::Lie("sends a listing that is too long"));
            }
        }
        drop(data);
        self.finish(replies, flow)?;
        Ok(text)
    }

    /// Lets the server send a file from the first byte of a part on.
    fn begin_to_receive(&mut self, part: &Part<'_>, flow: &Flow<'_>) -> Result<Sending, FtpError> {
        let command = self.about("RETR", part.path)?;
        let data = self.begin(&command, part.offset, flow)?;
        let (path, replies) = (part.path.to_vec(), Replies::new([command]));
        Ok(Sending { path, at: part.offset, data, replies })
    }

    /// Opens a data connection, and sends a command that uses it from an offset of its file on.
    fn begin(&mut self, command: &Command, offset: u64, flow: &Flow<'_>) -> Result<Data, FtpError> {
        let (address, settings) = (self.passive()?, self.settings.clone());
        let data = connect::connect((address, 0), &settings, flow)?;
        if offset > 0 {
            let restart = Command::new(format!("REST {offset}"));
            let reply = self.control.ask(&restart)?;
            if !reply.wants_more() {
                return Err(refused(&restart, &reply));
            }
        }
        self.control.send(command)?;
        Ok(data)
    }

    fn receive_part(
        &mut self,
        sending: &mut Sending,
        length: u64,
        flow: &Flow<'_>,
        store: &Store<'_>,
    ) -> Result<(), FtpError> {
        let (end, mut piece) = (sending.at + length, vec![0; PIECE_BYTES]);
        let mut watch = Watch::new(flow);
        while sending.at < end {
            let most = piece.len().min(usize::try_from(end - sending.at).unwrap_or(usize::MAX));
            match sending.data.read(&mut piece[..most]) {
                Ok(0) => {
                    let replies = std::mem::replace(&mut sending.replies, Replies::new([]));
                    return Err(self.reason(replies, flow, lost()));
                }
                Ok(read) => {
                    flow.locally(|| store(sending.at, &piece[..read])).map_err(FtpError::Local)?;
                    flow.counted.fetch_add(read as u64, Ordering::Relaxed);
                    sending.at += read as u64;
                }
                Err(error) if is_pause(error.kind()) => {
                    self.step(flow, &mut watch, &mut sending.replies)?;
                }
                Err(error) => {
                    let replies = std::mem::replace(&mut sending.replies, Replies::new([]));
                    return Err(self.reason(replies, flow, FtpError::Data(error)));
                }
            }
            // Bytes that never pause must not keep a transfer from ending.
            if flow.is_over() {
                return Err(FtpError::Stopped);
            }
        }
        Ok(())
    }

    /// Stores a file from an offset on, in stream mode: the blocks that `next` returns, until it returns none. Bytes behind
    /// the last block may stay.
    ///
    /// # Errors
    /// Also if `next` fails. The server may have stored some bytes.
    pub fn put_blocks(
        &mut self,
        (path, offset): (&[u8], u64),
        counted: &AtomicU64,
        next: &mut dyn FnMut() -> io::Result<Option<Vec<u8>>>,
    ) -> Result<(), FtpError> {
        if self.mode != Mode::Stream {
            return Err(FtpError::Lacks(
                "store a file in order: it is used in extended block mode",
            ));
        }
        let settings = self.settings.clone();
        let flow = &Flow::new(&settings, counted);
        let sent = self.send_blocks((path, offset), flow, next);
        sent.map(drop).map_err(|error| self.explained(error))
    }

    /// Sends a part. Returns the number of packets that were sent again.
    fn send_part(
        &mut self,
        wanted: &Wanted<'_, Upload<'_>>,
        flow: &Flow<'_>,
    ) -> Result<u64, FtpError> {
        let part = &wanted.part;
        let (end, block) = (part.offset + part.length, u64::from(self.settings.block_bytes.max(1)));
        let mut at = part.offset;
        self.send_blocks((part.path, part.offset), flow, &mut || {
            if at >= end {
                return Ok(None);
            }
            let mut bytes = vec![0; (end - at).min(block) as usize];
            (wanted.with)(at, &mut bytes)?;
            at += bytes.len() as u64;
            Ok(Some(bytes))
        })
    }

    fn send_blocks(
        &mut self,
        (path, offset): (&[u8], u64),
        flow: &Flow<'_>,
        next: &mut dyn FnMut() -> io::Result<Option<Vec<u8>>>,
    ) -> Result<u64, FtpError> {
        let command = self.about("STOR", path)?;
        let mut data = self.begin(&command, offset, flow)?;
        let mut replies = Replies::new([command]);
        while let Some(bytes) = flow.locally(&mut *next).map_err(FtpError::Local)? {
            self.write_all(&mut data, &bytes, flow, &mut replies)?;
        }
        self.flush(&mut data, flow, &mut replies)?;
        let again = data.retransmitted();
        // The end of the connection is the end of the file.
        drop(data);
        self.finish(replies, flow)?;
        Ok(again)
    }

    fn write_all(
        &mut self,
        data: &mut Data,
        mut bytes: &[u8],
        flow: &Flow<'_>,
        replies: &mut Replies,
    ) -> Result<(), FtpError> {
        let mut watch = Watch::new(flow);
        while !bytes.is_empty() {
            match data.write(bytes) {
                Ok(written) => {
                    bytes = &bytes[written..];
                    flow.counted.fetch_add(written as u64, Ordering::Relaxed);
                }
                Err(error) if is_pause(error.kind()) => self.step(flow, &mut watch, replies)?,
                Err(error) => {
                    let replies = std::mem::replace(replies, Replies::new([]));
                    return Err(self.reason(replies, flow, FtpError::Data(error)));
                }
            }
            if flow.is_over() {
                return Err(FtpError::Stopped);
            }
        }
        Ok(())
    }

    fn flush(
        &mut self,
        data: &mut Data,
        flow: &Flow<'_>,
        replies: &mut Replies,
    ) -> Result<(), FtpError> {
        let mut watch = Watch::new(flow);
        loop {
            match data.flush() {
                Ok(()) => return Ok(()),
                Err(error) if is_pause(error.kind()) => self.step(flow, &mut watch, replies)?,
                Err(error) => return Err(FtpError::Data(error)),
            }
        }
    }

    /// Closes the data connection of a file that may have more bytes than are wanted. The server's reply to that is no
    /// failure.
    fn leave(&mut self, sending: Sending, flow: &Flow<'_>) -> Result<(), FtpError> {
        let Sending { data, replies, .. } = sending;
        drop(data);
        match self.finish(replies, flow) {
            Err(FtpError::Refused { .. }) => Ok(()),
            finished => finished,
        }
    }

    /// Waits for the last reply of a transfer whose data connection is closed.
    fn finish(&mut self, mut replies: Replies, flow: &Flow<'_>) -> Result<(), FtpError> {
        let mut watch = Watch::new(flow);
        loop {
            self.step(flow, &mut watch, &mut replies)?;
            if replies.is_final() {
                return Ok(());
            }
            wait_for(&mut [PollFd::new(&self.control, PollFlags::IN)], LOOK_EVERY);
        }
    }

    /// The reason of a lost data connection: that of the server's reply, if one arrives.
    fn reason(&mut self, mut replies: Replies, flow: &Flow<'_>, failure: FtpError) -> FtpError {
        let (mut watch, begin) = (Watch::new(flow), Instant::now());
        while begin.elapsed() < REASON_TIMEOUT {
            match self.step(flow, &mut watch, &mut replies) {
                Err(reason @ FtpError::Refused { .. }) => return reason,
                Err(_) => return failure,
                Ok(()) if replies.is_final() => {
                    return FtpError::Lie("ends a part before all of it was sent");
                }
                Ok(()) => wait_for(&mut [PollFd::new(&self.control, PollFlags::IN)], LOOK_EVERY),
            }
        }
        failure
    }
}

fn done(begin: Instant, local: Duration, retransmitted: Option<u64>) -> Transferred {
    let elapsed = begin.elapsed();
    let local_share = share(local, 1, elapsed);
    Transferred { connections: 1, elapsed, local_share, retransmitted }
}
