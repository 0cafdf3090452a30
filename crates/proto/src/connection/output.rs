//! Sending: the order of packets, and the timers.

use super::data::Built;
use super::{Connection, Event, State, Transmit};
use crate::ecn::Marking;
use crate::error::CloseReason;
use crate::handshake::Flight;
use crate::recovery::{Next, Outage};
use alloc::vec::Vec;
use core::num::NonZeroU32;
use core::time::Duration;
use hikyaku_cc::{Limit, ack_interval_beside};
use hikyaku_units::Instant;
use hikyaku_wire::Frame;

/// Why a timer is set. The driver prints it when a wake-up had no effect.
pub type TimerReason = &'static str;

/// Data that pacing releases within this time, or within two reports, follow what was sent before: nothing is asked until then.
const NEAR: Duration = Duration::from_millis(2);

impl Connection {
    /// Writes the next datagrams to the start of `out`. Bytes of `out` after them are undefined.
    /// Returns `None` if there is nothing to send now.
    pub fn poll_transmit(&mut self, now: Instant, out: &mut Vec<u8>) -> Option<Transmit> {
        self.timing.now = now;
        if let Some(packet) = self.handshake_packet(now) {
            out.clear();
            out.extend_from_slice(&packet);
            return Some(self.transmit(now, packet.len(), packet.len()));
        }
        match &self.state {
            State::Handshaking | State::Closed => None,
            State::Closing { .. } => self.poll_close(now, out),
            State::Established => {
                if let Some(len) = self.build_control(now, out) {
                    return Some(self.transmit(now, len, len));
                }
                let built = self.poll_data(now, out)?;
                let transmit = self.transmit(now, built.len, built.segment);
                Some(Transmit { marking: self.ecn.marking(), ..transmit })
            }
        }
    }

    pub(super) fn transmit(&mut self, now: Instant, len: usize, segment: usize) -> Transmit {
        self.timing.last_sent = now;
        let destination = self.peer.destination(len as u64);
        Transmit { destination, len, segment, marking: Marking::NotEct }
    }

    fn handshake_packet(&mut self, now: Instant) -> Option<Vec<u8>> {
        if self.handshake_out.is_empty()
            && !matches!(self.state, State::Closed | State::Closing { .. })
            && let Some(handshake) = &mut self.handshake
        {
            let mut packets = Vec::new();
            let flight = handshake.poll(now, &mut packets);
            self.handshake_out.extend(packets);
            // A server that has the client's last flight learns the client's address only from
            // packets under data keys.
            // spec: path-4
            let is_repeated = flight == Some(Flight::Again) && self.state == State::Established;
            if is_repeated && self.recovery.is_idle() && self.control.is_empty() {
                self.control.push_back(Frame::Ping);
            }
        }
        self.handshake_out.pop_front()
    }

    /// Builds data packets, as far as pacing, congestion control, flow control and the application
    /// allow.
    fn poll_data(&mut self, now: Instant, out: &mut Vec<u8>) -> Option<Built> {
        if self.recovery.outage() != Outage::No || self.peer.is_in_doubt() {
            return None;
        }
        let allowance = self.recovery.allowance();
        self.pacers.path.set_rate(Some(self.recovery.controller.pacing_rate()));
        self.pacers.path.set_grain(self.recovery.controller.grain());
        let rtt = self.recovery.srtt();
        self.pacers.path.set_rtt(rtt);
        self.pacers.wire.set_rtt(rtt);
        self.pacers.payload.set_rtt(rtt);
        // Time spent waiting for the congestion window must not be made up by a burst.
        if allowance == 0 || self.pacers.no_room {
            self.pacers.path.on_idle(now);
        }
        self.pacers.no_room = allowance == 0;
        let due = self.pacers.path.is_due(now);
        let wire_due = self.pacers.wire.is_due(now);
        let full = u64::from(self.mtu.current());
        if allowance == 0 || !due {
            if self.has_data_to_send() {
                self.recovery.on_limited(Limit::Controller);
            }
            return None;
        }
        if !wire_due {
            self.recovery.on_limited(Limit::Cap);
            return None;
        }
        let batch = self.pacers.path.batch().min(self.pacers.wire.batch());
        let budget = allowance.min(batch).max(full) as usize;
        let built = self.build_data(now, budget, out);
        match built {
            Some(Built { len, .. }) => {
                let packets = len.div_ceil(full as usize) as u64;
                let wire = len as u64 + packets * u64::from(self.config.ip_overhead);
                self.pacers.path.on_sent(now, len as u64);
                self.pacers.wire.on_sent(now, wire);
            }
            None => {
                let capped = self.has_data_to_send();
                self.recovery.on_limited(if capped { Limit::Cap } else { Limit::Other });
                self.pacers.path.on_idle(now);
            }
        }
        built
    }

