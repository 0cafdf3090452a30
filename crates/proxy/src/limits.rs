//! What a gateway takes at once, and how long it waits.

use hikyaku_reach::{Loss, PathMemory, Readers, Service};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::time::Duration;

/// Flows at once. More are refused: by the near gateway with a reset, by the far gateway with an answer.
pub(crate) const FLOWS_MAX: u32 = 4096;
/// Flows of a far gateway that are not connected yet. More are refused.
pub(crate) const PENDING_MAX: usize = 1024;
/// Connections of programs that have not said where they want to go yet, at all listeners together. More are reset.
pub(crate) const ASKING_MAX: usize = 1024;
/// A program has so long for the request to a SOCKS or HTTP proxy, and a near gateway for the first message of a flow.
pub(crate) const HEAD_TIMEOUT: Duration = Duration::from_secs(10);
/// The far gateway gives up connecting after this long, name lookup included.
pub(crate) const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);
/// A flow of which one direction has ended is forgotten if nothing passes in the other one for this long.
pub(crate) const HALF_IDLE: Duration = Duration::from_secs(3600);
/// Bytes of a request to an HTTP proxy, up to the empty line.
pub(crate) const HEAD_BYTES_MAX: usize = 64 << 10;

/// The code with which a stream is reset because a TCP connection was reset.
pub(crate) const RESET_CODE: u64 = hikyaku_net::code::APPLICATION;

/// The service of the far gateway.
pub const SERVICE: Service = Service {
    name: "proxy",
    // The stream of the hello, and streams of flows that are over and whose last bytes are on their way.
    streams_max: FLOWS_MAX + 1024,
    readers: Readers::Many,
    path_memory: PathMemory::OfUser,
    loss: Loss::Ends,
};

/// Lets this process have as many files open as the system allows: each flow has a socket.
pub(crate) fn raise_open_files() {
    let most = getrlimit(Resource::Nofile).maximum;
    // A refusal leaves the limit as it is, and then flows are refused when it is reached.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: most, maximum: most });
}

/// Threads that move bytes between sockets and streams. The transport has one of its own.
pub(crate) fn workers() -> usize {
    std::thread::available_parallelism().map_or(1, |cores| cores.get().clamp(1, 4))
}
