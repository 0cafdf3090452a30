//! Replies that are due.

use crate::command::Command;
use crate::control::refused;
use crate::error::FtpError;
use crate::reply::Reply;
use std::collections::VecDeque;

/// Which reply a command is to have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Answer {
    /// That it is done, 2xx.
    Done,
    /// That another command is to follow, 3xx.
    More,
}

/// The replies that are due for commands that were sent together, in their order.
#[derive(Debug)]
pub(super) struct Replies(VecDeque<(Command, Answer)>);

impl Replies {
    pub(super) fn new(commands: impl IntoIterator<Item = (Command, Answer)>) -> Self {
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
        let Some((command, answer)) = self.0.pop_front() else { return Ok(()) };
        let is_right = match answer {
            Answer::Done => reply.is_done(),
            Answer::More => reply.wants_more(),
        };
        if is_right { Ok(()) } else { Err(refused(&command, reply)) }
    }
}
