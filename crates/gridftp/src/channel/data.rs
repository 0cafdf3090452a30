//! Parts of files through data connections.

use super::{Channel, Pool};
use crate::address::{extended_passive, passive, port_command};
use crate::command::Command;
use crate::control::{refused, wait_for};
use crate::error::FtpError;
use crate::facts::{self, Listed};
use crate::get::{self, Ended, Expected, Receipt, Store};
use crate::put::{self, Deal, Supply};
use crate::reply::Reply;
use crate::settings::DataHosts;
use crate::transfer::{Flow, Part, Transferred, Watch, lock, prepare};
use rustix::event::{PollFd, PollFlags};
use std::io::{self, ErrorKind};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::sync::Mutex;
use std::sync::atomic::AtomicU64;
use std::thread;
use std::time::{Duration, Instant};

/// How long the end of a part may go unnoticed.
const LOOK_EVERY: Duration = Duration::from_millis(5);
/// Bytes of a listing of one directory: some 100,000 names.
const LISTING_BYTES_MAX: u64 = 16 << 20;
/// How long the server may take to connect to this end.
const REACH_TIMEOUT: Duration = Duration::from_secs(15);
/// How long a data connection of an upload may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(20);

impl Channel {
    /// Downloads a part through `n` connections. `store` is called by several threads at once, with offsets from the
    /// start of the file. `counted` grows by the bytes that were stored.
    ///
    /// # Errors
    /// Also if `store` fails. Some bytes may have been stored.
    pub fn get(
        &mut self,
        part: &Part<'_>,
        n: u32,
        counted: &AtomicU64,
        store: impl Fn(u64, &[u8]) -> io::Result<()> + Sync,
    ) -> Result<Transferred, FtpError> {
        let words = format!("ERET P {} {}", part.offset, part.length);
        let command = Command::with(&words, part.path)?;
        // Offsets in the blocks of a part begin at 0.
        let at = part.offset;
        let store = |offset: u64, bytes: &[u8]| store(at + offset, bytes);
        let (transferred, _) =
            self.receive(&command, n, counted, (Expected::Exactly(part.length), &store))?;
        Ok(transferred)
    }

    /// The entries of a directory.
    ///
    /// # Errors
    /// The server refuses, or what it sends is no listing.
    pub fn list(&mut self, path: &[u8]) -> Result<Vec<Listed>, FtpError> {
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
        let command = Command::with("MLSD", path)?;
        let expected = Expected::AtMost(LISTING_BYTES_MAX);
        self.receive(&command, 1, &AtomicU64::new(0), (expected, &store))?;
        let text = text.into_inner().unwrap_or_default();
        facts::listing(&text).ok_or(FtpError::Lie("sends a listing that cannot be read"))
    }

