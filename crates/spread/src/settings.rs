//! Settings of a scheduler.

use hikyaku_units::{DataSize, Rate};

/// Settings of a scheduler. The defaults are made for servers behind long paths.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Settings {
    /// The rate that a server is taken to have until it was measured. A low value costs a fast server a round
    /// trip or two; a high one asks a slow server for what it cannot send before the others are done. The
    /// default is 16 Mbit/s: a server of 5 Mbit/s is then asked for two segments at the start.
    pub begin_rate: Rate,
    /// The largest number of groups for which a plan is made. Above it, servers take from the group
    /// whose living replicas are the slowest together. The default is 512: a plan for more takes milliseconds, twice a second.
    pub planned_groups_max: usize,
}

/// Settings of one server.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ServerSettings {
    /// Files up to this size are asked for in batches, and up to one segment at most. The default is 256 KiB: above it, a server
    /// sends a file for longer than the request costs.
    pub small_file: DataSize,
    /// How much it is asked for at a time. Default: what it sends in a while.
    pub asking: Asking,
    /// Asks that it may have at once. Default: any number.
    pub asks_max: usize,
}

/// How much a server is asked for at a time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Asking {
    /// Pieces of a quarter of a second at its rate, and the next one before the last has arrived. Its work goes to others if
    /// they would be done sooner, or if it falls silent.
    Timed,
    /// As many pieces of this size as it may have at once, and the next one when one has arrived or failed. Its work stays with
    /// it and nothing is requested twice: for servers that cannot cancel a request, that continue with abandoned ones, or where
    /// each request costs money.
    Pieces(DataSize),
    /// One range after the other: of this size until its rate is known, then what it sends in some seconds, and of what is left
    /// at most two thirds of its share; all that is left if no other server has the file. Its work goes to others if they would be done sooner, and its silence does not count: for
    /// connections where each request costs a round trip and a cut costs the connection.
    Ranges(DataSize),
}

impl Default for Settings {
    fn default() -> Self {
        Self { begin_rate: Rate::from_bits_per_sec(16_000_000), planned_groups_max: 512 }
    }
}

impl Default for ServerSettings {
    fn default() -> Self {
        Self {
            small_file: DataSize::from_bytes(256 << 10),
            asking: Asking::Timed,
            asks_max: usize::MAX,
        }
    }
}
