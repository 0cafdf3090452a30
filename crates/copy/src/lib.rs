//! scp's habits over the transport: arguments, the two ends of a copy, what its user sees.
#![forbid(unsafe_code)]

mod args;
mod cluster;
mod engine;
mod far;
mod hello;
mod home;
mod interrupt;
mod local;
mod location;
mod manifest;
mod meet;
mod memory;
mod near;
mod outcome;
mod patterns;
mod run;
mod session;
mod settings;
mod show;
mod ssh;
mod start;
mod sync;
mod unfinished;
mod watch;

pub use args::CopyArgs;
pub use far::serve;
pub use hello::{Greeting, Hello, NoHello, PROTOCOL, Start};
pub use location::{Location, LocationError, Remote, Servers};
pub use meet::{Invitation, Tuning};
pub use outcome::exit_code;
pub use run::run;
pub use settings::add_keys;
pub use ssh::{BadRemotePath, Family, SshOptions};
pub use start::SshFailed;
