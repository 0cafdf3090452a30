//! The state of a mount, as extended attributes of its root that listings do not show.

use crate::core::{Core, State};
use serde_json::{Value, json};
use std::path::Path;

/// The process that serves the mount.
pub(crate) const PID_ATTRIBUTE: &[u8] = b"user.hikyaku.pid";
/// The writes that the server does not have, as JSON, once all others are sent.
pub(crate) const FLUSH_ATTRIBUTE: &[u8] = b"user.hikyaku.flush";
/// Figures, as JSON.
pub(crate) const STATUS_ATTRIBUTE: &[u8] = b"user.hikyaku.status";

/// Maximum length of an attribute's value: twenty paths, with their errors.
pub(crate) const ATTRIBUTE_BYTES_MAX: usize = 48 << 10;

/// The figures of a mount.
pub(crate) fn figures(core: &Core) -> Value {
    let state = core.state();
    let (pages, totals, window) = (state.pages.totals(), state.totals, state.pace.window());
    json!({
        "limit": limit(&state),
        "connected": state.crew.is_up(),
        "servers": state.crew.counts().1,
        "servers_connected": state.crew.counts().0,
        "asked_of_servers": state.crew.asked(),
        "connections": state.epoch,
        "rate_bits_per_second": state.pace.rate().bits_per_sec(),
        "round_trip_seconds": state.pace.round_trip().as_secs_f64(),
        "window_bytes": window.bytes,
        "cache_bytes": core.settings.cache_bytes,
        "here_bytes": pages.here_bytes,
        "unread_bytes": pages.unread_bytes,
        "asked_bytes": pages.asked_bytes,
        "wasted_bytes": pages.wasted_bytes,
        "arrived_bytes": totals.arrived_bytes,
        "read_bytes": totals.read_bytes,
        "written_bytes": totals.written_bytes,
        "unconfirmed_bytes": state.writes.bytes(),
        "staged_bytes": core.stage.as_ref().map(|stage| stage.bytes()),
        "kept_aside_files": core.stage.as_ref().map(|stage| stage.aside().count()),
        "kept_aside_in": core.stage.as_ref().map(|stage| stage.aside().dir().display().to_string()),
        "reads": totals.reads,
        "hits": totals.hits,
        "failed_reads": totals.failed,
        "waiting_reads": state.reads.len(),
        "waiting_questions": state.ops.len(),
        "asked_questions": totals.asked,
        "leases": state.leases.len(),
        "decided_changes": totals.held,
        "lost_changes": totals.lost,
        "refused_because": state.refused_because().map(|kind| kind.to_string()),
        "open_files": state.handles.len(),
        "nodes": state.nodes.len(),
    })
}

/// The present cause of waits of programs.
fn limit(state: &State) -> &'static str {
    let waits = !state.reads.is_empty() || !state.ops.is_empty();
    match (state.crew.is_up(), state.writes.is_full(), waits) {
        (false, ..) => "the server is lost",
        _ if state.refused_because().is_some() => "the server refuses what was written, for now",
        (true, true, _) => "writes wait for the path or the server",
        (true, false, true) if state.pages.room_ahead() == 0 => "unread blocks fill the cache",
        (true, false, true) => "reads and questions wait for the path or the server",
        (true, false, false) => "nothing: programs do not wait",
    }
}

/// An attribute of the hikyaku mount at `path`, if one is mounted.
pub(crate) fn attribute(path: &Path, name: &[u8]) -> Option<String> {
    let mut value = vec![0; ATTRIBUTE_BYTES_MAX];
    let length = rustix::fs::getxattr(path, name, &mut value).ok()?;
    value.truncate(length);
    String::from_utf8(value).ok()
}
