//! A download in extended block mode over several channels, each with data connections of its own.
//!
//! A server closes all data connections of a channel when their number changes, and new ones begin slowly. So the connections of
//! a channel stay as they are: the number grows by another channel, and falls when one of them gets no further piece of the file.
//! While the rule measures goodput without a channel, this end does not read its bytes. After some seconds it reads what the
//! server was asked for, and the channel rests with its connections open.
//!
//! The pieces of a channel take some seconds, and the next one is requested before the last one ends.

mod crew;
mod lane;
mod pool;

use crate::chunks::{Foresight, Report};
use crate::missing::Missing;
use crate::steering::{OnEpoch, Steering};
use crew::Crew;
use hikyaku_gridftp::{Channel, FtpError, Store, Transferred};
use lane::{Memory, Work};
use pool::Pool;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::mpsc::channel;
use std::thread;

/// Connections of a channel at most.
pub(crate) const WIDTH_MAX: u32 = 16;
/// A connection is not worth opening for fewer bytes than these.
const BYTES_OF_EACH: u64 = 1 << 20;

/// The channels of a session beside its own one, between two transfers.
#[derive(Debug)]
pub(crate) struct Lanes {
    steering: Steering,
    first: Memory,
    spare: Vec<Spare>,
}

#[derive(Debug)]
struct Spare {
    channel: Channel,
    memory: Memory,
}

/// A file to download.
pub(crate) struct Download<'d, 'p> {
    pub(crate) path: &'p [u8],
    pub(crate) with: Arc<Store<'p>>,
    pub(crate) foresight: Foresight,
    /// Opens another channel to the server.
    pub(crate) open: &'d (dyn Fn() -> Result<Channel, FtpError> + Sync),
    /// Whether nothing is wanted behind this number of requested bytes.
    pub(crate) is_cut: &'d (dyn Fn(u64) -> bool + Sync),
    /// Counts the bytes that have come.
    pub(crate) bytes: &'d AtomicU64,
}

/// Receives the events of a download.
pub(crate) struct Told<'d> {
    pub(crate) report: &'d Report<'d>,
    pub(crate) on_epoch: &'d OnEpoch<'d>,
    /// Called with each complete piece.
    pub(crate) done: &'d mut dyn FnMut(&Range<u64>),
}

/// The end of a download.
pub(crate) struct Ended {
    pub(crate) result: Result<(), FtpError>,
    pub(crate) done_bytes: u64,
    /// Two pieces were requested at once when a channel failed.
    pub(crate) is_ahead: bool,
    /// A piece that was requested before the end of another one is complete.
    pub(crate) has_worked_ahead: bool,
}

/// An event of a lane.
enum Event {
    Done(Done),
    Lost(Lost),
}

/// A piece is complete.
struct Done {
    range: Range<u64>,
    done: Transferred,
    /// It was requested before the end of another one.
    is_ahead: bool,
}

/// A channel has failed, or could not be opened.
struct Lost {
    /// Of which lane.
    number: usize,
    error: FtpError,
    cause: Cause,
    /// Two pieces were requested at once.
    is_ahead: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Cause {
    /// The server cannot be reached, or refuses the login.
    NotOpened,
    Failed,
}

impl Lanes {
    /// Those of a session whose number of connections is steered so.
    pub(crate) fn new(steering: Steering) -> Self {
        Self { steering, first: Memory::default(), spare: Vec::new() }
    }

    /// Downloads the missing bytes of a file over the channel of the session and others, up to the first failure that may not be
    /// one of a single channel.
    pub(crate) fn download(
        &mut self,
        session: &mut Channel,
        file: &Download<'_, '_>,
        missing: &mut Missing,
        told: &mut Told<'_>,
    ) -> Ended {
        let seat = self.steering.join();
        let round_trip = session.rtt().unwrap_or_default();
        let worth = missing.bytes() / BYTES_OF_EACH;
        let first = self.first.begin(seat.wanted().min(WIDTH_MAX), worth);
        let (tell, events) = channel();
        let work = Work { file, pool: Pool::new(missing.clone()), round_trip, tell };
        let (ended, first, spare) = thread::scope(|scope| {
            let _over = Over(&work.pool);
            let first = work.pool.add(first);
            let lane = Arc::clone(&first);
            let work = &work;
            let thread = scope.spawn(move || work.carry((0, &lane), session));
            let spare = std::mem::take(&mut self.spare);
            let mut crew = Crew::new((work, &seat), Arc::clone(&first), spare);
            let ended = crew.run(scope, &events, (missing, told));
            work.pool.end(ended.result.is_err());
            let (threads, spare) = crew.into_parts();
            // The caller's function has panicked.
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            let used = threads.into_iter().filter_map(|thread| thread.join().ok().flatten());
            let spare: Vec<Spare> = used.chain(spare).collect();
            (ended, first.memory(), spare)
        });
        (self.first, self.spare) = (first, spare);
        ended
    }
}

/// Ends the lanes, whatever happens.
struct Over<'c>(&'c Pool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.end(true);
    }
}
