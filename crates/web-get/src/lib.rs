//! `hikyaku get`: fetches files of web servers by parallel ranges, and files of other storages as `hikyaku cp` does.
//!
//! ```text
//! run ─▶ download ─ asks for the first part: name, size, version, digests
//!           │
//!           ├─▶ ranged ─ the mover, over `store-http`: ranges, number of connections, journal
//!           │              digests; bytes of a mirror that lied are fetched from the others
//!           └─▶ piped ── one answer in order: small files, outputs, servers without ranges or versions
//! ```
//!
//! A byte is used only if its answer was checked: the requested range, of the version that the file had at the beginning. The
//! file gets its name when all of it is complete, compared with its digests, and synced.
#![forbid(unsafe_code)]

mod args;
mod download;
mod elsewhere;
mod guests;
mod links;
mod list;
mod metalink;
mod names;
mod outcome;
mod output;
mod queue;
mod reading;
mod run;
mod show;
mod table;
mod target;
mod tunings;
mod unfinished;
mod verify;

pub use args::GetArgs;
pub use outcome::exit_code;
pub use reading::read_anything;
pub use run::run;
pub use table::TABLE;
