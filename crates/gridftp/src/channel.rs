//! A channel: a control connection that is logged in, and its data connections.

mod connect;
mod download;
mod each;
mod look;
mod relay;
mod rename;
mod replies;
mod stream;
mod upload;

use crate::bell::Bell;
use crate::command::Command;
use crate::control::{Control, refused};
use crate::data::Data;
use crate::error::FtpError;
use crate::facts;
use crate::features::Features;
use crate::gauge::Gauges;
use crate::login::{Login, Server, enter, guard};
use crate::names::Names;
use crate::settings::{Settings, Stripes};
use crate::times;
use crate::transfer::{Flow, Watch};
use look::Listing;
pub(crate) use look::{entries_of, quoted};
pub use rename::Rename;
use replies::Replies;
use std::cell::Cell;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use upload::Storing;

/// How long the end of a part may go unnoticed.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// A control connection that is logged in, in binary mode, and its data connections.
#[derive(Debug)]
pub struct Channel {
    pub(crate) control: Control,
    features: Features,
    mode: Mode,
    settings: Settings,
    pool: Pool,
    /// Wakes this end when a data connection has nothing more to do.
    bell: Arc<Bell>,
    pub(crate) names: Names,
    odd: Odd,
    storing: Storing,
    listing: Listing,
    /// The hosts of the server's data nodes that carry a part at once; empty: there is one, and the server chooses it.
    nodes: Vec<IpAddr>,
    gauges: Gauges,
}

/// How data connections carry files.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    /// Extended block mode (GFD.020): several connections carry parts of a file at once.
    Extended,
    /// Stream mode (RFC 959), of a server that has no extended block mode: one connection carries one file, in order.
    Stream,
}

/// Whether a directory was made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Made {
    /// It was, and is empty.
    New,
    /// It was there already.
    Before,
}

/// Requests of the server that this end did not follow: possible causes of later failures.
#[derive(Debug, Default)]
struct Odd {
    /// A host whose data connection was closed.
    stranger: Cell<Option<IpAddr>>,
    /// The address that the server sent, and the one that was used.
    elsewhere: Option<(SocketAddr, SocketAddr)>,
}

/// Data connections that wait for the next part.
#[derive(Debug, Default)]
enum Pool {
    #[default]
    Empty,
    Receiving(Vec<Data>),
    /// And where the server, or each data node, listens for further ones.
    Sending(Vec<Data>, Vec<SocketAddr>),
    /// This number of connections, between this server and another one.
    Relaying(u32),
}

impl Channel {
    /// Ends its waits when `stop` is set, in place of the flag with which it was opened.
    pub fn stopped_by(&mut self, stop: &Arc<AtomicBool>) {
        self.settings.stop = Arc::clone(stop);
        self.control.stopped_by(stop);
    }

    /// Connects, logs in, and prepares transfers: in extended block mode if the server has it, else in stream mode.
    ///
    /// # Errors
    /// The server cannot be reached, or refuses the login.
    pub fn open(server: &Server, settings: &Settings) -> Result<Self, FtpError> {
        let mut control = enter(server, settings)?;
        let features = control.ask(&Command::new("FEAT"))?;
        let features =
            if features.is_done() { Features::of(&features) } else { Features::default() };
        if server.login == Login::Certificate {
            guard(&mut control, &features, settings.guard.as_ref())?;
        }
        control.demand_timed(&Command::new("TYPE I"))?;
        let mode = match control.demand_timed(&Command::new("MODE E")) {
            Ok(_) => Mode::Extended,
            Err(FtpError::Refused { .. }) => Mode::Stream,
            Err(error) => return Err(error),
        };
        match (mode, settings.tcp.buffer) {
            (Mode::Extended, Some(size)) => {
                control.demand_timed(&Command::new(format!("SBUF {}", size.bytes())))?;
            }
            // Some servers send and take names in their own character set before this. The others refuse it.
            (Mode::Stream, _) if features.has("UTF8") => {
                control.ask(&Command::new("OPTS UTF8 ON"))?;
            }
            _ => {}
        }
        let (settings, pool, nodes) = (settings.clone(), Pool::Empty, Vec::new());
        let (names, odd, storing) = (Names::default(), Odd::default(), Storing::default());
        let (listing, gauges) = (Listing::default(), Gauges::default());
        let bell = Arc::new(Bell::new().map_err(FtpError::Control)?);
        let mut channel = Self {
            control,
            features,
            mode,
            settings,
            pool,
            bell,
            names,
            odd,
            storing,
            listing,
            nodes,
            gauges,
        };
        if mode == Mode::Extended && channel.settings.stripes == Stripes::All {
            let addresses = channel.nodes_listen()?;
            channel.nodes = addresses.iter().map(SocketAddr::ip).collect();
        }
        Ok(channel)
    }

    /// The features that the server announced.
    pub const fn features(&self) -> &Features {
        &self.features
    }

    /// The readings of the data connections.
    pub fn gauges(&self) -> Gauges {
        self.gauges.clone()
    }

    /// How data connections carry files.
    pub const fn mode(&self) -> Mode {
        self.mode
    }

    /// Mean time from a command that does no work to its reply.
    pub const fn rtt(&self) -> Option<Duration> {
        self.control.rtt()
    }

