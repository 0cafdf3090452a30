//! A session with a server: its channel, the tuner, and the chunks of a file.

use crate::args::GucArgs;
use crate::checksum::Checksum;
use crate::chunks::Missing;
use crate::outcome::{Interrupted, remedy};
use crate::show::chunk as show_chunk;
use anyhow::{Error, Result};
use hikyaku_console::{Message, Scope, Totals, with_remedy};
use hikyaku_gridftp::{
    Channel, Credentials, DataHosts, FtpError, Part, Server, Settings, Spoken, Trace, Transferred,
};
use hikyaku_tcp::Options;
use hikyaku_tuner::{Decision, Fixed, LimitedBy, Next, Paper, PaperOptions, Sample, Tuner};
use hikyaku_units::DataSize;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// A connection is not worth opening for less than this many bytes: what a server puts into one block.
const CONNECTION_BYTES_MIN: u64 = 256 << 10;
/// A chunk was limited by the disk if its connections spent more than this share of their time there.
const DISK_SHARE: f64 = 0.5;

/// A session with a server.
pub(crate) struct Session<'a> {
    args: &'a GucArgs,
    server: &'a Server,
    settings: Settings,
    channel: Option<Channel>,
    tuner: Option<(Tuner, Decision)>,
    scope: &'a Scope,
    pub(crate) show: &'a Totals,
    /// Its number among the sessions of the command, from 0.
    number: u32,
}

