//! A session with a server: its channel, the tuner, and the chunks of a file.

use crate::args::GucArgs;
use crate::checksum::Checksum;
use crate::outcome::{explained, lasting};
use crate::show::{chunk, retries};
use anyhow::Result;
use hikyaku_console::{Kept, Scope, Totals};
use hikyaku_fs::Shown;
use hikyaku_gridftp::{
    Channel, Credentials, DataHosts, Facts, FtpError, Guard, Mode, Plan, Reach, Server, Settings,
    Spoken, Store, Stripes, Trace, Transferred,
};
use hikyaku_store_ftp::{
    Attempt, Batch, Chunker, Counters, Foresight, Ftp, Missing, Move, Moving, Notes, Others, Parts,
    parts_from,
};
use hikyaku_tcp::Options;
use hikyaku_transfer::Limit;
use hikyaku_tuner::{Decision, Measured};
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Once};
use std::time::Duration;

/// A session with a server.
pub(crate) struct Session<'a> {
    args: &'a GucArgs,
    server: &'a Server,
    settings: Settings,
    channel: Option<Channel>,
    contact: Contact,
    chunker: Chunker,
    scope: &'a Scope,
    pub(crate) show: &'a Totals,
    pub(crate) notes: &'a Arc<Notes>,
    /// Its number among the sessions of the command, from 0.
    number: u32,
    /// How data connections carry files, once the server has been reached.
    mode: Option<Mode>,
    /// Done when a session of the command has found a server in stream mode.
    plain: &'a Once,
    limit: Arc<Limit>,
}

/// The common state of the sessions of a command.
#[derive(Clone, Copy)]
pub(crate) struct Shared<'a> {
    pub(crate) scope: &'a Scope,
    pub(crate) show: &'a Totals,
    pub(crate) notes: &'a Arc<Notes>,
    /// Done when the user knows of a server in stream mode.
    pub(crate) plain: &'a Once,
}

/// Whether the server has been reached.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Contact {
    /// It has not. If nobody listens at its port, that rarely passes within the time of the attempts.
    None,
    /// It may have been started anew.
    Made,
}

/// Questions that are at a server at once, if it takes more than one.
const QUESTIONS: usize = 64;

/// How the chunks of a file are moved.
pub(crate) struct Way<'w, 'p, F> {
    /// Where their bytes go to, or come from.
    pub(crate) with: F,
    /// Moves them through a channel, and counts their bytes.
    pub(crate) by: &'w Move<'w, 'p, F>,
    /// When the next chunk may be asked for.
    pub(crate) foresight: Foresight,
    /// Who sends them.
    pub(crate) sender: Sender,
}

/// Moves the missing bytes of a file, up to the first failure. The last argument is called with each complete chunk.
type Try<'t> = dyn FnMut(
        &mut Chunker,
        &mut Channel,
        (&mut Missing, &Counters<'_>),
        &mut dyn FnMut(&Range<u64>),
    ) -> Result<Attempt, FtpError>
    + 't;

/// Who sends a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Sender {
    /// This end.
    Here,
    /// The server of the session.
    Server,
}

impl<'a> Session<'a> {
    pub(crate) fn new(
        args: &'a GucArgs,
        server: &'a Server,
        keys: Option<(Credentials, Option<Guard>)>,
        Shared { scope, show, notes, plain }: Shared<'a>,
    ) -> Self {
        let (credentials, guard) = keys.unzip();
        let settings = Settings {
            stop: Arc::default(),
            patience: args.st,
            tcp: Options {
                buffer: args.tcp_bs,
                family: args.family.family(),
                ..Options::default()
            },
            data_hosts: if args.trust_pasv { DataHosts::Any } else { DataHosts::Server },
            stripes: if args.stripe { Stripes::All } else { Stripes::One },
            block_bytes: u32::try_from(args.bs.bytes()).unwrap_or(u32::MAX),
            credentials,
            guard: guard.flatten(),
            reach: Reach::default(),
            trace: args.dbg.then(|| Arc::new(trace) as Trace),
        };
        let (channel, contact, number, mode) = (None, Contact::None, 0, None);
        let (chunker, limit) = (Chunker::new(args.connections()), Arc::new(Limit::new(args.rate)));
        Self {
            args,
            server,
            settings,
            channel,
            contact,
            chunker,
            scope,
            show,
            notes,
            number,
            mode,
            plain,
            limit,
        }
    }

