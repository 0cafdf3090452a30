//! The ranges that a server is asked for, by its traits and by the room of a target.

use super::Job;
use crate::census::ServerId;
use crate::target::Target;
use hikyaku_spread::{Asking, ServerSettings};
use hikyaku_store::{Cutting, Fetcher, FetcherTraits};
use hikyaku_units::DataSize;
use std::sync::Arc;

/// The bytes of a request to a server that cannot be told to stop, and that names no size.
const PIECE_BYTES: u64 = 8 << 20;

/// The bytes of a range of a connection whose rate is not known yet.
const RANGE_BYTES: DataSize = DataSize::from_bytes(16 << 20);

/// The end of the bytes of a file for which its target has room, if it takes them in order; `None` if it has room for all that
/// come, as it has if the only server sends the file by one request.
pub(super) fn reach(job: &Job<'_>, target: &Target<'_>) -> Option<DataSize> {
    let sends_whole = |server: &Arc<dyn Fetcher>| {
        server.traits().request_bytes == Some(FetcherTraits::WHOLE_FILE)
    };
    if matches!(job.servers, [server] if sends_whole(server)) {
        return None;
    }
    let (taken, window) = target.taken().zip(target.window(job.parameters.client.rate))?;
    Some(DataSize::from_bytes(taken.saturating_add(window.bytes())))
}

/// How the scheduler uses a server.
pub(super) fn settings(traits: FetcherTraits) -> ServerSettings {
    let piece = DataSize::from_bytes(traits.request_bytes.unwrap_or(PIECE_BYTES));
    ServerSettings {
        small_file: DataSize::from_bytes(traits.small_bytes),
        asking: match traits.cutting {
            Cutting::Free => Asking::Timed,
            Cutting::ClosesConnection if traits.request_bytes.is_none() => {
                Asking::Ranges(RANGE_BYTES)
            }
            Cutting::ClosesConnection | Cutting::Never => Asking::Pieces(piece),
        },
        asks_max: traits.requests_max.max(1) as usize,
    }
}

/// Whether a server keeps its work until it has sent or refused it.
pub(super) fn is_kept(traits: FetcherTraits) -> bool {
    matches!(settings(traits).asking, Asking::Pieces(_))
}

/// The scheduler's number of a server.
pub(super) const fn server_id(server: ServerId) -> hikyaku_spread::ServerId {
    hikyaku_spread::ServerId(server.0 as u16)
}
