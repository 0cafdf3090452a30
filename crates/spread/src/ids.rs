//! Names of servers, files and asks, and sets of servers.

/// The largest number of servers of one scheduler. A set of servers is a bit set of this many bits.
pub const SERVERS_MAX: usize = 256;

/// A server of one scheduler, numbered from 0 in the order of [`crate::Spread::add_server`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ServerId(pub u16);

/// A pool of one scheduler, numbered from 0 in the order of [`crate::Spread::add_pool`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct PoolId(pub u16);

/// A file of one scheduler, numbered from 0 in the order of [`crate::Spread::add_file`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct FileId(pub u32);

/// One ask to one server. No two asks of a scheduler have the same id.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct AskId(pub u64);

/// A set of servers.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub(crate) struct ServerSet([u64; SERVERS_MAX / 64]);

impl ServerSet {
    /// Adds a server whose index is below [`SERVERS_MAX`].
    pub(crate) fn insert(&mut self, server: usize) {
        self.0[server / 64] |= 1 << (server % 64);
    }

    /// Removes a server whose index is below [`SERVERS_MAX`].
    pub(crate) fn remove(&mut self, server: usize) {
        self.0[server / 64] &= !(1 << (server % 64));
    }

    /// Whether the server is in the set.
    pub(crate) fn contains(&self, server: usize) -> bool {
        self.0[server / 64] >> (server % 64) & 1 == 1
    }

    /// The number of servers in both sets.
    pub(crate) fn common(&self, other: &Self) -> u32 {
        self.0.iter().zip(&other.0).map(|(mine, its)| (mine & its).count_ones()).sum()
    }

    /// The indexes of the servers, in rising order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        self.0.iter().enumerate().flat_map(|(word, &bits)| {
            let rest = core::iter::successors(Some(bits), |bits| Some(bits & bits.wrapping_sub(1)));
            rest.take_while(|&bits| bits != 0)
                .map(move |bits| word * 64 + bits.trailing_zeros() as usize)
        })
    }
}
