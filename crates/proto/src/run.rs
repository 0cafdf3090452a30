//! Received stream bytes without copying: a run of equally spaced pieces inside one receive buffer.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;

/// Takes back a receive buffer when the last run that refers to it is dropped.
pub trait Home: Send + Sync {
    /// Takes `buffer` for reuse.
    fn give_back(&self, buffer: Vec<u8>);
}

/// Two consecutive runs are copied into one if they have at most this many bytes together. The
/// payload of a full-size packet is larger, so it is never copied. The limit bounds the number of
/// pieces in a receive window of 512 MB to about a million.
const SMALL: usize = 1024;

/// A receive buffer that is returned to its [`Home`] when dropped.
pub struct Slab {
    bytes: Vec<u8>,
    home: Option<Arc<dyn Home>>,
}

impl Slab {
    /// A buffer, and where it is to be returned. With `None` it is freed.
    pub fn new(bytes: Vec<u8>, home: Option<Arc<dyn Home>>) -> Self {
        Self { bytes, home }
    }
}

impl Drop for Slab {
    fn drop(&mut self) {
        if let Some(home) = &self.home {
            home.give_back(core::mem::take(&mut self.bytes));
        }
    }
}

impl fmt::Debug for Slab {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Slab({} bytes)", self.bytes.len())
    }
}

/// Consecutive bytes of a stream in one buffer: pieces of `chunk` bytes that begin `stride` bytes
/// apart.
#[derive(Clone, Debug)]
pub struct Run {
    slab: Arc<Slab>,
    shape: Shape,
}

/// Where a run's bytes lie in its buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    pub(crate) first: usize,
    pub(crate) stride: usize,
    pub(crate) chunk: usize,
    /// Bytes at the start of the first piece that have been taken.
    pub(crate) skip: usize,
    pub(crate) len: usize,
}

impl Run {
    pub(crate) const fn new(slab: Arc<Slab>, shape: Shape) -> Self {
        Self { slab, shape }
    }

    /// A run of one piece that owns `bytes`.
    pub fn copied(bytes: Vec<u8>) -> Self {
        let len = bytes.len();
        let shape = Shape { first: 0, stride: len.max(1), chunk: len.max(1), skip: 0, len };
        Self { slab: Arc::new(Slab::new(bytes, None)), shape }
    }

    /// Bytes in the run.
    pub const fn len(&self) -> usize {
        self.shape.len
    }

    /// Whether the run has no bytes left.
    pub const fn is_empty(&self) -> bool {
        self.shape.len == 0
    }

    /// The first remaining piece; empty if none is left.
    pub fn piece(&self) -> &[u8] {
        let shape = &self.shape;
        let at = shape.first + shape.skip;
        &self.slab.bytes[at..at + shape.len.min(shape.chunk - shape.skip)]
    }

    /// The pieces, in order.
    pub fn pieces(&self) -> impl Iterator<Item = &[u8]> {
        let mut rest = self.clone();
        core::iter::from_fn(move || {
            let shape = rest.shape;
            let at = shape.first + shape.skip;
            let len = shape.len.min(shape.chunk - shape.skip);
            rest.advance(len);
            (len > 0).then(|| &self.slab.bytes[at..at + len])
        })
    }

    /// Removes the first `n` bytes.
    pub fn advance(&mut self, n: usize) {
        let shape = &mut self.shape;
        let n = n.min(shape.len);
        let into = shape.skip + n;
        shape.first += into / shape.chunk * shape.stride;
        shape.skip = into % shape.chunk;
        shape.len -= n;
    }

    /// Keeps only the first `n` bytes.
    pub fn truncate(&mut self, n: usize) {
        self.shape.len = self.shape.len.min(n);
    }

    /// Copies as many bytes as fit into `out` and removes them from the run. Returns their number.
    pub fn copy_to(&mut self, out: &mut [u8]) -> usize {
        let mut done = 0;
        while done < out.len() && !self.is_empty() {
            let piece = self.piece();
            let n = piece.len().min(out.len() - done);
            out[done..done + n].copy_from_slice(&piece[..n]);
            done += n;
            self.advance(n);
        }
        done
    }

    /// Appends the bytes of the run that follows, if both are small. A small run is copied because
    /// the bookkeeping of a separate piece costs more than copying its bytes.
    pub(crate) fn absorb(&mut self, next: &Self) -> bool {
        let is_small = self.len() + next.len() <= SMALL;
        if is_small {
            let mut both = self.to_vec();
            next.pieces().for_each(|piece| both.extend_from_slice(piece));
            *self = Self::copied(both);
        }
        is_small
    }

    /// All bytes in one vector.
    pub fn to_vec(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.len());
        self.pieces().for_each(|piece| out.extend_from_slice(piece));
        out
    }
}

#[cfg(test)]
mod tests;
