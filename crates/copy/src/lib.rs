//! scp's habits over the transport: arguments, the two ends of a copy, what its user sees.
#![forbid(unsafe_code)]

mod args;
mod engine;
mod far;
mod folders;
mod hello;
mod interrupt;
mod local;
mod location;
mod manifest;
mod meet;
mod memory;
mod near;
mod patterns;
mod relay;
mod run;
mod session;
mod settings;
mod show;
mod ssh;
mod sync;
mod watch;

pub use args::CopyArgs;
pub use far::{ServeArgs, serve};
pub use hello::{Hello, NoHello, PROTOCOL, Start};
pub use location::{Location, LocationError, Remote};
pub use meet::{Invitation, Tuning};
pub use near::SshFailed;
pub use run::run;
pub use settings::{ConfigArgs, config};
pub use ssh::{BadRemotePath, Family, SshOptions};
