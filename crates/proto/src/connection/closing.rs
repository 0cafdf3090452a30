//! Closing a connection: CLOSE and its retransmission.

use super::{Connection, Event, State, Transmit};
use crate::error::{CloseReason, Violation, code};
use alloc::vec::Vec;
use hikyaku_units::Instant;

/// Round trips after which no packet of the peer is expected after a CLOSE.
const CLOSING_ROUND_TRIPS: u32 = 3;

impl Connection {
    /// Closes the connection with a code of the application ([`code::APPLICATION`] and above) or
    /// [`code::DONE`].
    pub fn close(&mut self, code: u64, reason: &str) {
        match self.state {
            State::Established => {
                self.start_closing(code, reason.as_bytes().to_vec());
                self.events.push_back(Event::Closed(CloseReason::Local));
            }
            State::Handshaking => {
                if let Some(handshake) = &mut self.handshake {
                    let packet = handshake.close_packet(code::DONE, reason);
                    self.handshake_out.extend(packet);
                }
                self.events.push_back(Event::Closed(CloseReason::Local));
                self.state = State::Closed;
            }
            State::Closing { .. } | State::Closed => {}
        }
    }

    /// Closes the connection because the peer violated the protocol.
    pub(super) fn fail(&mut self, violation: &Violation) {
        if matches!(self.state, State::Closed | State::Closing { .. }) {
            return;
        }
        self.events.push_back(Event::Closed(CloseReason::Violation(violation.text.clone())));
        self.start_closing(violation.code, violation.text.as_bytes().to_vec());
    }

    /// Handles a failed handshake or a CLOSE of the peer in a handshake packet. `before` says
    /// whether this end was still in the handshake.
    pub(super) fn on_handshake_end(&mut self, reason: CloseReason, before: bool) {
        let has_gone = matches!(reason, CloseReason::Peer { .. });
        if before {
            self.fail_handshake(reason);
        } else if has_gone && self.state == State::Established {
            // A server that never received the client's last flight has no data keys for its CLOSE.
            self.events.push_back(Event::Closed(reason));
            self.state = State::Closed;
        }
    }

    fn fail_handshake(&mut self, reason: CloseReason) {
        // The reason may name files and key fingerprints of this machine, so it is reported only to
        // this end's user.
        if let (CloseReason::Handshake(_), Some(handshake)) = (&reason, &mut self.handshake) {
            let text = "the TLS handshake failed";
            let packet = handshake.close_packet(crate::error::code::CRYPTO, text);
            self.handshake_out.extend(packet);
        }
        self.events.push_back(Event::Closed(reason));
        self.state = State::Closed;
    }

    fn start_closing(&mut self, code: u64, reason: Vec<u8>) {
        let heard = self.timing.last_received.max(self.timing.last_sent);
        let until = heard + self.recovery.srtt() * CLOSING_ROUND_TRIPS;
        self.state = State::Closing { until, again: None, code, reason, to_send: true };
    }

    /// Sends CLOSE again, because a packet shows that the peer has not received it.
    // spec: end-1
    pub(super) const fn close_again(&mut self) {
        if let State::Closing { to_send, .. } = &mut self.state {
            *to_send = true;
        }
    }

    pub(super) fn on_closing_timeout(&mut self, now: Instant) {
        let State::Closing { until, again, to_send, .. } = &mut self.state else { return };
        // A CLOSE that has not been sent yet is sent first.
        if *until <= now && !*to_send {
            self.state = State::Closed;
        } else if again.is_some_and(|at| at <= now) {
            *again = None;
            *to_send = true;
        }
    }

    /// Sends CLOSE. It is also repeated once a round trip without a packet of the peer, because a
    /// peer that only receives cannot show that it has not received CLOSE.
    // spec: end-1
    pub(super) fn poll_close(&mut self, now: Instant, out: &mut Vec<u8>) -> Option<Transmit> {
        let (next, last) =
            (now + self.recovery.srtt(), now + self.recovery.srtt() * CLOSING_ROUND_TRIPS);
        let State::Closing { code, reason, to_send, again, until } = &mut self.state else {
            return None;
        };
        if !core::mem::take(to_send) {
            return None;
        }
        // CLOSE is repeated after a long silence as well.
        if again.is_none() && *until < now {
            *until = last;
        }
        *again = Some(next);
        let (code, reason) = (*code, reason.clone());
        let len = self.build_close(now, code, reason, out)?;
        Some(self.transmit(now, len, len))
    }
}
