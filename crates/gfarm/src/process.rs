//! What connects a session with gfmd and the connections to the nodes.

use std::fmt;
use zeroize::Zeroize;

/// Bytes of the key of a process: as in Gfarm.
const KEY_BYTES: usize = 32;

/// A client as gfmd knows it: a number, and a random key that proves to a node that a connection belongs to it.
#[derive(Clone)]
pub struct Process {
    pub(crate) id: i64,
    pub(crate) key: [u8; KEY_BYTES],
}

impl Process {
    /// A process with a new key, before gfmd has given it a number.
    pub(crate) fn new() -> std::io::Result<Self> {
        let mut key = [0; KEY_BYTES];
        let mut filled = 0;
        while filled < KEY_BYTES {
            let flags = rustix::rand::GetRandomFlags::empty();
            filled += rustix::rand::getrandom(&mut key[filled..], flags)?;
        }
        Ok(Self { id: 0, key })
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.key.zeroize();
    }
}

impl fmt::Debug for Process {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Process").field("id", &self.id).finish_non_exhaustive()
    }
}
