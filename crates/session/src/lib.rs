//! A client of daemons: the user's key, the servers that it knows, one socket, and connections to all servers at once.
//!
//! [`ClientConfig::of_user`] reads the key and the list of known servers of the user who runs this process, and a
//! [`Connector`] connects. The caller decides what a connection is used for. This crate has the steps that all
//! commands take before, and the notes that they print.
#![forbid(unsafe_code)]

mod args;
mod config;
mod connector;
mod notes;

pub use args::{By, ConnectArgs, SilenceArgs, least};
pub use config::{ClientConfig, SetupError};
pub use connector::{ANSWER_TIME, Connector, at_once};
pub use notes::{announce, announce_key};
