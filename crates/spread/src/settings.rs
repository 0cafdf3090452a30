//! Settings of a scheduler.

use hikyaku_units::{DataSize, Rate};

/// Settings of a scheduler. The defaults fit everybody whose servers are far away.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Settings {
    /// The rate that a server is taken to have until it was measured. A low value costs a fast server a round
    /// trip or two; a high one asks a slow server for what it cannot send before the others are done. The
    /// default is 16 Mbit/s: a server of 5 Mbit/s is then asked for two segments at the start.
    pub begin_rate: Rate,
    /// Files up to this size are asked for in batches. The default is 256 KiB: above it, a server sends a
    /// file for longer than the request costs.
    pub small_file: DataSize,
    /// The largest number of groups for which a plan is made. Above it, servers take from the group
    /// whose living replicas are the slowest together. The default is 512: a plan for more takes milliseconds, twice a second.
    pub planned_groups_max: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            begin_rate: Rate::from_bits_per_sec(16_000_000),
            small_file: DataSize::from_bytes(256 << 10),
            planned_groups_max: 512,
        }
    }
}
