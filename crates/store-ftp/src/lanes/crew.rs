//! The number of lanes of a transfer: how many are open, awake, and paused.

use super::lane::{Duty, Lane, Memory, Work};
use super::{Cause, Done, Ended, Event, Lost, Spare, Told, WIDTH_MAX};
use crate::missing::Missing;
use crate::steering::{Report, Seat};
use hikyaku_gridftp::FtpError;
use hikyaku_tuner::{Decision, Next};
use hikyaku_units::DataSize;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::Receiver;
use std::thread::{Scope, ScopedJoinHandle};
use std::time::{Duration, Instant};

/// Lanes of a transfer.
const LANES_MAX: usize = 4;
/// Another lane is not worth opening for fewer bytes than these.
const BYTES_OF_LANE: u64 = 32 << 20;
/// How often the connections are looked at.
const LOOK: Duration = Duration::from_millis(50);
/// The rule has measured goodput without a lane within this time, unless the round trip is long.
const PAUSE_MAX: Duration = Duration::from_secs(5);
const PAUSE_ROUND_TRIPS: u32 = 12;
/// A lane whose channel was lost or refused is opened again after this time.
const AGAIN_AFTER: Duration = Duration::from_secs(2);

type Threads<'scope> = Vec<ScopedJoinHandle<'scope, Option<Spare>>>;

/// The lanes of a transfer, and their threads.
pub(super) struct Crew<'scope, 'd, 'p> {
    work: &'scope Work<'d, 'p>,
    seat: &'scope Seat,
    /// By their numbers. The first one is that of the session's own channel. A lost one is `None`.
    lanes: Vec<Option<Arc<Lane>>>,
    threads: Threads<'scope>,
    spare: Vec<Spare>,
    /// When a channel was lost or refused last.
    lost: Option<Instant>,
}

impl<'scope, 'd, 'p> Crew<'scope, 'd, 'p> {
    pub(super) fn new(
        (work, seat): (&'scope Work<'d, 'p>, &'scope Seat),
        first: Arc<Lane>,
        spare: Vec<Spare>,
    ) -> Self {
        Self { work, seat, lanes: vec![Some(first)], threads: Vec::new(), spare, lost: None }
    }

    pub(super) fn into_parts(self) -> (Threads<'scope>, Vec<Spare>) {
        (self.threads, self.spare)
    }

    fn open(&self) -> impl Iterator<Item = &Arc<Lane>> {
        self.lanes.iter().flatten()
    }

    /// Steers the lanes until all is complete, or the transfer has failed.
    pub(super) fn run(
        &mut self,
        scope: &'scope Scope<'scope, '_>,
        events: &Receiver<Event>,
        (missing, told): (&mut Missing, &mut Told<'_>),
    ) -> Ended {
        let file = self.work.file;
        let before = file.bytes.load(Ordering::Relaxed);
        let mut ended =
            Ended { result: Ok(()), done_bytes: 0, is_ahead: false, has_worked_ahead: false };
        let mut due = Instant::now();
        while missing.bytes() > 0 && !self.work.pool.is_done(file.is_cut) {
            match events.recv_timeout(due.saturating_duration_since(Instant::now())) {
                Ok(Event::Done(piece)) => {
                    self.complete(&piece, &mut ended, (&mut *missing, &mut *told))
                }
                Ok(Event::Lost(lost)) => {
                    let is_ahead = lost.is_ahead;
                    if let Err(error) = self.lost(lost) {
                        (ended.result, ended.is_ahead) = (Err(error), is_ahead);
                        break;
                    }
                }
                Err(_) => {
                    due = Instant::now() + LOOK;
                    file.bytes.store(before + self.work.pool.counted(), Ordering::Relaxed);
                    let wanted = self.look(told);
                    self.steer(scope, wanted);
                }
            }
        }
        while let Ok(event) = events.try_recv() {
            if let Event::Done(piece) = event {
                self.complete(&piece, &mut ended, (&mut *missing, &mut *told));
            }
        }
        file.bytes.store(before + ended.done_bytes, Ordering::Relaxed);
        ended
    }

    fn complete(
        &self,
        Done { range, done, is_ahead }: &Done,
        ended: &mut Ended,
        (missing, told): (&mut Missing, &mut Told<'_>),
    ) {
        let bytes = range.end - range.start;
        missing.remove(range);
        ended.done_bytes += bytes;
        ended.has_worked_ahead |= is_ahead;
        let next = Next::Bytes(DataSize::from_bytes(bytes));
        let (n, phase) = (done.connections, self.seat.phase());
        (told.report)(&Decision { n, next, phase }, bytes, done);
        (told.done)(range);
    }

    /// A channel is lost. Its pieces are requested by the others.
    ///
    /// # Errors
    /// No other one carries the file, or would fare better.
    fn lost(&mut self, lost: Lost) -> Result<(), FtpError> {
        let Lost { number, error, cause, .. } = lost;
        self.lanes[number] = None;
        let may_pass = cause == Cause::NotOpened || error.may_pass();
        // The session's own channel is needed after the transfer.
        if number == 0 || !may_pass {
            return Err(error);
        }
        if cause == Cause::NotOpened {
            self.seat.refused();
        }
        self.lost = Some(Instant::now());
        Ok(())
    }

    /// Reports the connections. Returns the number that is wanted.
    fn look(&self, told: &Told<'_>) -> u32 {
        let connections: Vec<_> = self.open().flat_map(|lane| lane.flowing()).collect();
        let (waited, round_trip) = (self.work.pool.held(), self.work.round_trip);
        let report = Report { connections: &connections, waited, round_trip };
        self.seat.look(&report, told.on_epoch)
    }

    /// Opens lanes, wakes them, or lets them rest, so that the wanted number of connections is awake.
    fn steer(&mut self, scope: &'scope Scope<'scope, '_>, wanted: u32) {
        let unasked = self.work.pool.unasked();
        let awake: u32 = self.open().filter(|lane| lane.is_awake()).map(|lane| lane.width).sum();
        if awake < wanted {
            let resting = self.open().find(|lane| !lane.is_awake());
            match resting {
                Some(lane) => lane.wake(),
                None if unasked > BYTES_OF_LANE => self.add(scope, wanted - awake),
                None => {}
            }
            return self.work.pool.wake();
        }
        let last = self.open().skip(1).filter(|lane| lane.is_awake()).last();
        if let Some(last) = last.filter(|last| awake - last.width >= wanted) {
            last.rest();
        }
        let pause = PAUSE_MAX.max(self.work.round_trip * PAUSE_ROUND_TRIPS);
        for lane in self.open() {
            if let Duty::Resting(since) = lane.duty()
                && (since.elapsed() > pause || unasked == 0)
            {
                lane.gate.open();
            }
        }
    }

    /// Opens another lane of at most this number of connections.
    fn add(&mut self, scope: &'scope Scope<'scope, '_>, missing: u32) {
        let is_early = self.lost.is_some_and(|lost| lost.elapsed() < AGAIN_AFTER);
        if self.open().count() >= LANES_MAX || is_early {
            return;
        }
        let (channel, memory) = match self.spare.pop() {
            Some(Spare { channel, memory }) => (Some(channel), memory),
            None => (None, Memory::default()),
        };
        let memory = memory.begin(missing.min(WIDTH_MAX), u64::MAX);
        let (work, number, lane) = (self.work, self.lanes.len(), self.work.pool.add(memory));
        self.lanes.push(Some(Arc::clone(&lane)));
        self.threads.push(scope.spawn(move || work.open_and_carry((number, &lane), channel)));
    }
}
