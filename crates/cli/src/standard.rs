//! Standard input and output that this process cannot use: they were closed (`>&-`), or are open the wrong way round
//! (`>&0` of a file that is read).
//!
//! Rust's library takes both for a place where everything may be written and nothing is to be read, so that a command would
//! lose its result and succeed. In their place comes a socket that nobody is at the other end of: each use of it fails.

use hikyaku_tcp::{Standard, was_closed};
use rustix::fs::{OFlags, fcntl_getfl};
use rustix::io::Result;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};
use rustix::stdio::{dup2_stdin, dup2_stdout, stdin, stdout};
use std::os::fd::AsFd;

/// Puts a socket in the place of those that cannot be used.
pub(crate) fn replace_unusable() -> Result<()> {
    if was_closed(Standard::Input) || is_open_for(stdin(), OFlags::WRONLY) {
        dup2_stdin(nobody()?)?;
    }
    if was_closed(Standard::Output) || is_open_for(stdout(), OFlags::RDONLY) {
        dup2_stdout(nobody()?)?;
    }
    Ok(())
}

/// Whether a descriptor is open in this way only.
fn is_open_for(descriptor: impl AsFd, way: OFlags) -> bool {
    fcntl_getfl(descriptor).is_ok_and(|flags| flags & OFlags::RWMODE == way)
}

/// A socket without another end: reading and writing fail (unix(7)).
fn nobody() -> Result<impl AsFd> {
    socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)
}
