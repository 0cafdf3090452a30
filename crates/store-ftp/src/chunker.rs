//! Moves files over a channel, chunk by chunk or several small ones at once, and keeps the measurements of the session: how
//! many data connections are best, and whether the server takes the command for a part while it carries another one. Downloads in
//! extended block mode go over several channels, unless their number of connections is fixed or follows the published rule.

use crate::batch::Batch;
use crate::chunks::{Chunks, Foresight, Parts, Report, Tools};
use crate::lanes::{Download, Lanes, Told};
use crate::missing::Missing;
use crate::steering::{OnEpoch, Steering};
use crate::tuning::{Connections, Tuning};
use hikyaku_gridftp::{Channel, FtpError, Mode, Plan, Store};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The measurements of a session.
#[derive(Debug)]
pub struct Chunker {
    connections: Connections,
    tuning: Option<Tuning>,
    /// The other channels of downloads, if their number of connections grows while they run.
    lanes: Option<Lanes>,
    ahead: Ahead,
}

/// Whether the server takes the command for a part while it sends or stores another one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Ahead {
    /// No second part was requested, or not successfully.
    Untried,
    Works,
    Fails,
}

/// A file to move.
#[derive(Clone, Debug)]
pub struct Moving<'p, F> {
    /// Its path at the server.
    pub path: &'p [u8],
    /// The function that stores or supplies its bytes.
    pub with: F,
    /// When the next chunk may be requested.
    pub foresight: Foresight,
    /// The parts that one command may request.
    pub parts: Parts,
}

/// Moves the parts of a plan through a channel, and counts their bytes.
pub type Move<'m, 'p, F> =
    dyn Fn(&mut Channel, &mut dyn Plan<'p, F>, &AtomicU64) -> Result<(), FtpError> + 'm;

/// How far an attempt has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Attempt {
    /// All bytes were moved.
    Whole,
    /// The server has failed with two parts at once. The rest goes on over a new channel, one part at a time.
    OneByOne,
}

/// The counters of an attempt.
pub struct Counters<'c> {
    /// Grows by the bytes that were moved, and loses those of incomplete chunks.
    pub bytes: &'c AtomicU64,
    /// Receives each complete chunk.
    pub report: &'c Report<'c>,
    /// Receives each measurement of a download over several channels, with what the rule was doing.
    pub on_epoch: &'c OnEpoch<'c>,
}

/// The use of several channels for a download.
#[derive(Clone, Copy)]
pub struct Others<'o> {
    /// Opens another channel to the server.
    pub open: &'o (dyn Fn() -> Result<Channel, FtpError> + Sync),
    /// Whether nothing is wanted behind this number of requested bytes.
    pub is_cut: &'o (dyn Fn(u64) -> bool + Sync),
}

impl std::fmt::Debug for Others<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Others").finish_non_exhaustive()
    }
}

impl std::fmt::Debug for Counters<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Counters").field("bytes", &self.bytes).finish_non_exhaustive()
    }
}

impl Chunker {
    /// Without measurements.
    pub fn new(connections: Connections) -> Self {
        Self::steered(connections, Steering::of_downloads(&connections))
    }

    /// One of several that have their number of connections in common.
    pub(crate) fn steered(connections: Connections, steering: Option<Steering>) -> Self {
        let lanes = steering.map(Lanes::new);
        Self { connections, tuning: None, lanes, ahead: Ahead::Untried }
    }

