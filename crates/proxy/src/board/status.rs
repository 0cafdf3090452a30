//! What a gateway tells of itself: on its page, as lines of JSON and to `hikyaku proxy status`.

use super::limit::Limit;
use crate::switch::{Far, Mode, Route};
use serde::{Deserialize, Serialize};

/// A gateway at one instant.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Status {
    /// Seconds since the gateway began.
    pub(crate) seconds: f64,
    /// Where the far gateway runs.
    pub(crate) far: String,
    /// Whether it is there.
    pub(crate) connection: Far,
    /// What the user has asked for.
    pub(crate) mode: Mode,
    /// Connections that went direct since the gateway began.
    pub(crate) direct: u64,
    /// `udp`, or `pipe` where no UDP gets through; `none` while there is no connection.
    pub(crate) carrier: String,
    /// Seconds of a round trip to it.
    pub(crate) round_trip_seconds: f64,
    /// What all flows bring, and what they send.
    pub(crate) received_bits_per_second: f64,
    pub(crate) sent_bits_per_second: f64,
    /// The second buffer: what has come over the path and has not gone to a program's socket.
    pub(crate) transport: Option<Transport>,
    /// Flows that are open, those first in which most has passed. At most 100.
    pub(crate) flows: Vec<FlowStatus>,
    /// Flows that are open.
    pub(crate) open: usize,
    /// Flows that are over, the last one first.
    pub(crate) ended: Vec<Ended>,
}

/// Bytes of all flows in the transport of this end.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) struct Transport {
    /// Bytes that are not read.
    pub(crate) unread_bytes: u64,
    /// Bytes of them that wait for missing data before them.
    pub(crate) held_bytes: u64,
    /// The room for them.
    pub(crate) window_bytes: u64,
}

/// A flow that is open.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) struct FlowStatus {
    pub(crate) id: u64,
    /// The program's address; `None` at a Unix socket.
    pub(crate) program: Option<String>,
    /// Where the flow goes: an address of the web, or a host and a port.
    pub(crate) target: String,
    /// How it goes there.
    pub(crate) route: Route,
    /// Seconds since it was asked for.
    pub(crate) seconds: f64,
    pub(crate) received_bytes: u64,
    pub(crate) sent_bytes: u64,
    pub(crate) received_bits_per_second: f64,
    pub(crate) sent_bits_per_second: f64,
    /// What holds its rate.
    pub(crate) limited_by: Limit,
    /// The first buffer, if the kernel tells.
    pub(crate) socket: Option<SocketBuffers>,
    /// The third buffer, if the file of the program was found.
    pub(crate) file: Option<FileBuffers>,
}

/// Bytes between the gateway and the program.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) struct SocketBuffers {
    /// Bytes in the program's socket that it has not read.
    pub(crate) unread_bytes: u64,
    /// How much of the socket's memory they take, and the memory's limit.
    pub(crate) used_bytes: Option<u64>,
    pub(crate) limit_bytes: Option<u64>,
    /// Bytes in the gateway's socket that the program's kernel has not acknowledged.
    pub(crate) unacknowledged_bytes: u64,
}

impl SocketBuffers {
    /// How much of the memory of the program's socket is in use, from 0 to 1; 0 if it is not known.
    pub(crate) fn fullness(&self) -> f64 {
        match (self.used_bytes, self.limit_bytes) {
            (Some(used), Some(limit)) if limit > 0 => used as f64 / limit as f64,
            _ => 0.0,
        }
    }
}

/// A file that a program writes, and its pages in the kernel's cache.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) struct FileBuffers {
    pub(crate) name: String,
    pub(crate) size_bytes: u64,
    pub(crate) cached_bytes: u64,
    /// Changed, and not on their way to the disk.
    pub(crate) dirty_bytes: u64,
    /// On their way to the disk.
    pub(crate) writeback_bytes: u64,
}

/// A flow that is over.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) struct Ended {
    pub(crate) id: u64,
    pub(crate) target: String,
    /// How it ended, in words.
    pub(crate) end: String,
    pub(crate) seconds: f64,
    pub(crate) received_bytes: u64,
    pub(crate) sent_bytes: u64,
}
