//! Replies that are due.

use crate::command::Command;
use crate::control::refused;
use crate::error::FtpError;
use crate::reply::Reply;
use std::collections::VecDeque;

/// The replies that are due for commands that were sent together, in their order.
#[derive(Debug)]
pub(super) struct Replies {
    due: VecDeque<Command>,
    has_begun: bool,
}

impl Replies {
    pub(super) fn new(commands: impl IntoIterator<Item = Command>) -> Self {
        Self { due: commands.into_iter().collect(), has_begun: false }
    }

    /// Whether all have come.
    pub(super) fn is_final(&self) -> bool {
        self.due.is_empty()
    }

    /// Whether the server has announced a transfer.
    pub(super) const fn has_begun(&self) -> bool {
        self.has_begun
    }

    /// # Errors
    /// A command is refused.
    pub(super) fn handle(&mut self, reply: &Reply) -> Result<(), FtpError> {
        if reply.is_preliminary() {
            self.has_begun = true;
            return Ok(());
        }
        let Some(command) = self.due.pop_front() else { return Ok(()) };
        if reply.is_done() { Ok(()) } else { Err(refused(&command, reply)) }
    }
}
