//! Control packets: acknowledgements, probes, and the frames of streams and timers.

use super::Connection;
use super::floor::Want;
use crate::address::CHALLENGE_BYTES_MAX;
use crate::error::Violation;
use crate::flow::Arrived;
use crate::recovery::Outage;
use crate::sent::{Content, Sent};
use alloc::vec::Vec;
use hikyaku_units::Instant;
use hikyaku_wire::{Frame, PacketKind, ShortHeader, TAG_LEN};

impl Connection {
    /// Builds one control packet if anything is due. Returns its length.
    pub(super) fn build_control(&mut self, now: Instant, out: &mut Vec<u8>) -> Option<usize> {
        if let Some(transport) = &mut self.transport {
            transport.keys.maybe_update(now);
            // spec: key-4
            if transport.keys.is_used_up() {
                self.fail(&Violation::protocol("a key is used up, and the peer confirms no other"));
                return None;
            }
        }
        if let Some(token) = self.peer.challenge(now, self.recovery.srtt()) {
            // A lost challenge is not retransmitted; the claim sends the next one at its own
            // interval.
            return self.build_frames(now, &[Frame::PathChallenge(token)], Vec::new(), 0, out);
        }
        if self.receipts.due().is_some_and(|at| at <= now) {
            let ack = Frame::Ack(self.receipts.ack(now));
            self.widen_windows(now);
            return self.build_frames(now, &[ack], Vec::new(), 0, out);
        }
        if let Some(size) = self.mtu.poll(now) {
            return self.build_probe(now, size, out);
        }
        let mut frames = self.due_frames(now);
        if frames.is_empty() && self.control.is_empty() {
            return None;
        }
        let mut reliable = Vec::new();
        let mut estimate = 0;
        while let Some(frame) = self.control.pop_front() {
            estimate += match &frame {
                Frame::Close { reason, .. } => 16 + reason.len(),
                _ => 28,
            };
            frames.push(frame.clone());
            // A lost response is not retransmitted, because the peer repeats its challenge.
            if !matches!(frame, Frame::PathResponse(_)) {
                reliable.push(frame);
            }
            if estimate > 1000 {
                break;
            }
        }
        self.build_frames(now, &frames, reliable, 0, out)
    }

    /// Frames that are due at this time: the sender's floor, a probe, a keep-alive.
    fn due_frames(&mut self, now: Instant) -> Vec<Frame> {
        let mut frames = Vec::new();
        // On a path that is down only probes are sent.
        let active = self.recovery.in_flight() > 0 && self.recovery.outage() == Outage::No;
        let asked = self.probe_at().is_some_and(|at| at <= now);
        let (number, srtt) = (self.recovery.next_packet_number(), self.recovery.srtt());
        let sharers = self.pacers.path.sharers();
        // A probe has the floor with it, so that its answer has no more blocks than needed.
        let want = if asked { Want::Now } else { Want::WhenDue };
        if active && let Some(rtt) = self.timing.floors.due(now, want, number, srtt, sharers) {
            let floor = self.recovery.floor();
            frames.push(Frame::Floor { floor, rtt_micros: rtt.as_micros() as u64 });
        }
        let keep_alive = now - self.timing.last_sent >= self.config.keep_alive;
        if asked || keep_alive {
            frames.push(Frame::Ping);
            if asked {
                self.recovery.on_probe_sent(now);
            }
        }
        frames
    }

    fn widen_windows(&mut self, now: Instant) {
        let arrived = Arrived {
            bytes: self.receipts.bytes(),
            packets: self.receipts.packets(),
            of: self.receipts.span(),
        };
        let before = self.receive_flow.window();
        let limit = self.receive_flow.measure(now, arrived);
        self.control.extend(limit.map(Frame::MaxData));
        if self.receive_flow.window() > before {
            self.widen_streams();
        }
        self.check_readers(now);
    }

    fn build_probe(&mut self, now: Instant, size: u16, out: &mut Vec<u8>) -> Option<usize> {
        let len = self.seal_frames(&[Frame::Ping], usize::from(size), out)?;
        let pn = self.recovery.next_packet_number() - 1;
        let sent = Sent::new(pn, 1, now, len as u32, Content::Probe(size));
        self.recovery.on_sent(sent, len as u64);
        Some(len)
    }

    fn build_frames(
        &mut self,
        now: Instant,
        frames: &[Frame],
        reliable: Vec<Frame>,
        size: usize,
        out: &mut Vec<u8>,
    ) -> Option<usize> {
        let eliciting = frames.iter().any(Frame::is_ack_eliciting);
        let len = self.seal_frames(frames, size, out)?;
        let pn = self.recovery.next_packet_number() - 1;
        if eliciting {
            let sent = Sent::new(pn, 1, now, len as u32, Content::Control(reliable));
            self.recovery.on_sent(sent, len as u64);
        } else {
            self.recovery.on_sent_untracked(len as u64);
        }
        Some(len)
    }

    fn seal_frames(&mut self, frames: &[Frame], size: usize, out: &mut Vec<u8>) -> Option<usize> {
        let transport = self.transport.as_mut()?;
        let pn = self.recovery.take_packet_number();
        let header = ShortHeader {
            kind: PacketKind::Control,
            phase: transport.keys.phase(),
            ack_now: frames.contains(&Frame::Ping),
            packet_number: pn,
            destination: transport.remote_id,
        };
        out.clear();
        out.extend_from_slice(&header.encode());
        frames.iter().for_each(|frame| frame.encode(out));
        let padding = size.max(CHALLENGE_BYTES_MAX).saturating_sub(out.len() + TAG_LEN);
        out.resize(out.len() + padding + TAG_LEN, 0);
        transport.keys.seal(pn, out);
        Some(out.len())
    }

    /// Builds a CLOSE packet that also acknowledges what has arrived. Otherwise a peer whose last
    /// byte arrived just before the close would not learn that it did.
    pub(super) fn build_close(
        &mut self,
        now: Instant,
        code: u64,
        reason: Vec<u8>,
        out: &mut Vec<u8>,
    ) -> Option<usize> {
        let received = self.receipts.packets() > 0;
        let mut frames: Vec<_> =
            received.then(|| Frame::Ack(self.receipts.ack(now))).into_iter().collect();
        frames.push(Frame::Close { code, reason });
        self.seal_frames(&frames, 0, out)
    }
}
