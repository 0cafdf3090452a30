//! The effects of acknowledgements and of loss timers.

use super::{Connection, Event};
use crate::ecn::{Report, Verdict};
use crate::recovery::AckResult;
use crate::streams::Outgoing;
use core::time::Duration;
use hikyaku_units::Instant;
use hikyaku_wire::StreamId;

impl Connection {
    pub(super) fn after_recovery(&mut self, now: Instant, result: AckResult) {
        self.check_marks(now, &result);
        for (stream, offset, len) in result.arrived {
            let Some(outgoing) = self.streams.outgoing.get_mut(&stream) else { continue };
            outgoing.on_arrived(offset, len);
            self.note_delivery(stream);
        }
        for stream in result.fins {
            let Some(outgoing) = self.streams.outgoing.get_mut(&stream) else { continue };
            outgoing.on_fin_arrived();
            self.note_delivery(stream);
        }
        for size in result.probes_arrived {
            self.mtu.on_arrived(now, size);
        }
        for size in result.probes_lost {
            self.mtu.on_lost(now, size);
        }
        let srtt = self.recovery.srtt();
        if self.mtu.on_full_packets(now, result.full_arrived, result.full_lost, srtt) {
            self.recovery.on_dead_path(now);
        }
        self.recovery.controller.set_datagram(u64::from(self.mtu.current()));
        self.control.extend(self.recovery.take_frames_again());
    }

    /// Reports a stream as delivered when the peer has acknowledged its end as well. If the
    /// connection were closed before that, the peer could not distinguish the end from a
    /// truncation.
    fn note_delivery(&mut self, id: StreamId) {
        if self.streams.outgoing.get(&id).is_some_and(Outgoing::is_delivered) {
            self.forget_outgoing(id);
            self.events.push_back(Event::Delivered(id));
        }
    }

    /// Disables ECN on a path that drops ECN-capable packets or marks all of them.
    // spec: ecn-2
    fn check_marks(&mut self, now: Instant, result: &AckResult) {
        let report = Report {
            arrived: result.full_arrived,
            lost: result.full_lost,
            acked: result.acked,
            marked: result.marked,
            queue: self.recovery.controller.queue(),
        };
        match self.ecn.on_report(now, self.recovery.srtt(), &report) {
            Verdict::Unchanged => {}
            // The losses and marks did not come from congestion, so the path is measured again.
            Verdict::Broken => {
                let datagram = u64::from(self.mtu.current());
                self.recovery.on_new_path(self.recovery.srtt(), datagram);
            }
        }
    }

    pub(super) fn on_recovery_timeout(&mut self, now: Instant) {
        if self.recovery.next_timeout().is_some_and(|at| at <= now) {
            let chunk = self.chunk() as u32;
            let result = self.recovery.on_timeout(now, chunk);
            self.after_recovery(now, result);
        }
        let memory = self.key_memory();
        if let Some(transport) = &mut self.transport {
            transport.keys.expire(now, memory);
        }
    }

    /// How long the previous key is kept after the present one came into use.
    // spec: key-3
    pub(super) fn key_memory(&self) -> Duration {
        self.recovery.srtt() * 3 + Duration::from_millis(100)
    }
}
