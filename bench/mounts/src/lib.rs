//! Bad file systems on which a copy is judged. One is of our own, in memory and mounted by FUSE: it
//! runs out of quota, tells it late, lies at `fsync` or refuses calls, as its [`Faults`] say, and it
//! records what was made durable in which order. The other is an ext4 on a loop device whose backing
//! store fills up. Nothing here is for real data.
#![forbid(unsafe_code)]

mod faults;
mod mounted;
mod node;
mod program;
mod record;
mod scratch;
mod serve;
mod small_disk;
mod store;

pub use faults::{FailingSync, Faults, NameRule, Quota, Refused, Told};
pub use mounted::{Mounted, skipped};
pub use program::{Said, cp, cp_as_nobody, nobody, program, run};
pub use record::Record;
pub use scratch::{Scratch, random};
pub use small_disk::SmallDisk;
