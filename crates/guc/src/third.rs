//! A file from one server to another.

mod remains;

use crate::checksum::Differs;
use crate::outcome::{Changed, of_unfinished, remedy};
use crate::part::{Wanted, check_unchanged, version};
use crate::paths::{partial_name, split};
use crate::session::{Sender, Session, Way};
use anyhow::{Context, Result, ensure};
use hikyaku_console::{Kept, with_remedy};
use hikyaku_gridftp::{
    Channel, Facts, FtpError, Kind, Mode, Part, Plan, Rename, Server, Settings, Target,
};
use hikyaku_store_ftp::{Foresight, Missing, Parts};
use remains::{Begun, Journal, Left, Recorder};
use std::ops::Range;
use std::sync::atomic::AtomicU64;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Where a copy is written until it is complete.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Manner {
    /// Under a temporary name, which is renamed at the end.
    Renamed,
    /// Under its final name.
    InPlace,
}

/// The server that receives.
pub(crate) struct Sink<'a> {
    server: &'a Server,
    settings: Settings,
    channel: Mutex<Option<Channel>>,
}

impl<'a> Sink<'a> {
    pub(crate) const fn new(server: &'a Server, settings: Settings) -> Self {
        Self { server, settings, channel: Mutex::new(None) }
    }

    /// The server.
    pub(crate) const fn server(&self) -> &'a Server {
        self.server
    }

    /// The same server, by a control connection of its own.
    pub(crate) fn another(&self) -> Self {
        Self::new(self.server, self.settings.clone())
    }

    /// Whether it is this server.
    pub(crate) fn is(&self, server: &Server) -> bool {
        self.server == server
    }

    /// Does something by its control connection, which is opened if it is not open.
    pub(crate) fn ask<T>(
        &self,
        what: impl FnOnce(&mut Channel) -> Result<T, FtpError>,
    ) -> Result<T, FtpError> {
        let mut open = self.lock();
        let mut channel = match open.take() {
            Some(channel) => channel,
            None => Channel::open(self.server, &self.settings)?,
        };
        let done = what(&mut channel);
        // After another error the channel is of no use any more.
        let is_usable = done.as_ref().err().is_none_or(FtpError::leaves_channel);
        if is_usable && channel.is_in_step() {
            *open = Some(channel);
        }
        done
    }

    /// Ends the session.
    pub(crate) fn quit(&self) {
        if let Some(channel) = self.lock().take() {
            channel.quit();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<Channel>> {
        self.channel.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Lets a server send the parts of a plan to `sink`.
pub(crate) fn to_sink<'s, 'p>(
    sink: &'s Sink<'s>,
) -> impl Fn(&mut Channel, &mut dyn Plan<'p, Target<'p>>, &AtomicU64) -> Result<(), FtpError> {
    move |channel, plan, counted| sink.ask(|to| channel.relay(to, plan, counted))
}

/// Copies the file `from` of the session's server to the file `to` of `sink`. `names` are their names for the journal.
pub(crate) fn relay(
    session: &mut Session<'_>,
    (from, facts): (&[u8], &Facts),
    (sink, to, mode): (&Sink<'_>, &[u8], Option<u32>),
    names: &(String, String),
    (wanted, manner): (Wanted, Manner),
) -> Result<()> {
    ensure!(facts.kind == Kind::File, "is not a file");
    let size = facts.size.context("the server does not tell its size")?;
    let modes = [session.mode()?, sink.ask(|channel| Ok(channel.mode()))?];
    if modes.contains(&Mode::Stream) {
        return Err(with_remedy(FtpError::PlainFtp.into(), remedy(&FtpError::PlainFtp)));
    }
    // If the other server is not there, or loses the name, that is told before anything is made.
    sink.ask(|channel| channel.check_name(to))?;
    let all = wanted.range(size);
    let manner = if wanted == Wanted::Whole { manner } else { Manner::InPlace };
    let folder = split(to).0;
    let journal = Journal::of((&names.0, &names.1), (to, &version(size, facts)))?;
    let new = || Ok::<_, anyhow::Error>(Begun { partial: partial_name(to)?, have: Vec::new() });
    let Begun { partial: target, have } = match manner {
        Manner::Renamed => {
            let ask = |path: &[u8]| Ok(sink.ask(|channel| channel.facts(path))?);
            match journal.left((folder, size), ask)? {
                Left::Usable(begun) => begun,
                Left::Stale(old) => {
                    // It may be gone.
                    let _ = sink.ask(|channel| channel.remove(&old));
                    new()?
                }
                Left::Nothing => new()?,
            }
        }
        Manner::InPlace => {
            // A longer file would keep its end.
            let is_longer = |facts: &Facts| facts.size.is_none_or(|size| size > all.end);
            if wanted == Wanted::Whole
                && sink.ask(|channel| channel.facts(to))?.as_ref().is_some_and(is_longer)
            {
                sink.ask(|channel| channel.empty(to))?;
            }
            Begun { partial: to.to_vec(), have: Vec::new() }
        }
    };
    let have = if session.parts() == Parts::Whole { Vec::new() } else { have };
    let mut missing = Missing::new(all.clone(), &have);
    let kept = all.end - all.start - missing.bytes();
    session.show.count(|counts| counts.kept_bytes += kept);
    let recorded = match manner {
        Manner::Renamed => Some(split(&target).1),
        // Nothing of it is used by the next attempt.
        Manner::InPlace => None,
    };
    let recorder = recorded.and_then(|partial| journal.begin((partial, size), &have));
    let sent = send(session, from, (sink, &target), (&all, &mut missing), recorder);
    sent.and_then(|()| check_unchanged(session, from, facts)).map_err(|error| {
        let has_part = missing.bytes() < all.end - all.start && !error.is::<Changed>();
        let is_kept = manner == Manner::Renamed && has_part;
        if manner == Manner::InPlace {
            journal.remove();
        } else if !is_kept && Kept::of(&error).is_none() {
            journal.remove();
            if manner == Manner::Renamed {
                // If that fails too, the first failure is the one to tell.
                let _ = sink.ask(|channel| channel.remove(&target));
            }
        }
        of_unfinished(error, is_kept)
    })?;
    if let Err(error) = session.compare_with(from, (sink, &target), all) {
        if error.is::<Differs>() {
            journal.remove();
            if manner == Manner::Renamed {
                sink.ask(|channel| channel.remove(&target))?;
            }
        }
        return Err(error);
    }
    if manner == Manner::Renamed {
        sink.ask(|channel| channel.rename(&Rename { from: &target, to, mode, modified: None }))
            .context("try: --inplace, if the server does not let files be renamed")?;
    }
    journal.remove();
    Ok(())
}

/// Lets the session's server send what is missing of the range `all`, and records each chunk that the other one has stored.
fn send(
    session: &mut Session<'_>,
    from: &[u8],
    (sink, target): (&Sink<'_>, &[u8]),
    (all, missing): (&Range<u64>, &mut Missing),
    mut recorder: Option<Recorder<'_>>,
) -> Result<()> {
    if all.is_empty() {
        let part = Part { path: target, offset: all.start, length: 0 };
        let nothing = |_: u64, _: &mut [u8]| Ok(());
        sink.ask(|channel| channel.put(&part, 1, &AtomicU64::new(0), nothing))?;
    }
    let by = to_sink(sink);
    let with: Target<'_> = target;
    let way = Way { with, by: &by, foresight: Foresight::Final, sender: Sender::Server };
    session.transfer(from, missing, &way, |chunk| {
        if let Some(recorder) = &mut recorder {
            recorder.record(chunk);
        }
    })
}