/// Moves a part of a file through a channel, with so many connections, and counts its bytes.
pub(crate) type Move<'a> =
    dyn Fn(&mut Channel, &Part<'_>, u32, &AtomicU64) -> Result<Transferred, FtpError> + 'a;

impl<'a> Session<'a> {
    pub(crate) fn new(
        args: &'a GucArgs,
        server: &'a Server,
        credentials: Option<Credentials>,
        (scope, show): (&'a Scope, &'a Totals),
    ) -> Self {
        let settings = Settings {
            stop: Arc::default(),
            patience: args.st,
            tcp: Options { buffer: args.tcp_bs, ..Options::default() },
            data_hosts: if args.trust_pasv { DataHosts::Any } else { DataHosts::Server },
            block_bytes: u32::try_from(args.bs.bytes()).unwrap_or(u32::MAX),
            credentials,
            trace: args.dbg.then(|| Arc::new(trace) as Trace),
        };
        Self { args, server, settings, channel: None, tuner: None, scope, show, number: 0 }
    }

    /// Another session with the same server.
    pub(crate) fn another(&self, number: u32) -> Self {
        let settings = self.settings.clone();
        Self { settings, channel: None, tuner: None, number, ..*self }
    }

    /// How copies are compared with their sources, if the user wants that.
    pub(crate) const fn checksum(&self) -> Option<Checksum> {
        self.args.cksm
    }

    /// How sessions of this command behave.
    pub(crate) fn settings(&self) -> Settings {
        self.settings.clone()
    }

    /// Set when the session is to end.
    pub(crate) fn stop(&self) -> Arc<std::sync::atomic::AtomicBool> {
        Arc::clone(&self.settings.stop)
    }

    /// Does something by the control connection.
    pub(crate) fn ask<T>(
        &mut self,
        what: impl Fn(&mut Channel) -> Result<T, FtpError>,
    ) -> Result<T> {
        let mut left = self.args.rst_retries;
        loop {
            let result = self.channel().and_then(&what);
            match result {
                Ok(value) => return Ok(value),
                Err(error) => self.after(error, &mut left)?,
            }
        }
    }

    /// Moves what is missing of a file, chunk by chunk. `done` is called with each chunk.
    pub(crate) fn transfer(
        &mut self,
        path: &[u8],
        missing: &mut Missing,
        by: &Move<'_>,
        mut done: impl FnMut(&Range<u64>),
    ) -> Result<()> {
        let mut left = self.args.rst_retries;
        while missing.bytes() > 0 {
            match self.one(path, missing, by) {
                Ok(chunk) => {
                    missing.remove(&chunk);
                    done(&chunk);
                    left = self.args.rst_retries;
                }
                Err(error) => self.after(error, &mut left)?,
            }
        }
        Ok(())
    }

    fn one(
        &mut self,
        path: &[u8],
        missing: &Missing,
        by: &Move<'_>,
    ) -> Result<Range<u64>, FtpError> {
        self.channel()?;
        let asked = self.decision();
        let size = match asked.next {
            Next::Bytes(size) => size.bytes(),
            // The rules of this command ask for bytes.
            Next::For(_) | Next::Rest => u64::MAX,
        };
        let chunk = missing.next(size).unwrap_or(0..0);
        let length = chunk.end - chunk.start;
        let worth = u32::try_from(length.div_ceil(CONNECTION_BYTES_MIN)).unwrap_or(u32::MAX);
        let n = asked.n.min(worth).max(1);
        let part = Part { path, offset: chunk.start, length };
        let counted = self.show.counted(self.number as usize);
        let before = counted.load(Ordering::Relaxed);
        let done = self.channel().and_then(|channel| by(channel, &part, n, counted));
        let done = done.inspect_err(|_| {
            // All of the chunk is transferred again.
            counted.store(before, Ordering::Relaxed);
        })?;
        show_chunk(self.show, &asked, length, &done);
        // A number that this end itself has lowered says nothing about the path.
        if n == asked.n {
            self.learn(length, &done);
        }
        Ok(chunk)
    }

    fn decision(&mut self) -> Decision {
        if let Some((_, asked)) = &self.tuner {
            return *asked;
        }
        let tuner = self.new_tuner();
        let asked = tuner.start();
        self.tuner = Some((tuner, asked));
        asked
    }

    fn new_tuner(&self) -> Tuner {
        let args = self.args;
        if args.noapt || args.parallel.is_some() {
            return Tuner::Fixed(Fixed::new(args.parallel.unwrap_or(1)));
        }
        let default = PaperOptions::default();
        let options = PaperOptions {
            first: args.apt_n0,
            alpha: args.apt_alpha,
            chunk: args.apt_delta,
            window: args.tcp_bs.unwrap_or(default.window),
            cap: args.max_connections,
        };
        let rtt = self.channel.as_ref().and_then(Channel::rtt).unwrap_or_default();
        Tuner::Paper(Paper::new(&options, rtt))
    }

    fn learn(&mut self, bytes: u64, done: &Transferred) {
        let Some((tuner, asked)) = &mut self.tuner else { return };
        let is_disk = done.local_share > DISK_SHARE;
        *asked = tuner.handle_sample(&Sample {
            n: done.connections,
            bytes: DataSize::from_bytes(bytes),
            elapsed: done.elapsed,
            limited_by: if is_disk { LimitedBy::Disk } else { LimitedBy::Network },
        });
    }

    fn channel(&mut self) -> Result<&mut Channel, FtpError> {
        let channel = match self.channel.take() {
            Some(channel) => channel,
            None => {
                let mut channel = Channel::open(self.server, &self.settings)?;
                channel.measure_rtt()?;
                channel
            }
        };
        Ok(self.channel.insert(channel))
    }

    /// Waits before another attempt, or returns the error.
    fn after(&mut self, error: FtpError, left: &mut u32) -> Result<()> {
        if matches!(error, FtpError::Stopped) {
            return Err(Interrupted.into());
        }
        if !matches!(error, FtpError::Refused { .. } | FtpError::BadPath) {
            self.channel = None;
        }
        if !error.may_pass() || *left == 0 {
            let remedy = remedy(&error);
            return Err(with_remedy(Error::from(error), remedy));
        }
        *left -= 1;
        let text = format!("{}; another attempt follows", hikyaku_console::causes(&error.into()));
        self.show.tell(Message::Remark(text));
        match self.pause(self.args.rst_interval) {
            true => Ok(()),
            false => Err(Interrupted.into()),
        }
    }

    /// Returns whether the session goes on.
    fn pause(&self, duration: Duration) -> bool {
        self.scope.sleep(duration).is_none()
    }

    /// Ends the session.
    pub(crate) fn quit(self) {
        if let Some(channel) = self.channel {
            channel.quit();
        }
    }
}

fn trace(spoken: Spoken<'_>) {
    match spoken {
        Spoken::Command(command) => eprintln!("> {}", hikyaku_fs::brief(command)),
        Spoken::Reply(reply) if reply.lines[0].starts_with(b"ADAT=") => {
            eprintln!("< {} ADAT=...", reply.code);
        }
        Spoken::Reply(reply) => {
            eprintln!("< {} {}", reply.code, hikyaku_fs::brief(&reply.text()));
        }
    }
}
