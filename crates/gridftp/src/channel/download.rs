//! Parts of files from a server.

use super::replies::Replies;
use super::{Channel, LOOK_EVERY, Mode, Pool};
use crate::address::{port_command, striped_port_command};
use crate::command::Command;
use crate::control::wait_for;
use crate::data::Data;
use crate::error::FtpError;
use crate::get::{self, Ended, Expected, Receipt};
use crate::plan::{Once, Plan, Store, Wanted};
use crate::transfer::{Flow, Part, Progress, Transferred, Watch, lock, share};
use rustix::event::{PollFd, PollFlags};
use std::collections::VecDeque;
use std::io;
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Bytes of a listing of one directory: some 100,000 names.
pub(super) const LISTING_BYTES_MAX: u64 = 16 << 20;
/// Data nodes send blocks of this size in turn. Without it one of them may send all of a short part.
const STRIPED_LAYOUT: &str = "StripeLayout=Blocked;BlockSize=1048576;";
/// How long the server may take to connect to this end: a lost SYN is sent again after 1, 3 and 7 s.
const REACH_TIMEOUT: Duration = Duration::from_secs(8);

/// A requested part that has not arrived yet.
struct Asked<'a> {
    expected: Expected,
    store: Arc<Store<'a>>,
    connections: u32,
    replies: Replies,
    /// How many data nodes send it.
    stripes: usize,
    /// Where each data node connects to; empty: they use the connections of the part before.
    listeners: Vec<TcpListener>,
    sent: Instant,
}

/// A function that is called repeatedly while a part is transferred.
type Look<'l> = dyn FnMut(&mut Channel, &Progress) -> Result<(), FtpError> + 'l;

