//! A number of connections that changes while an upload runs.

use crate::ftp::Ftp;
use crate::steering::{Report, Seat};
use hikyaku_gridftp::{Traffic, Transferred};
use hikyaku_tuner::{Decision, Next};
use std::time::Duration;

/// The rate of an upload is measured over this time at least.
const RATE_TIME: Duration = Duration::from_millis(250);

/// An upload whose number of connections is tuned.
pub(super) struct Steered<'p> {
    ftp: &'p Ftp,
    seat: Seat,
    connections_max: u32,
    /// Bytes in a second.
    rate: f64,
    /// Confirmed bytes since the rate was measured, and the time that they took.
    recent: (u64, Duration),
    all: (u64, Duration),
    connections: u32,
    retransmitted: Option<u64>,
}

impl<'p> Steered<'p> {
    pub(super) const fn new(ftp: &'p Ftp, seat: Seat, connections_max: u32) -> Self {
        let (recent, all) = ((0, Duration::ZERO), (0, Duration::ZERO));
        let (rate, connections, retransmitted) = (0.0, 1, None);
        Self { ftp, seat, connections_max, rate, recent, all, connections, retransmitted }
    }

    /// Bytes in a second.
    pub(super) const fn rate(&self) -> f64 {
        self.rate
    }

    /// The number of connections.
    pub(super) fn connections(&self) -> u32 {
        self.seat.wanted().min(self.connections_max).max(1)
    }

    /// Looks at the connections. Returns their number from this moment on.
    pub(super) fn steer(&self, traffic: &Traffic<'_>) -> u32 {
        let Traffic { connections, waited } = *traffic;
        let report = Report { connections, waited, round_trip: self.ftp.traits().rtt };
        let wanted = self.seat.look(&report, &|measured, phase| {
            self.ftp.observed(|observer| observer.epoch(measured, phase));
        });
        wanted.min(self.connections_max).max(1)
    }

    /// A part is confirmed.
    pub(super) fn done(&mut self, length: u64, done: &Transferred) {
        for (bytes, elapsed) in [&mut self.recent, &mut self.all] {
            *bytes += length;
            *elapsed += done.elapsed;
        }
        let (bytes, elapsed) = self.recent;
        if elapsed >= RATE_TIME {
            self.rate = bytes as f64 / elapsed.as_secs_f64();
            self.recent = (0, Duration::ZERO);
        }
        self.connections = done.connections;
        let again = done.retransmitted.map(|count| self.retransmitted.unwrap_or(0) + count);
        self.retransmitted = again.or(self.retransmitted);
    }

    /// The upload has ended.
    pub(super) fn end(self) {
        let ((bytes, elapsed), Self { connections, retransmitted, .. }) = (self.all, &self);
        let (connections, retransmitted) = (*connections, *retransmitted);
        if bytes > 0 {
            let asked = Decision { n: connections, next: Next::Rest, phase: self.seat.phase() };
            let done = Transferred { connections, elapsed, local_share: 0.0, retransmitted };
            self.ftp.observed(|observer| observer.chunk(&asked, bytes, &done));
        }
    }
}
