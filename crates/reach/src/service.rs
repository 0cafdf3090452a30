//! What a far side does, by name.

/// A service, and what it needs of its connection. Both ends give the same values for one name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Service {
    /// Its name: letters, digits and `-`.
    pub name: &'static str,
    /// Streams and objects that the other end may have open at once.
    pub streams_max: u32,
    /// Whether it starts at the rate that an earlier connection had on the same path.
    pub path_memory: PathMemory,
}

/// Whether the rates of paths are remembered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PathMemory {
    /// They are, in the user's file: the next connection on a path starts at the rate of this one.
    OfUser,
    /// They are not: no file is read or written.
    Off,
}