impl Channel {
    /// Downloads the parts of a plan. Each part's [`Wanted::with`] is called by several threads at once, with offsets from the
    /// start of the file. `counted` grows by the bytes that were stored.
    ///
    /// A part that the plan returns while another is under way is asked for at once, also if it wants another number of
    /// connections. In stream mode one connection carries each part, one part after the other. A part that begins where the
    /// part before it ended, in the same file, comes over the same connection, without another command.
    ///
    /// # Errors
    /// Also if the caller's function fails. Some bytes of parts that are not done may have been stored. If more than one part
    /// was under way the channel is of no use any more. After [`FtpError::NotReached`] downloads come in stream mode.
    pub fn download<'a>(
        &mut self,
        plan: &mut dyn Plan<'a, Arc<Store<'a>>>,
        counted: &AtomicU64,
    ) -> Result<(), FtpError> {
        if self.mode == Mode::Stream {
            return self.download_streams(plan, counted);
        }
        if self.is_out_of_reach() {
            return self.in_stream_mode(|channel| channel.download_streams(plan, counted));
        }
        let mut waiting: VecDeque<Asked<'a>> = VecDeque::new();
        let mut ended = None;
        loop {
            let asked = match waiting.pop_front() {
                Some(asked) => asked,
                None => {
                    let Some(wanted) = plan.next(None) else { return Ok(()) };
                    ended = None;
                    let warm = self.pool.receiving(self.stripes());
                    self.ask_for(wanted, warm)?
                }
            };
            let begin = ended.unwrap_or(asked.sent);
            let connections = asked.connections;
            let (done, _) = self.receive(asked, begin, counted, &mut |channel, progress| {
                while let Some(wanted) = plan.next(Some(progress)) {
                    let last = waiting.back().map_or(connections, |asked| asked.connections);
                    waiting.push_back(channel.ask_for(wanted, Some(last))?);
                }
                Ok(())
            })?;
            ended = Some(begin + done.elapsed);
            plan.done(&done);
        }
    }

    /// Downloads one part through `n` connections. `counted` grows by the bytes that were stored.
    ///
    /// # Errors
    /// Also if `store` fails. Some bytes may have been stored.
    pub fn get(
        &mut self,
        part: &Part<'_>,
        n: u32,
        counted: &AtomicU64,
        store: impl Fn(u64, &[u8]) -> io::Result<()> + Send + Sync,
    ) -> Result<Transferred, FtpError> {
        let with: Arc<Store<'_>> = Arc::new(store);
        let mut plan = Once::new(Wanted { part: *part, connections: n, with });
        self.download(&mut plan, counted)?;
        plan.done.ok_or(FtpError::Stopped)
    }

    /// The text that the server sends for a command such as MLSD, in blocks.
    pub(super) fn text_in_blocks(&mut self, command: Command) -> Result<Vec<u8>, FtpError> {
        let text = Mutex::new(Vec::new());
        let store = |offset: u64, bytes: &[u8]| {
            let mut text = lock(&text);
            let start = usize::try_from(offset).map_err(io::Error::other)?;
            let end = start + bytes.len();
            if text.len() < end {
                text.resize(end, 0);
            }
            text[start..end].copy_from_slice(bytes);
            Ok(())
        };
        let store: Arc<Store<'_>> = Arc::new(store);
        let (warm, expected) = (self.pool.receiving(1), Expected::AtMost(LISTING_BYTES_MAX));
        // One data node, or the server itself, sends it.
        let asked = self.ask(command, (1, warm, 1), expected, store)?;
        let begin = asked.sent;
        let (_, length) = self.receive(asked, begin, &AtomicU64::new(0), &mut |_, _| Ok(()))?;
        let mut text = text.into_inner().unwrap_or_else(PoisonError::into_inner);
        text.truncate(usize::try_from(length).unwrap_or(usize::MAX));
        Ok(text)
    }

    /// Asks for a part. `warm` is the number of connections that the server has at that time.
    fn ask_for<'a>(
        &mut self,
        wanted: Wanted<'a, Arc<Store<'a>>>,
        warm: Option<u32>,
    ) -> Result<Asked<'a>, FtpError> {
        let Wanted { part, connections, with } = wanted;
        let words = format!("ERET P {} {}", part.offset, part.length);
        let command = self.about(&words, part.path)?;
        // Offsets in the blocks of a part begin at 0.
        let store = move |offset: u64, bytes: &[u8]| with(part.offset + offset, bytes);
        let expected = Expected::Exactly(part.length);
        let stripes = self.stripes();
        self.ask(command, (connections, warm, stripes), expected, Arc::new(store))
    }

    fn ask<'a>(
        &mut self,
        command: Command,
        (connections, warm, stripes): (u32, Option<u32>, usize),
        expected: Expected,
        store: Arc<Store<'a>>,
    ) -> Result<Asked<'a>, FtpError> {
        let n = connections;
        let (mut listeners, mut commands) = (Vec::new(), Vec::new());
        if warm != Some(n) {
            listeners = (0..stripes).map(|_| self.listen()).collect::<Result<_, _>>()?;
            let addresses = listeners.iter().map(TcpListener::local_addr);
            let addresses: Vec<_> =
                addresses.collect::<Result<_, _>>().map_err(FtpError::Control)?;
            let port = match addresses.as_slice() {
                [address] => Some(port_command(*address)),
                addresses => striped_port_command(addresses),
            };
            let port = port.ok_or(FtpError::Lacks("be told of several addresses over IPv6"))?;
            let layout = if stripes > 1 { STRIPED_LAYOUT } else { "" };
            let options = format!("OPTS RETR {layout}Parallelism={n},{n},{n};");
            commands.extend([Command::new(options), Command::new(port)]);
        }
        for command in &commands {
            self.control.send(command)?;
        }
        let sent = Instant::now();
        self.control.send(&command)?;
        commands.push(command);
        let replies = Replies::new(commands);
        Ok(Asked { expected, store, connections, replies, stripes, listeners, sent })
    }

    /// Receives what was asked for. Returns its length as well.
    fn receive(
        &mut self,
        asked: Asked<'_>,
        begin: Instant,
        counted: &AtomicU64,
        look: &mut Look<'_>,
    ) -> Result<(Transferred, u64), FtpError> {
        let Asked { expected, store, connections: n, mut replies, stripes, listeners, .. } = asked;
        let all = n as usize * stripes;
        let warm = match std::mem::take(&mut self.pool) {
            Pool::Receiving(warm) if listeners.is_empty() && warm.len() == all => warm,
            _ if listeners.is_empty() => {
                return Err(FtpError::Lie("closes data connections that it was to use again"));
            }
            _ => Vec::new(),
        };
        let (settings, bell) = (self.settings.clone(), Arc::clone(&self.bell));
        let bell = &*bell;
        let (flow, receipt) = (&Flow::new(&settings, counted), &Receipt::new(expected, stripes));
        let (store, before) = (&*store, counted.load(Ordering::Relaxed));
        let gauges = &self.gauges.clone();
        let kept = thread::scope(|scope| {
            let guard = settings.guard.as_ref();
            let start = |data: Result<Data, (TcpStream, usize)>| {
                scope.spawn(move || {
                    let accepted = data.or_else(|stream| {
                        Data::accepted(stream, guard, flow).map(|data| data.gauged(gauges.add()))
                    });
                    let ended = match accepted {
                        Ok(data) => get::receive(data, flow, receipt, store),
                        Err(error) => {
                            flow.fail(error);
                            Ended::Closed
                        }
                    };
                    bell.ring();
                    ended
                })
            };
            let mut threads: Vec<_> = warm.into_iter().map(Ok).map(start).collect();
            let (mut accepted, mut watch) = (vec![0; stripes], Watch::new(flow));
            let result = loop {
                match self.step(flow, &mut watch, &mut replies) {
                    Err(error) => break Err(error),
                    Ok(()) if replies.is_final() && receipt.is_ended() => break Ok(()),
                    Ok(()) => {}
                }
                let connections = of_each(threads.len(), stripes);
                let elapsed = begin.elapsed();
                let local_share = share(flow.local_time(), of_each(threads.len(), 1), elapsed);
                let bytes = counted.load(Ordering::Relaxed).saturating_sub(before);
                let progress = Progress { connections, bytes, elapsed, local_share };
                if let Err(error) = look(self, &progress) {
                    break Err(error);
                }
                match self.accept_of(&listeners, &mut accepted, n) {
                    Ok(streams) => threads.extend(streams.into_iter().map(Err).map(start)),
                    Err(error) => break Err(error),
                }
                if threads.is_empty() && begin.elapsed() > REACH_TIMEOUT {
                    // One that connects from another address is no matter of the way.
                    if self.odd.stranger.get().is_none() {
                        self.settings.reach.block();
                    }
                    break Err(FtpError::NotReached(REACH_TIMEOUT));
                }
                let mut fds = vec![
                    PollFd::new(&self.control, PollFlags::IN),
                    PollFd::new(bell, PollFlags::IN),
                ];
                let listening = listeners.iter().map(TcpListener::as_fd);
                fds.extend(listening.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)));
                wait_for(&mut fds, LOOK_EVERY);
                bell.stop();
            };
            if let Err(error) = result {
                flow.fail(error);
            }
            flow.end();
            let ended = threads.into_iter().filter_map(|thread| thread.join().ok());
            ended.collect::<Vec<_>>()
        });
        let elapsed = begin.elapsed();
        if let Some(failure) = flow.take_failure() {
            return Err(self.explained(failure));
        }
        self.odd.stranger.take();
        let (connections, all) = (of_each(kept.len(), stripes), of_each(kept.len(), 1));
        let length = receipt.whole()?;
        self.pool = Pool::Receiving(kept.into_iter().filter_map(Ended::kept).collect());
        let local_share = share(flow.local_time(), all, elapsed);
        Ok((Transferred { connections, elapsed, local_share, retransmitted: None }, length))
    }

    /// The data connections that have come, each with the number of its data node; at most one of each. `accepted` counts
    /// those of each node.
    fn accept_of(
        &self,
        listeners: &[TcpListener],
        accepted: &mut [u32],
        most: u32,
    ) -> Result<Vec<(TcpStream, usize)>, FtpError> {
        let mut streams = Vec::new();
        for (stripe, (listener, count)) in listeners.iter().zip(accepted).enumerate() {
            let Some(stream) = self.accept(listener)? else { continue };
            *count += 1;
            if *count > most {
                return Err(FtpError::Lie("opens more data connections than asked for"));
            }
            streams.push((stream, stripe));
        }
        Ok(streams)
    }
}

/// The share of each data node of `connections` connections.
fn of_each(connections: usize, stripes: usize) -> u32 {
    u32::try_from(connections / stripes.max(1)).unwrap_or(u32::MAX)
}

impl Pool {
    /// The number of open connections of each of `stripes` data nodes that wait for the next part.
    fn receiving(&self, stripes: usize) -> Option<u32> {
        match self {
            Self::Receiving(waiting) if waiting.len() % stripes == 0 => {
                u32::try_from(waiting.len() / stripes).ok()
            }
            _ => None,
        }
    }
}
