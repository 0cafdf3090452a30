//! `hikyaku guc`: copies files from, to and between GridFTP servers, with globus-url-copy's command line.
//!
//! Files from and to a server are copied by the mover, over a store of the server. Between two servers the data do not pass
//! here: each chunk that the receiving server has stored is recorded, so that a later attempt asks only for what is missing.
//! The [tuner](hikyaku_tuner) says how many data connections a chunk has and how large it is.
#![forbid(unsafe_code)]

mod args;
mod batch;
mod checksum;
mod fetching;
mod glob;
mod other_args;
mod outcome;
mod part;
mod paths;
mod run;
mod sending;
mod session;
mod several;
mod show;
mod table;
mod there;
mod third;
mod url;
mod walk;

pub use args::{GucArgs, with_long_options};
pub use outcome::exit_code;
pub use run::run;
pub use table::TABLE;
