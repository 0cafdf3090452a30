//! Packet memory in huge pages, where the kernel provides them.
//!
//! The lab stores hundreds of megabytes of packets in flight. Each packet is copied in and out once,
//! from memory that is no longer in any cache, and pages of 4 KiB would add the cost of an address
//! translation to each copy.

use std::io;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

/// The size of a huge page and of each [`Pages`] in bytes.
const HUGE_PAGE_BYTES: usize = 2 << 20;

/// One huge page, or small pages of the same total size. The memory is populated on creation, so
/// that later accesses cause no page faults.
#[derive(Debug)]
pub struct Pages {
    mapping: NonNull<libc::c_void>,
    bytes: NonNull<u8>,
}

// SAFETY: this value is the only owner of the mapping, which any thread may access and unmap.
unsafe impl Send for Pages {}

impl Pages {
    /// Its size in bytes.
    pub const LEN: usize = HUGE_PAGE_BYTES;

    /// Allocates and populates the memory. Fails if the kernel has none.
    pub fn new() -> io::Result<Self> {
        let access = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        // Twice the size is reserved, because a huge page must be aligned. Untouched pages use no
        // memory.
        // SAFETY: a new private mapping at an address that the kernel chooses overlaps no memory in
        // use.
        let mapping =
            unsafe { libc::mmap(std::ptr::null_mut(), 2 * HUGE_PAGE_BYTES, access, flags, -1, 0) };
        let Some(mapping) = NonNull::new(mapping).filter(|_| mapping != libc::MAP_FAILED) else {
            return Err(io::Error::last_os_error());
        };
        let skip = mapping.cast::<u8>().align_offset(HUGE_PAGE_BYTES);
        // SAFETY: `skip` is less than HUGE_PAGE_BYTES, so the result is inside the mapping.
        let bytes = unsafe { mapping.cast::<u8>().add(skip) };
        // SAFETY: the HUGE_PAGE_BYTES bytes from there on are inside the mapping, and madvise(2)
        // does not change their content. If the kernel refuses the advice, small pages are used.
        unsafe { libc::madvise(bytes.as_ptr().cast(), HUGE_PAGE_BYTES, libc::MADV_HUGEPAGE) };
        let mut pages = Self { mapping, bytes };
        pages.fill(1);
        Ok(pages)
    }
}

impl Deref for Pages {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        // SAFETY: the mapping has HUGE_PAGE_BYTES initialised bytes from here on and lives as long as
        // `self`; `&self` excludes writers.
        unsafe { std::slice::from_raw_parts(self.bytes.as_ptr(), HUGE_PAGE_BYTES) }
    }
}

impl DerefMut for Pages {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `deref`, and `&mut self` excludes all other references.
        unsafe { std::slice::from_raw_parts_mut(self.bytes.as_ptr(), HUGE_PAGE_BYTES) }
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: the mapping was made with this length, and no reference into it outlives `self`.
        unsafe { libc::munmap(self.mapping.as_ptr(), 2 * HUGE_PAGE_BYTES) };
    }
}
