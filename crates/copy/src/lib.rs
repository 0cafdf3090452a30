//! scp's habits over the transport: arguments, the two ends of a copy, what its user sees.
#![forbid(unsafe_code)]

mod args;
mod engine;
mod far;
mod hello;
mod interrupt;
mod local;
mod location;
mod manifest;
mod near;
mod patterns;
mod relay;
mod run;
mod session;
mod show;
mod ssh;
mod watch;

pub use args::CopyArgs;
pub use far::{ServeArgs, serve};
pub use hello::{Hello, NoHello, PROTOCOL, Start};
pub use location::{Location, LocationError, Remote};
pub use near::SshFailed;
pub use run::run;
pub use ssh::{BadRemotePath, Family, SshOptions};
