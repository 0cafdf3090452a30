//! What follows from acknowledgements, and from their absence.

use super::{Connection, Event};
use crate::ecn::{Report, Verdict};
use crate::recovery::AckResult;
use core::time::Duration;
use hikyaku_units::Instant;

impl Connection {
    pub(super) fn after_recovery(&mut self, now: Instant, result: AckResult) {
        self.check_marks(now, &result);
        for (stream, offset, len) in result.arrived {
            let Some(outgoing) = self.streams.outgoing.get_mut(&stream) else { continue };
            outgoing.on_arrived(offset, len);
            if outgoing.is_delivered() {
                self.streams.outgoing.remove(&stream);
                self.events.push_back(Event::Delivered(stream));
            }
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

    /// A path that takes no marked packets, or marks them all, gets none any more.
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
            // What was lost, or marked, was no word about the capacity.
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

    /// How long a key is kept after the next one came into use.
    // spec: key-3
    pub(super) fn key_memory(&self) -> Duration {
        self.recovery.srtt() * 3 + Duration::from_millis(100)
    }
}
