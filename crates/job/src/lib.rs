//! Decisions and records that all ways of copying share.
//!
//! - The choice of names: [`Patterns`] of `--exclude` and `--include`; patterns in a source ([`in_store`], [`expand`]); the names that a far side may send ([`Allowed`]).
//! - The right to a name at the target, where several sources meet: [`Claims`].
//! - The action for an entry whose name exists at the target: [`file_action`], [`link_action`], [`dir_action`]. A copy and its
//!   dry run use the same function.
//! - The progress, which the display reads: [`Meter`].
//! - The journal, with which the next attempt continues: [`JournalFile`]. [`unfinished()`] lists the journals of this user.
#![forbid(unsafe_code)]

mod action;
mod choice;
mod claims;
mod failure;
mod journal;
mod meter;
mod patterns;

pub use action::{
    Content, DirAction, FileAction, InTheWay, LinkAction, Same, Taken, dir_action, file_action,
    link_action,
};
pub use choice::{Pattern, Patterns};
pub use claims::{Claim, Claimant, Claims, ClaimsFull, JUST_MADE, just_made};
pub use failure::{exit_code_of, kind_of_errno, kind_of_fs_error};
pub use journal::{
    Attempt, Base, Held, JournalFile, Journaled, Known, NotHeld, Opened, Place, Remembered, State,
    Unfinished, live_tokens, unfinished,
};
pub use meter::{End, Meter, Tally, Told, TooMany};
pub use patterns::{
    Allowed, Asked, PatternError, expand, in_store, is_home, is_pattern, is_users_home,
};
