//! Which standard descriptors the process was begun without (`>&-` of a shell).
//!
//! Rust's runtime opens `/dev/null` in their place before `main`, so that what is written there is lost and nothing fails.
//! They are looked at before that.

use std::sync::atomic::{AtomicBool, Ordering};

/// A standard descriptor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Standard {
    /// Standard input.
    Input,
    /// Standard output.
    Output,
}

/// In the order of their numbers.
static CLOSED: [AtomicBool; 2] = [const { AtomicBool::new(false) }; 2];

// SAFETY: the loader calls what this section lists once, before main and while there is one thread; `look` needs nothing of
// the runtime.
#[used]
#[unsafe(link_section = ".init_array")]
static LOOK: extern "C" fn() = look;

extern "C" fn look() {
    for (number, closed) in (0..).zip(&CLOSED) {
        // SAFETY: F_GETFD of fcntl(2) takes any number, and touches no memory.
        let flags = unsafe { libc::fcntl(number, libc::F_GETFD) };
        closed.store(flags == -1, Ordering::Relaxed);
    }
}

/// Whether the process was begun without this descriptor.
pub fn was_closed(which: Standard) -> bool {
    CLOSED[which as usize].load(Ordering::Relaxed)
}
