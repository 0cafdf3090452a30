//! The parts that a caller requests of a channel, one after the other.
//!
//! A channel takes the next part from its [`Plan`] while the last one is still under way, so that the command is at the
//! server before the server has nothing left to do. The caller decides how many parts are asked for at once.

use crate::gauge::Gauged;
use crate::transfer::{Part, Progress, Transferred};
use std::io;
use std::sync::Arc;
use std::time::Duration;

/// Stores bytes at an offset of a file.
pub type Store<'a> = dyn Fn(u64, &[u8]) -> io::Result<()> + Send + Sync + 'a;

/// Supplies the bytes at an offset of a file; all of them.
pub type Supply<'a> = dyn Fn(u64, &mut [u8]) -> io::Result<()> + Send + Sync + 'a;

/// A part to transfer.
#[derive(Clone, Debug)]
pub struct Wanted<'a, F> {
    /// Which part.
    pub part: Part<'a>,
    /// How many data connections carry it; at least 1.
    pub connections: u32,
    /// Where its bytes go to, or come from: see [`Channel::download`](crate::Channel::download),
    /// [`upload`](crate::Channel::upload) and [`relay`](crate::Channel::relay).
    pub with: F,
}

/// The source of an upload. It is called by several threads at once, with offsets from the start of the file.
pub type Upload<'a> = Arc<Supply<'a>>;

/// The path of the receiving server's file to which a part goes.
pub type Target<'a> = &'a [u8];

/// Selects the parts that are transferred, and receives a report of each that is complete.
///
/// Order of calls: [`next`](Self::next) with `None` whenever nothing is under way. While parts are under way, `next` is called
/// every few milliseconds, and [`done`](Self::done) once for each part, in the order in which `next` returned them.
pub trait Plan<'a, F> {
    /// The next part to ask the server for. `under_way` is the oldest part that is not complete.
    ///
    /// `None` while a part is under way means: not yet. `None` while none is means that all is done.
    fn next(&mut self, under_way: Option<&Progress>) -> Option<Wanted<'a, F>>;

    /// The oldest part is complete: the server has confirmed it, and for a download all of its bytes are stored.
    fn done(&mut self, done: &Transferred);

    /// The number of data connections of an upload to each data node from this moment on; called every few milliseconds. A
    /// larger number than before opens connections, a smaller one lets some of them rest. Default: `None`, the number that the
    /// parts want.
    fn steer(&mut self, _: &Traffic<'_>) -> Option<u32> {
        None
    }
}

/// The data connections of an upload.
#[derive(Debug)]
pub struct Traffic<'t> {
    /// Those that have carried bytes and do not rest.
    pub connections: &'t [Gauged],
    /// Time that connections have waited for blocks of this end, summed over them.
    pub waited: Duration,
}

/// A plan of one part.
pub(crate) struct Once<'a, F> {
    wanted: Option<Wanted<'a, F>>,
    /// The result, once the part is complete.
    pub(crate) done: Option<Transferred>,
}

impl<'a, F> Once<'a, F> {
    pub(crate) const fn new(wanted: Wanted<'a, F>) -> Self {
        Self { wanted: Some(wanted), done: None }
    }
}

impl<'a, F> Plan<'a, F> for Once<'a, F> {
    fn next(&mut self, _: Option<&Progress>) -> Option<Wanted<'a, F>> {
        self.wanted.take()
    }

    fn done(&mut self, done: &Transferred) {
        self.done = Some(*done);
    }
}
