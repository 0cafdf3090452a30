//! `hikyaku guc`: copies files from, to and between GridFTP servers, with globus-url-copy's command line.
//!
//! A file goes in chunks. The [tuner](hikyaku_tuner) says how many data connections a chunk has and how large it is. Each
//! chunk that is done is synced and recorded, so that a later attempt asks only for what is missing.
#![forbid(unsafe_code)]

mod args;
mod batch;
mod begun;
mod checksum;
mod download;
mod fetching;
mod finished;
mod glob;
mod journal;
mod other_args;
mod outcome;
mod run;
mod session;
mod several;
mod show;
mod table;
mod there;
mod third;
mod upload;
mod url;
mod walk;

pub use args::{GucArgs, with_long_options};
pub use outcome::exit_code;
pub use run::run;
pub use table::TABLE;
