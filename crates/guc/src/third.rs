//! A file from one server to another.

use crate::chunks::Missing;
use crate::download::Wanted;
use crate::session::Session;
use crate::upload::{Manner, partial_name};
use anyhow::{Context, Result, ensure};
use hikyaku_gridftp::{Channel, Facts, FtpError, Kind, Part, Server, Settings};
use std::sync::atomic::AtomicU64;
use std::sync::{Mutex, MutexGuard, PoisonError};

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
        if matches!(done, Ok(_) | Err(FtpError::Refused { .. } | FtpError::BadPath)) {
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

/// Copies the file `from` of the session's server to the file `to` of `sink`. What an interrupted copy has left is not
/// used by a later one.
pub(crate) fn relay(
    session: &mut Session<'_>,
    (from, facts): (&[u8], &Facts),
    (sink, to): (&Sink<'_>, &[u8]),
    (wanted, manner): (Wanted, Manner),
) -> Result<()> {
    ensure!(facts.kind == Kind::File, "is not a file");
    let size = facts.size.context("the server does not tell its size")?;
    let all = wanted.range(size);
    let manner = if wanted == Wanted::Whole { manner } else { Manner::InPlace };
    let target = match manner {
        Manner::Renamed => partial_name(to)?,
        Manner::InPlace => {
            if wanted == Wanted::Whole && sink.ask(|channel| channel.facts(to))?.is_some() {
                // A longer file would keep its end.
                sink.ask(|channel| channel.remove(to))?;
            }
            to.to_vec()
        }
    };
    let moved = move_all(session, from, (sink, &target), all);
    let checked =
        moved.and_then(|()| session.compare_with(from, (sink, &target), wanted.range(size)));
    if let Err(error) = checked {
        if manner == Manner::Renamed {
            // The other error is the one that matters.
            let _ = sink.ask(|channel| channel.remove(&target));
        }
        return Err(error);
    }
    if manner == Manner::Renamed {
        sink.ask(|channel| channel.rename(&target, to))
            .context("try: --inplace, if the server does not let files be renamed")?;
    }
    Ok(())
}

fn move_all(
    session: &mut Session<'_>,
    from: &[u8],
    (sink, target): (&Sink<'_>, &[u8]),
    all: std::ops::Range<u64>,
) -> Result<()> {
    if all.is_empty() {
        let part = Part { path: target, offset: all.start, length: 0 };
        let nothing = |_: u64, _: &mut [u8]| Ok(());
        sink.ask(|channel| channel.put(&part, 1, &AtomicU64::new(0), nothing))?;
        return Ok(());
    }
    let by = |channel: &mut Channel, part: &Part<'_>, n: u32, counted: &AtomicU64| {
        sink.ask(|to| channel.relay(part, n, counted, (to, target)))
    };
    session.transfer(from, &mut Missing::new(all, &[]), &by, |_| {})
}
