//! The daemon behind `hikyaku serve`: one port, clients that are known by their keys, services by name.
//!
//! The daemon accepts connections, drops those whose keys are not authorised, and hands each of the others to the
//! service that it asks for (`hikyaku_reach::daemon`). A failure of one session does not touch the others.
#![forbid(unsafe_code)]

mod args;
mod authorized;
mod daemon;
mod for_session;
mod images;
mod log;
mod sessions;
mod shares;
mod tcp;

pub use args::{DaemonArgs, run};
pub use authorized::{Added, NotAdded, Permit, add_key, check_line};
pub use daemon::{Admission, BindDaemon, Carries, Daemon, Forward, Grant, Settings};
pub use for_session::{attend, run_for_session};
pub use hikyaku_remote::FILES;
pub use shares::KeyRate;
