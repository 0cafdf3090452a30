//! Somebody between the two ends, or in the place of one of them.

use hikyaku_proto::Side;
use hikyaku_units::Instant;
use std::time::Duration;

/// Sees every datagram where it is sent and where it arrives, and says what becomes of it.
///
/// Who changes what an end sends may be on the path, or be that end: with the keys of
/// [`SimSession`](crate::SimSession), which everybody has, a receiver that lies is an honest one whose
/// words are changed as they leave.
pub trait Meddler {
    /// `from` has sent this; gives what enters the path in its place.
    fn on_sent(&mut self, _now: Instant, _from: Side, bytes: Vec<u8>) -> Vec<Vec<u8>> {
        vec![bytes]
    }

    /// This has come to where `to` is; gives what `to` receives, and how much later.
    fn on_arrival(&mut self, _now: Instant, _to: Side, bytes: Vec<u8>) -> Vec<(Duration, Vec<u8>)> {
        vec![(Duration::ZERO, bytes)]
    }
}
