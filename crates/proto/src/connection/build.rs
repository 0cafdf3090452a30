//! Control packets: acknowledgements, probes, and the frames that streams and time ask for.

use super::Connection;
use crate::address::CHALLENGE_LEN;
use crate::error::Violation;
use crate::flow::Arrived;
use crate::recovery::Outage;
use crate::sent::{Content, Sent};
use alloc::vec::Vec;
use hikyaku_units::Instant;
use hikyaku_wire::{Frame, PacketKind, ShortHeader, TAG_LEN};

/// Sender's news for the receiver four times a round trip.
const FLOORS_PER_RTT: u32 = 4;

impl Connection {
    /// Builds one control packet if anything is due; gives its length.
    pub(super) fn build_control(&mut self, now: Instant, out: &mut Vec<u8>) -> Option<usize> {
        if let Some(transport) = &mut self.transport {
            transport.keys.maybe_update(now);
            // spec: key-4
            if transport.keys.is_used_up() {
                self.fail(&Violation::protocol("a key is used up, and the peer confirms no other"));
                return None;
            }
        }
        self.queue_fins();
        if let Some(token) = self.peer.challenge(now, self.recovery.srtt()) {
            // Asked again in its own time.
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
            // Who asks again is answered again.
            if !matches!(frame, Frame::PathResponse(_)) {
                reliable.push(frame);
            }
            if estimate > 1000 {
                break;
            }
        }
        self.build_frames(now, &frames, reliable, 0, out)
    }

    /// FINs whose last byte left earlier (an empty stream, or `finish` called late).
    fn queue_fins(&mut self) {
        for (&stream, outgoing) in &mut self.streams.outgoing {
            if let Some(size) = outgoing.take_fin() {
                self.control.push_back(Frame::Fin { stream, size });
            }
        }
    }

    /// Frames that time asks for: the sender's floor, a question, a keep-alive.
    fn due_frames(&mut self, now: Instant) -> Vec<Frame> {
        let mut frames = Vec::new();
        // To a path that does not answer nothing is said but the question.
        let active = self.recovery.in_flight() > 0 && self.recovery.outage() == Outage::No;
        if active && self.timing.next_floor <= now {
            self.timing.next_floor = now + (self.recovery.srtt() / FLOORS_PER_RTT).max(MIN_FLOOR);
            frames.push(Frame::Floor {
                floor: self.recovery.floor(),
                rtt_micros: self.recovery.srtt().as_micros() as u64,
            });
        }
        let asked = self.ask_at().is_some_and(|at| at <= now);
        let keep_alive = now - self.timing.last_sent >= self.config.keep_alive;
        if asked || keep_alive {
            frames.push(Frame::Ping);
            if asked {
                self.recovery.on_asked(now);
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
        let limit = self.receive_flow.measure(now, arrived);
        self.control.extend(limit.map(Frame::MaxData));
        let window = self.receive_flow.window();
        for (&stream, incoming) in &mut self.streams.incoming {
            let limit = incoming.widen(window);
            self.control.extend(limit.map(|limit| Frame::MaxStreamData { stream, limit }));
        }
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
        self.streams.fins.extend(frames.iter().filter_map(|frame| match frame {
            Frame::Fin { stream, .. } => Some((pn, *stream)),
            _ => None,
        }));
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
        let padding = size.max(CHALLENGE_LEN).saturating_sub(out.len() + TAG_LEN);
        out.resize(out.len() + padding + TAG_LEN, 0);
        transport.keys.seal(pn, out);
        Some(out.len())
    }

    /// What arrived is acknowledged with the end: whoever closes after the last byte should not
    /// leave the sender of that byte in doubt.
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

const MIN_FLOOR: core::time::Duration = core::time::Duration::from_millis(2);
