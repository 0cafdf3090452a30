//! An attacker on the path, or a malicious end.

use hikyaku_proto::Side;
use hikyaku_units::Instant;
use std::time::Duration;

/// Sees every datagram when it is sent and when it arrives, and may drop, change or add datagrams.
///
/// A malicious end is modelled as an honest one whose packets are changed as they leave. This is
/// possible because the keys of [`SimSession`](crate::SimSession) are public.
pub trait Meddler {
    /// `from` has sent `bytes`. Returns the datagrams that enter the path instead.
    fn on_sent(&mut self, _now: Instant, _from: Side, bytes: Vec<u8>) -> Vec<Vec<u8>> {
        vec![bytes]
    }

    /// `bytes` has arrived at `to`. Returns the datagrams that `to` receives instead, each with an
    /// additional delay.
    fn on_arrival(&mut self, _now: Instant, _to: Side, bytes: Vec<u8>) -> Vec<(Duration, Vec<u8>)> {
        vec![(Duration::ZERO, bytes)]
    }
}
