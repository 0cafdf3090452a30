//! What the workspace's own tools have in common: where the workspace is, how its programs are built, how programs are
//! run, which packages of the system they need.
//!
//! Nothing here knows the product, so that `cargo xtask` builds when the product does not compile.
#![forbid(unsafe_code)]

mod build;
pub mod dist;
mod packages;
mod process;
mod program;
mod root;
pub mod servers;

pub use build::{Build, Profile};
pub use packages::{NETWORK_TOOLS, Need, ensure_present, install, is_root, on_path};
pub use process::{Finished, Running, run};
pub use program::program;
pub use root::{own_files, workspace};
