//! Replies that are due.

use crate::command::Command;
use crate::control::refused;
use crate::error::FtpError;
use crate::reply::Reply;
use std::collections::VecDeque;

/// The replies that are due for commands that were sent together, in their order.
#[derive(Debug)]
pub(super) struct Replies(VecDeque<Command>);

impl Replies {
    pub(super) fn new(commands: impl IntoIterator<Item = Command>) -> Self {
        Self(commands.into_iter().collect())
    }

    /// Whether all have come.
    pub(super) fn is_final(&self) -> bool {
        self.0.is_empty()
    }

    /// # Errors
    /// A command is refused.
    pub(super) fn handle(&mut self, reply: &Reply) -> Result<(), FtpError> {
        if reply.is_preliminary() {
            return Ok(());
        }
        let Some(command) = self.0.pop_front() else { return Ok(()) };
        if reply.is_done() { Ok(()) } else { Err(refused(&command, reply)) }
    }
}
