//! `hikyaku mount`: the files of a daemon under a directory of this machine, by FUSE.
//!
//! A program opens, reads and lists files as if they were here. The mount asks the server ahead of the program, by as
//! much as the path holds (`hikyaku-read-ahead`), so that a round trip of 200 ms costs a reader in order nothing. What
//! is promised, and what is not, stands in `docs/mount.md`.
//!
//! The parts: `front` reads the kernel's requests, `ask` and `fetch` send requests to the server, `read` joins the two,
//! `nodes` and `listings` hold names, `changes` the changes of this mount, and `link` maintains the connections.
#![forbid(unsafe_code)]

mod answer;
mod append;
mod args;
mod ask;
mod attributes;
mod change;
mod changes;
mod core;
mod crew;
mod decide;
mod fetch;
mod front;
mod guests;
mod held;
mod kernel;
mod leases;
mod link;
mod listings;
mod locks;
mod look;
mod mounted;
mod nodes;
mod notes;
mod options;
mod read;
mod refused;
mod run;
mod stage;
mod staging;
mod status;
mod umount;
mod unconfirmed;
mod unnamed;
mod write;

pub use args::{MountArgs, UmountArgs};
pub use run::run;
pub use umount::umount;
