//! Memory for packets, in huge pages where the kernel has them.
//!
//! Hundreds of megabytes in flight are copied in and out once each, always from memory that no
//! cache holds any more; with small pages the address translation costs as much as the copying.

use std::io;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

/// The size of a huge page, and of each [`Pages`].
const LEN: usize = 2 << 20;

/// One huge page, or as many small ones as make up its size. Its memory is there from the start,
/// so that touching it never waits for the kernel.
#[derive(Debug)]
pub struct Pages {
    mapping: NonNull<libc::c_void>,
    bytes: NonNull<u8>,
}

// SAFETY: the mapping belongs to this value alone, and memory does not care about threads.
unsafe impl Send for Pages {}

impl Pages {
    /// How many bytes there are.
    pub const LEN: usize = LEN;

    /// New memory.
    pub fn new() -> io::Result<Self> {
        let access = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        // Twice the size, because a huge page must be aligned; what is not touched costs nothing.
        // SAFETY: a new private mapping at an address of the kernel's choice touches no memory that
        // anyone has.
        let mapping = unsafe { libc::mmap(std::ptr::null_mut(), 2 * LEN, access, flags, -1, 0) };
        let Some(mapping) = NonNull::new(mapping).filter(|_| mapping != libc::MAP_FAILED) else {
            return Err(io::Error::last_os_error());
        };
        let skip = mapping.cast::<u8>().align_offset(LEN);
        // SAFETY: `skip` is less than LEN, so this is inside the mapping.
        let bytes = unsafe { mapping.cast::<u8>().add(skip) };
        // SAFETY: these LEN bytes are inside the mapping. The advice may be refused without harm.
        unsafe { libc::madvise(bytes.as_ptr().cast(), LEN, libc::MADV_HUGEPAGE) };
        let mut pages = Self { mapping, bytes };
        pages.fill(1);
        Ok(pages)
    }
}

impl Deref for Pages {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        // SAFETY: the mapping holds LEN readable bytes from here on, zero or written, for as long as
        // `self` lives, and `&self` keeps writers out.
        unsafe { std::slice::from_raw_parts(self.bytes.as_ptr(), LEN) }
    }
}

impl DerefMut for Pages {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above, and `&mut self` keeps everyone else out.
        unsafe { std::slice::from_raw_parts_mut(self.bytes.as_ptr(), LEN) }
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: the mapping was made with this length, and no reference into it outlives `self`.
        unsafe { libc::munmap(self.mapping.as_ptr(), 2 * LEN) };
    }
}