    fn receive(
        &mut self,
        command: &Command,
        n: u32,
        counted: &AtomicU64,
        (expected, store): (Expected, &Store<'_>),
    ) -> Result<(Transferred, u64), FtpError> {
        let (warm, listener) = match std::mem::take(&mut self.pool) {
            Pool::Receiving(streams) if streams.len() == n as usize => (streams, None),
            _ => (Vec::new(), Some(self.listen()?)),
        };
        let mut before = Vec::new();
        if let Some(listener) = &listener {
            let address = listener.local_addr().map_err(FtpError::Control)?;
            before.push(Command::new(format!("OPTS RETR Parallelism={n},{n},{n};")));
            before.push(Command::new(port_command(address)));
        }
        for command in &before {
            self.control.send(command)?;
        }
        let begin = Instant::now();
        self.control.send(command)?;
        let settings = self.settings.clone();
        let (flow, receipt) = (&Flow::new(&settings, counted), &Receipt::new(expected));
        let kept = thread::scope(|scope| {
            let start = |stream| scope.spawn(move || get::receive(stream, flow, receipt, store));
            let mut threads: Vec<_> = warm.into_iter().map(start).collect();
            let mut watch = Watch::new(flow);
            let mut replies = Replies::new(&before, command);
            let result = loop {
                match self.step(flow, &mut watch, &mut replies) {
                    Err(error) => break Err(error),
                    Ok(()) if replies.is_final() && receipt.is_ended() => break Ok(()),
                    Ok(()) => {}
                }
                let Some(listener) = &listener else {
                    wait_for(&mut [PollFd::new(&self.control, PollFlags::IN)], LOOK_EVERY);
                    continue;
                };
                match self.accept(listener) {
                    Ok(Some(stream)) if threads.len() < n as usize => threads.push(start(stream)),
                    Ok(Some(_)) => {
                        break Err(FtpError::Lie("opens more data connections than asked for"));
                    }
                    Ok(None) => {}
                    Err(error) => break Err(error),
                }
                if threads.is_empty() && begin.elapsed() > REACH_TIMEOUT {
                    break Err(FtpError::NotReached(REACH_TIMEOUT));
                }
                let mut fds = [
                    PollFd::new(&self.control, PollFlags::IN),
                    PollFd::from_borrowed_fd(listener.as_fd(), PollFlags::IN),
                ];
                wait_for(&mut fds, LOOK_EVERY);
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
            return Err(failure);
        }
        let all = kept.len();
        let length = receipt.whole()?;
        let kept: Vec<_> = kept.into_iter().filter_map(Ended::kept).collect();
        self.pool = Pool::Receiving(kept);
        Ok((flow.transferred(u32::try_from(all).unwrap_or(u32::MAX), elapsed), length))
    }

    /// Uploads a part through `n` connections. `supply` is called by several threads at once, with offsets from the
    /// start of the file. `counted` grows by the bytes that were given to the kernel. The part is put into the file at
    /// its offset; the rest of the file stays.
    ///
    /// # Errors
    /// Also if `supply` fails. The server may have stored some bytes.
    pub fn put(
        &mut self,
        part: &Part<'_>,
        n: u32,
        counted: &AtomicU64,
        supply: impl Fn(u64, &mut [u8]) -> io::Result<()> + Sync,
    ) -> Result<Transferred, FtpError> {
        let command = Command::with(&format!("ESTO A {}", part.offset), part.path)?;
        let (warm, address) = match std::mem::take(&mut self.pool) {
            Pool::Sending(streams) if streams.len() == n as usize => (streams, None),
            _ => (Vec::new(), Some(self.passive()?)),
        };
        let begin = Instant::now();
        self.control.send(&command)?;
        let settings = self.settings.clone();
        let (flow, supply) = (&Flow::new(&settings, counted), &supply as &Supply<'_>);
        let deal = &Deal::new(part, settings.block_bytes, n);
        let kept = thread::scope(|scope| {
            let fresh = warm.len()..n as usize;
            let streams = warm.into_iter().map(Some).chain(fresh.map(|_| None));
            let tcp = &settings.tcp;
            let start = |stream: Option<TcpStream>| {
                scope.spawn(move || {
                    let stream = match (stream, address) {
                        (Some(stream), _) => stream,
                        (None, Some(address)) => connect(address, tcp, flow)?,
                        (None, None) => return None,
                    };
                    put::send(stream, flow, deal, supply)
                })
            };
            let threads: Vec<_> = streams.map(start).collect();
            let (mut watch, mut replies) = (Watch::new(flow), Replies::new(&[], &command));
            let result = loop {
                match self.step(flow, &mut watch, &mut replies) {
                    Err(error) => break Err(error),
                    Ok(()) if replies.is_final() => break Ok(()),
                    Ok(()) => {
                        wait_for(&mut [PollFd::new(&self.control, PollFlags::IN)], LOOK_EVERY)
                    }
                }
            };
            if let Err(error) = result {
                flow.fail(error);
            }
            let ended = threads.into_iter().filter_map(|thread| thread.join().ok().flatten());
            ended.collect::<Vec<_>>()
        });
        let elapsed = begin.elapsed();
        if let Some(failure) = flow.take_failure() {
            return Err(failure);
        }
        let known = kept.iter().filter_map(|stream| hikyaku_tcp::info(stream).ok());
        let retransmitted = known.map(|info| u64::from(info.retransmitted_packets)).sum();
        self.pool = Pool::Sending(kept);
        Ok(Transferred { retransmitted: Some(retransmitted), ..flow.transferred(n, elapsed) })
    }

    /// Reads replies that have come, and looks whether the transfer may go on.
    pub(super) fn step(
        &mut self,
        flow: &Flow<'_>,
        watch: &mut Watch,
        replies: &mut Replies<'_>,
    ) -> Result<(), FtpError> {
        while !replies.is_final() {
            let Some(reply) = self.control.poll_reply()? else { break };
            watch.touch();
            replies.handle(&reply)?;
        }
        watch.check(flow)?;
        // Its own error is told by the flow.
        if flow.is_failed() { Err(FtpError::Stopped) } else { Ok(()) }
    }

    fn listen(&self) -> Result<TcpListener, FtpError> {
        let address = SocketAddr::new(self.control.local()?.ip(), 0);
        let listener =
            hikyaku_tcp::listen(address, &self.settings.tcp).map_err(FtpError::Listen)?;
        listener.set_nonblocking(true).map_err(|error| FtpError::Listen(error.into()))?;
        Ok(listener)
    }

    /// The next data connection, if one has come. Connections of other hosts are closed.
    fn accept(&self, listener: &TcpListener) -> Result<Option<TcpStream>, FtpError> {
        let server = self.control.peer()?.ip();
        loop {
            match listener.accept() {
                Ok((stream, from)) => {
                    let is_server = from.ip() == server;
                    if is_server || self.settings.data_hosts == DataHosts::Any {
                        prepare(&stream)?;
                        return Ok(Some(stream));
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(None),
                // The connection was reset while it waited.
                Err(error) if error.kind() == ErrorKind::ConnectionAborted => {}
                Err(error) => return Err(FtpError::Listen(error.into())),
            }
        }
    }

    /// Asks where to connect to.
    pub(super) fn passive(&mut self) -> Result<SocketAddr, FtpError> {
        let server = self.control.peer()?;
        let unread = FtpError::Lie("tells an address that cannot be read");
        if server.is_ipv6() {
            let reply = self.control.demand(&Command::new("EPSV"))?;
            let port = extended_passive(&reply).ok_or(unread)?;
            return Ok(SocketAddr::new(server.ip(), port));
        }
        let reply = self.control.demand(&Command::new("PASV"))?;
        let told = passive(&reply).ok_or(unread)?;
        Ok(match self.settings.data_hosts {
            DataHosts::Any => told,
            DataHosts::Server => SocketAddr::new(server.ip(), told.port()),
        })
    }
}

impl Ended {
    fn kept(self) -> Option<TcpStream> {
        match self {
            Self::Kept(stream) => Some(stream),
            Self::Closed => None,
        }
    }
}

/// The replies that are due: one for each command sent ahead, then those of the transfer.
pub(super) struct Replies<'a> {
    before: std::slice::Iter<'a, Command>,
    command: &'a Command,
    is_final: bool,
}

impl<'a> Replies<'a> {
    pub(super) fn new(before: &'a [Command], command: &'a Command) -> Self {
        Self { before: before.iter(), command, is_final: false }
    }

    pub(super) const fn is_final(&self) -> bool {
        self.is_final
    }

    pub(super) fn handle(&mut self, reply: &Reply) -> Result<(), FtpError> {
        if reply.is_preliminary() {
            return Ok(());
        }
        let command = self.before.next();
        if !reply.is_done() {
            return Err(refused(command.unwrap_or(self.command), reply));
        }
        self.is_final = command.is_none();
        Ok(())
    }
}

/// A data connection of an upload.
fn connect(address: SocketAddr, tcp: &hikyaku_tcp::Options, flow: &Flow<'_>) -> Option<TcpStream> {
    let connected = hikyaku_tcp::connect(address, tcp, CONNECT_TIMEOUT)
        .map_err(|source| FtpError::Connect { address, source })
        .and_then(|stream| prepare(&stream).map(|()| stream));
    connected.map_err(|error| flow.fail(error)).ok()
}
