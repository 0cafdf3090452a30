//! scp's habits over the transport: arguments, routes, what its user sees.
#![forbid(unsafe_code)]

mod args;
mod cluster;
mod guests;
mod log;
mod manifest;
mod memory;
mod names;
mod outcome;
mod plan;
mod run;
mod sftp;
mod show;
mod status;
mod table;
mod unfinished;

pub use args::{CopyArgs, run};
pub use hikyaku_mover::{Same, Times};
pub use hikyaku_transfer::{
    Attributes, Depth, Durable, Existing, Links, Owners, Pass, Preserve, Resume, Rules, Verify,
    Write,
};
pub use memory::available as available_memory;
pub use names::names;
pub use outcome::exit_code;
pub use plan::{By, Condition, CopyPlan, FarNames, Report, SshHosts, StoredRules, Transport};
pub use run::{copy, ways};
pub use sftp::OpenSftp;
pub use status::{StatusArgs, status};
pub use table::TABLE;