    /// When [`Connection::handle_timeout`] or [`Connection::poll_transmit`] is to be called next,
    /// and why.
    pub fn poll_timeout(&self) -> Option<(Instant, TimerReason)> {
        let mut next: Option<(Instant, TimerReason)> = None;
        let mut consider = |at: Option<Instant>, reason: TimerReason| {
            if let Some(at) = at
                && next.is_none_or(|(earliest, _)| at < earliest)
            {
                next = Some((at, reason));
            }
        };
        match &self.state {
            State::Closed => return None,
            State::Closing { until, again, .. } => {
                return Some((again.unwrap_or(*until).min(*until), "closing"));
            }
            State::Handshaking => {
                consider(Some(self.timing.started + self.config.connect_timeout), "connecting");
            }
            State::Established => {
                consider(self.receipts.due(), "acknowledgement");
                consider(self.readers_due(), "readers");
                consider(self.recovery.next_timeout(), "loss detection");
                consider(self.probe_at(), "probe");
                consider(self.peer.next_timeout(self.recovery.srtt()), "path validation");
                consider(self.mtu.next_timeout(), "path MTU");
                let keys = self.transport.as_ref().map(|transport| &transport.keys);
                consider(keys.and_then(|keys| keys.expires(self.key_memory())), "old key");
                let keep_alive = self.timing.last_sent + self.config.keep_alive;
                consider(Some(keep_alive), "keep-alive");
                consider(self.release_at(), "pacing");
                let idle = self.timing.last_received + self.idle_timeout();
                consider(Some(idle), "idle");
            }
        }
        if let Some(handshake) = &self.handshake {
            consider(handshake.next_timeout(), "handshake");
        }
        next
    }

    pub(super) fn probe_at(&self) -> Option<Instant> {
        self.recovery.probe_at(self.next()).filter(|_| !self.recovery.is_idle())
    }

    /// The event that is expected after the last packet. Connections that send beside others have longer pauses between their
    /// batches, and reports less often, so that each batch would be followed by a probe.
    fn next(&self) -> Next {
        let sharers = self.pacers.path.sharers();
        if sharers == NonZeroU32::MIN {
            return Next::Unknown;
        }
        let interval = ack_interval_beside(self.recovery.srtt(), sharers);
        let near = NEAR.max(interval * 2);
        match self.release_at() {
            Some(at) if at <= self.timing.now + near => Next::Data(at.max(self.timing.now) + near),
            _ => Next::Report(interval * 2 + self.recovery.srtt()),
        }
    }

    /// When pacing allows the next data packet. `None` if something other than pacing blocks it.
    fn release_at(&self) -> Option<Instant> {
        if self.recovery.allowance() == 0
            || self.recovery.outage() != Outage::No
            || self.peer.is_in_doubt()
            || !self.has_data_to_send()
        {
            return None;
        }
        let path = self.pacers.path.next_release().unwrap_or(Instant::ZERO);
        let wire = self.pacers.wire.next_release().unwrap_or(Instant::ZERO);
        let payload = if self.recovery_has_data() {
            Instant::ZERO
        } else {
            self.pacers.payload.next_release().unwrap_or(Instant::ZERO)
        };
        Some(path.max(wire).max(payload))
    }

    /// Handles the timers that are due. The caller then calls [`Connection::poll_transmit`].
    pub fn handle_timeout(&mut self, now: Instant) {
        self.timing.now = now;
        match &self.state {
            State::Closed => {}
            State::Closing { .. } => self.on_closing_timeout(now),
            State::Handshaking => {
                if now - self.timing.started >= self.config.connect_timeout {
                    self.events.push_back(Event::Closed(CloseReason::Unreachable));
                    self.state = State::Closed;
                }
            }
            State::Established => {
                if now - self.timing.last_received >= self.idle_timeout() {
                    self.events.push_back(Event::Closed(CloseReason::TimedOut));
                    self.state = State::Closed;
                    return;
                }
                self.on_recovery_timeout(now);
                self.check_readers(now);
            }
        }
    }

    /// Whether the connection is closed and may be dropped.
    pub fn is_closed(&self) -> bool {
        self.state == State::Closed && self.handshake_out.is_empty()
    }
}