    /// Whether every command has been answered. A channel on which an operation has failed is of use only then.
    pub const fn is_in_step(&self) -> bool {
        self.control.is_in_step()
    }

    /// Measures a round trip (NOOP).
    ///
    /// # Errors
    /// The control connection is lost.
    pub fn measure_rtt(&mut self) -> Result<(), FtpError> {
        self.control.demand_timed(&Command::new("NOOP")).map(drop)
    }

    /// Makes a directory that does not exist.
    ///
    /// # Errors
    /// The server refuses, for example because the name exists.
    pub fn make_new_dir(&mut self, path: &[u8]) -> Result<(), FtpError> {
        self.demand_about("MKD", path)
    }

    /// Makes a directory. One that is there already is no error. Returns which it was.
    ///
    /// # Errors
    /// The server refuses.
    pub fn make_dir(&mut self, path: &[u8]) -> Result<Made, FtpError> {
        let command = self.about("MKD", path)?;
        let reply = self.control.ask(&command)?;
        if reply.is_done() {
            return Ok(Made::New);
        }
        match self.facts(path)? {
            Some(facts) if facts.kind == facts::Kind::Directory => Ok(Made::Before),
            _ => Err(refused(&command, &reply)),
        }
    }

    /// Makes a directory and those above it that are missing. Returns whether it was there itself.
    ///
    /// # Errors
    /// The server refuses.
    pub fn make_dirs(&mut self, path: &[u8]) -> Result<Made, FtpError> {
        let path = path.strip_suffix(b"/").unwrap_or(path);
        let slashes = path.iter().enumerate().filter(|&(at, &byte)| byte == b'/' && at > 0);
        let mut ends: Vec<usize> = slashes.map(|(at, _)| at).chain([path.len()]).collect();
        ends.retain(|&end| !matches!(&path[..end], b"" | b"." | b"..") && path[end - 1] != b'/');
        let mut missing = Vec::new();
        // Those above what is there are there as well, and the user may not be allowed to look at them.
        while let Some(end) = ends.pop() {
            if self.facts(&path[..end])?.is_some() {
                break;
            }
            missing.push(end);
        }
        let mut made = Made::Before;
        while let Some(end) = missing.pop() {
            made = self.make_dir(&path[..end])?;
        }
        Ok(made)
    }

    /// Removes a file.
    ///
    /// # Errors
    /// The server refuses.
    pub fn remove(&mut self, path: &[u8]) -> Result<(), FtpError> {
        self.demand_about("DELE", path)
    }

    /// Removes an empty directory.
    ///
    /// # Errors
    /// The server refuses.
    pub fn remove_dir(&mut self, path: &[u8]) -> Result<(), FtpError> {
        self.demand_about("RMD", path)
    }

    /// Sets the permission bits of a file or directory (SITE CHMOD).
    ///
    /// # Errors
    /// The server refuses, or has no such command.
    pub fn set_mode(&mut self, path: &[u8], mode: u32) -> Result<(), FtpError> {
        self.demand_about(&format!("SITE CHMOD {mode:o}"), path)
    }

    /// Sets the modification time of a file, in seconds since 1970 (MFMT).
    ///
    /// # Errors
    /// The server refuses, or has no such command.
    pub fn set_modified(&mut self, path: &[u8], seconds: i64) -> Result<(), FtpError> {
        let time = times::digits(seconds).ok_or(FtpError::Lacks("store a time before 1970"))?;
        self.demand_about(&format!("MFMT {time}"), path)
    }

    fn demand_about(&mut self, words: &str, path: &[u8]) -> Result<(), FtpError> {
        let command = self.about(words, path)?;
        self.control.demand(&command).map(drop)
    }

    /// The server's checksum of a part of a file, as it spells it: hexadecimal digits.
    ///
    /// # Errors
    /// The server refuses, or answers something else.
    pub fn checksum(
        &mut self,
        algorithm: &str,
        path: &[u8],
        offset: u64,
        length: u64,
    ) -> Result<String, FtpError> {
        let words = format!("CKSM {algorithm} {offset} {length}");
        let command = self.about(&words, path)?;
        let reply = self.control.demand(&command)?;
        let text = reply.text();
        let is_hex = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        if is_hex { Ok(text) } else { Err(FtpError::Lie("answers CKSM without a checksum")) }
    }

    /// How many data nodes carry a part at once.
    fn stripes(&self) -> usize {
        self.nodes.len().max(1)
    }

    /// Reads replies that have come, and looks whether the transfer may go on.
    fn step(
        &mut self,
        flow: &Flow<'_>,
        watch: &mut Watch,
        replies: &mut Replies,
    ) -> Result<(), FtpError> {
        while !replies.is_final() {
            let Some(reply) = self.control.poll_reply()? else { break };
            watch.touch();
            replies.handle(&reply)?;
        }
        watch.check(flow)?;
        // The flow reports the error.
        if flow.is_failed() { Err(FtpError::Stopped) } else { Ok(()) }
    }

    /// Sends QUIT and does not wait. Dropping the channel without it ends the session, too.
    pub fn quit(mut self) {
        // The server closes the connection either way.
        let _ = self.control.send(&Command::new("QUIT"));
    }
}
