//! Control messages of Linux: ip(7), ipv6(7), udp(7), socket(7).

use super::{Received, array, int};

/// Bytes of the length of a message.
pub(super) const LENGTH_BYTES: usize = size_of::<usize>();

/// The length of a message.
pub(super) fn length(bytes: [u8; LENGTH_BYTES]) -> Option<usize> {
    Some(usize::from_ne_bytes(bytes))
}

/// A length as messages have it.
pub(super) fn encoded(length: usize) -> [u8; LENGTH_BYTES] {
    length.to_ne_bytes()
}

/// Level and type of the message that asks for segmentation.
pub(super) const SEGMENT_SIZE: Option<(i32, i32)> = Some((libc::SOL_UDP, libc::UDP_SEGMENT));
/// Type of the message with the traffic class byte of an IPv4 packet.
pub(super) const RECEIVED_TOS: i32 = libc::IP_TOS;

/// Takes what only this system reports.
pub(super) fn take(received: &mut Received, level: i32, kind: i32, data: &[u8]) {
    match (level, kind) {
        (libc::SOL_UDP, libc::UDP_GRO) => {
            received.segment_size = int(data).and_then(|size| usize::try_from(size).ok());
        }
        (libc::SOL_SOCKET, libc::SO_RXQ_OVFL) => {
            received.overflows = array(data).map_or(0, u32::from_ne_bytes);
        }
        (libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS) => received.arrived = time(data),
        _ => {}
    }
}

/// A `struct timespec` in nanoseconds; `None` if it is truncated or before 1970.
fn time(data: &[u8]) -> Option<u64> {
    let half = size_of::<libc::time_t>();
    let word = |at: usize| {
        let bytes = data.get(at..at + half)?;
        match half {
            8 => array(bytes).map(i64::from_ne_bytes),
            _ => array(bytes).map(|bytes| i32::from_ne_bytes(bytes).into()),
        }
    };
    let (seconds, nanos) = (u64::try_from(word(0)?).ok()?, u64::try_from(word(half)?).ok()?);
    seconds.checked_mul(1_000_000_000)?.checked_add(nanos)
}
