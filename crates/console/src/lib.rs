//! What every command of the program has in common with its user.
//!
//! It knows no command. A command hands in what is its own, such as the actions that a signal runs.
#![forbid(unsafe_code)]

mod interrupt;

pub use interrupt::{Interrupt, Registration, Scope, ScopeId, StopCause, survive_file_size_limit};
