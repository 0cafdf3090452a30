//! Control messages of systems that descend from 4.4BSD, such as macOS: ip(4), ip6(4), unix(4).

use super::{Received, array, int};

/// Bytes of the length of a message.
pub(super) const LENGTH_BYTES: usize = size_of::<libc::socklen_t>();

/// The length of a message.
pub(super) fn length(bytes: [u8; LENGTH_BYTES]) -> Option<usize> {
    usize::try_from(libc::socklen_t::from_ne_bytes(bytes)).ok()
}

/// A length as messages have it.
pub(super) fn encoded(length: usize) -> [u8; LENGTH_BYTES] {
    (length as libc::socklen_t).to_ne_bytes()
}

/// There is no segmentation.
pub(super) const SEGMENT_SIZE: Option<(i32, i32)> = None;
/// Type of the message with the traffic class byte of an IPv4 packet.
pub(super) const RECEIVED_TOS: i32 = libc::IP_RECVTOS;

/// Takes what only this system reports.
pub(super) fn take(received: &mut Received, level: i32, kind: i32, data: &[u8]) {
    if (level, kind) == (libc::SOL_SOCKET, libc::SCM_TIMESTAMP) {
        received.arrived = time(data);
    }
}

/// A `struct timeval` in nanoseconds; `None` if it is truncated or before 1970.
fn time(data: &[u8]) -> Option<u64> {
    let seconds = u64::try_from(array(data).map(i64::from_ne_bytes)?).ok()?;
    let micros = u64::try_from(int(data.get(8..)?)?).ok()?;
    seconds.checked_mul(1_000_000_000)?.checked_add(micros.checked_mul(1000)?)
}
