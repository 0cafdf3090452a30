//! scp's habits over the transport: arguments, the two ends of a copy, what its user sees.
#![forbid(unsafe_code)]

mod args;
mod hello;
mod location;
mod ssh;

pub use args::CopyArgs;
pub use hello::{Hello, NoHello, PROTOCOL};
pub use location::{Location, LocationError, Remote};
pub use ssh::{BadRemotePath, Family, SshOptions};
