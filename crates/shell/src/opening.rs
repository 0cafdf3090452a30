//! How a session is opened, by value. The arguments of `hikyaku sftp` are turned into it once; `hikyaku sync` makes it itself.

use clap::ValueEnum;
use hikyaku_console::Given;
use hikyaku_reach::{Destination, WayPlan};
use std::ffi::OsString;

/// A session with another machine.
#[derive(Clone, Debug)]
pub struct Opening {
    /// The machine.
    pub login: Destination,
    /// How it is reached.
    pub way: WayPlan,
    /// What carries the session.
    pub by: By,
    /// The subsystem of ssh, or the path of an SFTP server there; `None` is the subsystem `sftp`.
    pub(crate) subsystem: Option<OsString>,
    /// The options that were typed, without those for finding and sending hikyaku.
    pub(crate) given: Given,
}

/// What carries a session.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, ValueEnum)]
pub enum By {
    /// hikyaku at the far side; where there is none, ssh.
    #[default]
    Auto,
    /// hikyaku at the far side.
    Native,
    /// The subsystem `sftp` of ssh.
    Sftp,
}

impl Opening {
    /// A session that hikyaku at the far side carries, or ssh where there is none.
    pub fn new(login: Destination, way: WayPlan) -> Self {
        Self { login, way, by: By::default(), subsystem: None, given: Given::default() }
    }
}