    /// Another session with the same server.
    pub(crate) fn another(&self, number: u32) -> Self {
        let (settings, limit) = (self.settings.clone(), Arc::clone(&self.limit));
        let chunker = Chunker::new(self.args.connections());
        Self { settings, limit, channel: None, chunker, number, ..*self }
    }

    /// The server.
    pub(crate) const fn server(&self) -> &'a Server {
        self.server
    }

    /// How copies are compared with their sources, if the user wants that.
    pub(crate) const fn checksum(&self) -> Option<Checksum> {
        self.args.cksm
    }

    /// In which parts the server can send a file.
    pub(crate) const fn parts(&self) -> Parts {
        parts_from(Mode::Extended, self.settings.stripes)
    }

    /// How sessions of this command behave.
    pub(crate) fn settings(&self) -> Settings {
        self.settings.clone()
    }

    /// Set when the session is to end.
    pub(crate) fn stop(&self) -> Arc<std::sync::atomic::AtomicBool> {
        Arc::clone(&self.settings.stop)
    }

    /// Waits for the time slot of this number of bytes of a part of a file, if the rate is limited.
    pub(crate) fn pace(&self) -> impl Fn(usize) + Clone + Send + Sync + use<> {
        let (limit, stop) = (Arc::clone(&self.limit), self.stop());
        move |bytes| limit.wait(bytes as u64, || stop.load(Ordering::Relaxed))
    }

    /// Does something by the control connection.
    pub(crate) fn ask<T>(
        &mut self,
        what: impl Fn(&mut Channel) -> Result<T, FtpError>,
    ) -> Result<T> {
        let mut left = self.retries();
        loop {
            let result = self.channel().and_then(&what);
            match result {
                Ok(value) => return Ok(value),
                Err(error) => self.after(error, &mut left)?,
            }
        }
    }

    /// The directory at `path` as a store, over the channel of this session, and its facts.
    pub(crate) fn store(&mut self, path: &[u8]) -> Result<(Ftp, Facts)> {
        let facts = self.ask(|channel| channel.facts(path))?;
        let facts =
            facts.ok_or_else(|| lasting(format!("{}: no such directory", Shown::new(path))))?;
        Ok((self.store_of(path, &facts)?, facts))
    }

    /// The directory at `path` as a store, over the channel of this session. `facts` are of that directory, or of a file in it:
    /// they show which facts the server has.
    pub(crate) fn store_of(&mut self, path: &[u8], facts: &Facts) -> Result<Ftp> {
        self.channel()?;
        let channel = self.channel.take().ok_or(Kept::Nothing)?;
        Ok(Ftp::over(channel, (self.server, &self.settings), (path, facts)))
    }

    /// Takes a channel of a store for which none waits in this session.
    pub(crate) fn borrow_from(&mut self, store: &Ftp) {
        self.channel = store.take_idle();
    }

    /// Returns it.
    pub(crate) fn return_to(&mut self, store: &Ftp) {
        self.channel.take().into_iter().for_each(|channel| store.add_idle(channel));
    }

    /// Moves what is missing of a file, chunk by chunk. `done` is called with each chunk.
    pub(crate) fn transfer<'p, F: Clone>(
        &mut self,
        path: &'p [u8],
        missing: &mut Missing,
        way: &Way<'_, 'p, F>,
        mut done: impl FnMut(&Range<u64>),
    ) -> Result<()> {
        let stripes = self.settings.stripes;
        self.with_attempts(
            missing,
            &mut done,
            &mut |chunker, channel, (missing, counters), done| {
                let parts = match (channel.mode(), way.sender) {
                    (mode, Sender::Server) => parts_from(mode, stripes),
                    (Mode::Extended, Sender::Here) => Parts::Chunks,
                    // The file ends with the part.
                    (Mode::Stream, Sender::Here) => Parts::Whole,
                };
                let (with, foresight) = (way.with.clone(), way.foresight);
                let moving = Moving { path, with, foresight, parts };
                chunker.attempt(channel, (&moving, missing), way.by, counters, done)
            },
        )
    }

    /// Downloads what is missing of a file into `with`.
    pub(crate) fn download<'p>(
        &mut self,
        path: &'p [u8],
        missing: &mut Missing,
        with: &Arc<Store<'p>>,
    ) -> Result<()> {
        let (server, settings) = (self.server, self.settings.clone());
        let open = || Channel::open(server, &settings);
        let others = Others { open: &open, is_cut: &|_| false };
        self.with_attempts(
            missing,
            &mut |_| (),
            &mut |chunker, channel, (missing, counters), done| {
                let (with, foresight) = (Arc::clone(with), Foresight::Measured);
                let parts = parts_from(channel.mode(), settings.stripes);
                let moving = Moving { path, with, foresight, parts };
                let file = (&moving, &mut *missing);
                if let Some(attempt) = chunker.download(channel, file, others, counters, &mut *done)
                {
                    return attempt;
                }
                let by =
                    |channel: &mut Channel, plan: &mut dyn Plan<'p, _>, counted: &AtomicU64| {
                        channel.download(plan, counted)
                    };
                chunker.attempt(channel, (&moving, missing), &by, counters, done)
            },
        )
    }

    fn with_attempts(
        &mut self,
        missing: &mut Missing,
        done: &mut dyn FnMut(&Range<u64>),
        attempt: &mut Try<'_>,
    ) -> Result<()> {
        let mut left = self.retries();
        while missing.bytes() > 0 {
            let before = missing.bytes();
            let moved = self.try_all(missing, done, attempt);
            if missing.bytes() < before {
                left = self.retries();
            }
            if let Err(error) = moved {
                self.after(error, &mut left)?;
            }
        }
        Ok(())
    }

    /// How data connections carry files.
    pub(crate) fn mode(&mut self) -> Result<Mode> {
        self.ask(|channel| Ok(channel.mode()))
    }

    /// Moves what is missing, up to the first failure.
    fn try_all(
        &mut self,
        missing: &mut Missing,
        done: &mut dyn FnMut(&Range<u64>),
        attempt: &mut Try<'_>,
    ) -> Result<(), FtpError> {
        self.channel()?;
        let Some(channel) = &mut self.channel else { return Ok(()) };
        let report = |asked: &Decision, bytes, done: &Transferred| {
            chunk(self.show, asked, bytes, done);
        };
        let on_epoch = |measured: &Measured, phase| self.show.decided(measured, phase);
        let bytes = self.show.counted(self.number as usize);
        let counters = Counters { bytes, report: &report, on_epoch: &on_epoch };
        if attempt(&mut self.chunker, channel, (missing, &counters), done)? == Attempt::OneByOne {
            self.channel = None;
        }
        Ok(())
    }

    /// How many small files may be asked for at once; `None`: one.
    pub(crate) fn depth(&self) -> Option<usize> {
        let can_be = self.mode != Some(Mode::Stream);
        let is_wanted = can_be && self.args.pp > 1 && self.args.cksm.is_none();
        (is_wanted && self.chunker.works_ahead()).then_some(self.args.pp as usize)
    }

    /// Whether the next file is copied after one that cannot be copied.
    pub(crate) const fn goes_on(&self) -> bool {
        self.args.continue_on_error
    }

    /// How many questions may be asked at once.
    pub(crate) fn questions(&self) -> usize {
        if self.depth().is_some() { QUESTIONS } else { 1 }
    }

    /// Moves small files, up to the first failure, which is told when it comes again.
    pub(crate) fn try_batch<'p, F, T>(
        &mut self,
        batch: &mut Batch<'_, 'p, F, T>,
        by: &Move<'_, 'p, F>,
    ) {
        let counted = self.show.counted(self.number as usize);
        let opened = self.channel().map(drop);
        let Some(channel) = self.channel.as_mut().filter(|_| opened.is_ok()) else { return };
        if self.chunker.batch(channel, batch, by, counted).ok() != Some(Attempt::Whole) {
            self.channel = None;
        }
    }

    /// Asks whether the server takes these paths for what they are, while nothing else is under way. What it answers is
    /// told when one of them is copied.
    pub(crate) fn prepare_names<'n>(&mut self, mut paths: impl Iterator<Item = &'n [u8]>) {
        if let Some(path) = paths.find(|path| !path.is_ascii()) {
            let checked = self.channel().and_then(|channel| channel.check_name(path));
            self.channel.take_if(|_| checked.is_err_and(|error| !error.leaves_channel()));
        }
    }

    pub(crate) const fn retries(&self) -> u32 {
        self.args.retry().attempts
    }

    /// Removes an unfinished file of the server, if it is there. Returns whether the server has been asked.
    pub(crate) fn try_remove(&mut self, path: &[u8]) -> bool {
        let removed = self.channel().and_then(|channel| channel.remove(path));
        let is_asked = matches!(removed, Ok(()) | Err(FtpError::Refused { .. }));
        if !is_asked {
            self.channel = None;
        }
        is_asked
    }

    /// What has each of these paths, as far as the server says it at once.
    pub(crate) fn try_look(&mut self, paths: &[Vec<u8>]) -> Vec<Option<Facts>> {
        if paths.is_empty() {
            return Vec::new();
        }
        let at_once = self.questions();
        let mut told = self.try_each(|channel| channel.facts_of_each(paths, at_once));
        told.resize(paths.len(), None);
        told
    }

    /// Does something with each of several files. What the server answers, if it does; a failure is told when they are
    /// copied by themselves.
    pub(crate) fn try_each<T>(
        &mut self,
        what: impl FnOnce(&mut Channel) -> Result<Vec<T>, FtpError>,
    ) -> Vec<T> {
        self.channel().and_then(what).unwrap_or_else(|error| {
            if !error.leaves_channel() {
                self.channel = None;
            }
            Vec::new()
        })
    }

    fn channel(&mut self) -> Result<&mut Channel, FtpError> {
        let channel = match self.channel.take() {
            Some(channel) => channel,
            None => {
                let mut channel = Channel::open(self.server, &self.settings)?;
                channel.measure_rtt()?;
                (self.contact, self.mode) = (Contact::Made, Some(channel.mode()));
                if channel.mode() == Mode::Stream {
                    self.plain.call_once(|| self.show.remark(in_stream_mode(self.server)));
                }
                channel
            }
        };
        Ok(self.channel.insert(channel))
    }

    /// Waits before another attempt, or returns the error.
    pub(crate) fn after(&mut self, error: FtpError, left: &mut u32) -> Result<()> {
        if matches!(error, FtpError::Stopped) {
            return Err(Kept::Nothing.into());
        }
        let is_usable = error.leaves_channel();
        self.channel.take_if(|channel| !(is_usable && channel.is_in_step()));
        let is_absent = error.is_port_closed()
            && self.contact == Contact::None
            && self.args.rst_retries.is_none();
        if !error.may_pass() || *left == 0 || is_absent {
            return Err(explained(self.server, self.parts(), error));
        }
        *left -= 1;
        retries(self.show, self.server, &error);
        match self.pause(self.args.rst_interval) {
            true => Ok(()),
            false => Err(Kept::Nothing.into()),
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

fn in_stream_mode(server: &Server) -> String {
    let Server { host, port, .. } = server;
    format!(
        "{host}:{port} speaks plain FTP: a file goes through one data connection, whatever -p says"
    )
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
