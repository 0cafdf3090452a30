//! `hikyaku sftp`: the language of OpenSSH's sftp (sftp(1)), interactive and in batches.
//!
//! The requests are SFTP's own ([`hikyaku_sftp`]). Where the far side has hikyaku, it starts the far side's `sftp-server`,
//! and its bytes travel over the transport ([`SERVICE`]). Elsewhere they travel through ssh's subsystem.
#![forbid(unsafe_code)]

mod args;
mod batch;
mod command;
mod edit;
mod far;
mod fault;
mod glob;
mod guests;
mod help;
mod line;
mod link;
mod list;
mod local;
mod opening;
mod path;
mod shell;
mod show;
mod table;
mod target;
mod transfer;
mod tree;

pub use args::SftpArgs;
pub use batch::{Outcome, run};
pub use far::{SERVICE, attend};
pub use link::Link;
pub use opening::{By, Opening};
pub use table::TABLE;
