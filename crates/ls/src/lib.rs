//! `hikyaku ls` lists files of this host, of daemons, of a Gfarm file system and of a bucket.
#![forbid(unsafe_code)]

mod args;
mod gather;
mod print;
mod run;

pub use args::LsArgs;
pub use run::run;