    /// Downloads the missing bytes of a file over this channel and others, up to the first failure. `done` is called with each
    /// complete piece. `None`: the number of connections does not change while a download runs.
    ///
    /// # Errors
    /// That of the channel. Bytes of incomplete pieces are moved again by the next attempt.
    pub fn download<'p>(
        &mut self,
        channel: &mut Channel,
        (file, missing): (&Moving<'p, Arc<Store<'p>>>, &mut Missing),
        others: Others<'_>,
        counters: &Counters<'_>,
        done: &mut dyn FnMut(&Range<u64>),
    ) -> Option<Result<Attempt, FtpError>> {
        let is_tuned = channel.mode() == Mode::Extended && file.parts == Parts::Chunks;
        let is_tuned = is_tuned && !channel.is_out_of_reach();
        let lanes = self.lanes.as_mut().filter(|_| is_tuned)?;
        let download = Download {
            path: file.path,
            with: Arc::clone(&file.with),
            foresight: if self.ahead == Ahead::Fails { Foresight::None } else { file.foresight },
            open: others.open,
            is_cut: others.is_cut,
            bytes: counters.bytes,
        };
        let mut told = Told { report: counters.report, on_epoch: counters.on_epoch, done };
        let ended = lanes.download(channel, &download, missing, &mut told);
        let ahead = (ended.is_ahead, ended.has_worked_ahead);
        Some(self.ended(ended.result, ahead, |_| ()))
    }

    /// Whether a second part may be requested before the end of the first.
    pub fn works_ahead(&self) -> bool {
        self.ahead != Ahead::Fails
    }

    /// Moves the missing bytes of a file, up to the first failure. `done` is called with each complete chunk.
    ///
    /// # Errors
    /// That of the channel. Bytes of incomplete chunks are moved again by the next attempt.
    pub fn attempt<'p, F: Clone>(
        &mut self,
        channel: &mut Channel,
        (file, missing): (&Moving<'p, F>, &mut Missing),
        by: &Move<'_, 'p, F>,
        counters: &Counters<'_>,
        done: &mut dyn FnMut(&Range<u64>),
    ) -> Result<Attempt, FtpError> {
        let rtt = channel.rtt().unwrap_or_default();
        let (connections, mode) = (&self.connections, channel.mode());
        let tuning = self.tuning.get_or_insert_with(|| Tuning::new(connections, mode, rtt));
        let tools = Tools {
            path: file.path,
            with: file.with.clone(),
            tuning,
            foresight: if self.ahead == Ahead::Fails { Foresight::None } else { file.foresight },
            parts: file.parts,
            rtt,
            report: counters.report,
        };
        let before = counters.bytes.load(Ordering::Relaxed);
        let mut chunks = Chunks::new(tools, missing, done);
        let moved = by(channel, &mut chunks, counters.bytes);
        let (bytes, is_ahead) = (chunks.done_bytes(), chunks.is_ahead());
        let has_worked = chunks.has_worked_ahead();
        self.ended(moved, (is_ahead, has_worked), |_| {
            counters.bytes.store(before + bytes, Ordering::Relaxed);
        })
    }

    /// Moves small files, up to the first failure.
    ///
    /// # Errors
    /// As above. The files that are not done are those that [`Batch::left`] returns and those behind them.
    pub fn batch<'p, F, T>(
        &mut self,
        channel: &mut Channel,
        batch: &mut Batch<'_, 'p, F, T>,
        by: &Move<'_, 'p, F>,
        counted: &AtomicU64,
    ) -> Result<Attempt, FtpError> {
        let before = counted.load(Ordering::Relaxed);
        let moved = by(channel, batch, counted);
        let (bytes, ahead) = (batch.done_bytes(), (batch.is_ahead(), batch.has_worked_ahead()));
        self.ended(moved, ahead, |_| counted.store(before + bytes, Ordering::Relaxed))
    }

    /// The end of an attempt during which several parts were under way at its end, or a part was requested early with success.
    fn ended(
        &mut self,
        moved: Result<(), FtpError>,
        (is_ahead, has_worked): (bool, bool),
        take_back: impl FnOnce(&FtpError),
    ) -> Result<Attempt, FtpError> {
        if has_worked {
            self.ahead = Ahead::Works;
        }
        let Err(error) = moved else { return Ok(Attempt::Whole) };
        take_back(&error);
        // These have another cause: this end, or the file.
        let is_other = matches!(
            error,
            FtpError::Stopped | FtpError::Local(_) | FtpError::Refused { code: 550, .. }
        );
        if is_ahead && self.ahead == Ahead::Untried && !is_other {
            // An error that has another cause comes again.
            self.ahead = Ahead::Fails;
            return Ok(Attempt::OneByOne);
        }
        Err(error)
    }
}

/// The parts of a file that one command of a download, or of a copy between two servers, may request.
pub const fn parts_from(mode: Mode, stripes: hikyaku_gridftp::Stripes) -> Parts {
    match (mode, stripes) {
        // The data nodes of Globus send their share of a whole file. Of a later part some send nothing, or too much.
        (Mode::Extended, hikyaku_gridftp::Stripes::All) => Parts::Whole,
        _ => Parts::Chunks,
    }
}
