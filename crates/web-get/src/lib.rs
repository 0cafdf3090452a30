//! `hikyaku get`: fetches files of web servers by parallel ranges.
//!
//! ```text
//! run ─▶ download ─ asks for the first part, finds what an earlier attempt left
//!           │
//!           ▼
//!        fetch ── workers, one a connection: lease of the board ─▶ http ─▶ check ─▶ file
//!           │                                                 steer: tuner, number of workers
//!           ▼                                                 keep: sync, journal
//!        verify ─ digests; bytes of a mirror that lied are fetched from the others
//! ```
//!
//! A byte is used only if the answer that it came in was checked: the range that was asked for, of the version that the
//! file had at the beginning. What is written and synced is recorded in a journal beside the unfinished file, so that
//! the same command goes on after an interruption. The file gets its name when all of it is there, checked and synced.
#![forbid(unsafe_code)]

mod args;
mod download;
mod fetch;
mod guests;
mod journal;
mod links;
mod metalink;
mod names;
mod outcome;
mod output;
mod ranges;
mod reading;
mod run;
mod show;
mod standing;
mod steer;
mod stream;
mod table;
mod target;
mod verify;
mod worker;

pub use args::GetArgs;
pub use outcome::exit_code;
pub use reading::read_anything;
pub use run::run;
pub use table::TABLE;
