//! The handshake of a connection, from the first long-header packet to the data keys.

use super::{Connection, Event, State, Transport};
use crate::config::Side;
use crate::error::CloseReason;
use crate::flow::SendFlow;
use crate::handshake::Origin;
use crate::keys::DataKeys;
use alloc::boxed::Box;
use core::time::Duration;
use hikyaku_units::Instant;
use hikyaku_wire::Frame;

impl Connection {
    /// Handles a handshake packet. Returns its bytes if its source may be the client's address,
    /// otherwise zero.
    pub(super) fn handle_long(&mut self, now: Instant, packet: &[u8]) -> u64 {
        let Some(handshake) = &mut self.handshake else { return 0 };
        let before = self.state == State::Handshaking;
        let origin = match handshake.handle(now, packet) {
            Ok(origin) => origin,
            Err(reason) => {
                self.on_handshake_end(reason, before);
                return 0;
            }
        };
        // spec: auth-1
        if origin == Origin::Peer {
            self.timing.last_received = now;
        }
        if before && handshake.is_complete() {
            self.establish(now);
        }
        let counts = before && origin != Origin::Unknown && self.side == Side::Server;
        if counts { packet.len() as u64 } else { 0 }
    }

    fn establish(&mut self, now: Instant) {
        let Some(handshake) = &mut self.handshake else { return };
        let (peer, cipher, chain) = match handshake.settle(&self.config.ciphers) {
            Ok(settled) => settled,
            Err(violation) => {
                let packet = handshake.close_packet(violation.code, &violation.text);
                self.handshake_out.extend(packet);
                self.events.push_back(Event::Closed(CloseReason::Handshake(violation.text)));
                self.state = State::Closed;
                return;
            }
        };
        let Some(remote_id) = handshake.remote() else { return };
        let assumed = Duration::from_millis(200);
        let (least, rtt) = handshake.rtt().unwrap_or((assumed, assumed));
        self.recovery.controller.on_handshake(least, rtt);
        self.receipts.set_rtt(rtt);
        self.receive_flow.set_rtt(rtt);
        self.send_flow = SendFlow::new(peer.max_data);
        self.streams.peer_allows = [u32::try_from(peer.max_streams).unwrap_or(u32::MAX); 2];
        for stream in self.streams.outgoing.values_mut() {
            stream.set_limit(peer.max_stream_data);
        }
        let (packets, forgeries) = (self.config.key_packets, self.config.key_forgeries);
        let keys = DataKeys::new(chain, packets, forgeries);
        self.transport = Some(Box::new(Transport { keys, cipher, remote_id, peer }));
        self.state = State::Established;
        self.timing.established = Some(now);
        self.events.push_back(Event::Connected);
        if self.side == Side::Server {
            self.handshake = None;
            self.control.push_back(Frame::HandshakeDone);
        }
    }
}
