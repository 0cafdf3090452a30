//! A copy between two hikyaku programs. One end reads the sources and sends, the other receives and writes. Either of them may
//! be the one that has connected.
//!
//! The near end, which has the user, starts a far side with [`Far`], gives it an [`Order`], and does the opposite with its
//! [`Session`]: [`Session::send`], [`Session::receive`], or [`Session::through`] between two far sides. The far side is
//! [`attend`]. Both count in a [`Meter`], which the near end shows. The receiver keeps a journal, with which the next attempt
//! continues; [`unfinished()`] lists the journals of this user.
#![forbid(unsafe_code)]

mod board;
mod buffers;
mod choice;
mod claims;
mod disk;
mod ends;
mod failure;
mod far;
mod fate;
mod fault;
mod flush;
mod gather;
mod home;
mod in_order;
mod incoming;
mod journal;
mod landing;
mod lane;
mod limit;
mod meter;
mod naming;
mod patterns;
mod pending;
mod read;
mod receive;
mod room;
mod said;
mod send;
mod session;
mod slots;
mod spot;
mod sync;
mod through;
mod version;
mod walk;

#[cfg(test)]
mod tests;

pub use choice::{Choice, Patterns};
pub use claims::{Claimant, Claims};
pub use ends::{Options, SMALL};
pub use failure::{Fatal, kind, kind_of_file};
pub use far::{Far, SERVICE, attend};
pub use journal::{Content, Held, Known, NotHeld, State, Unfinished, unfinished};
pub use landing::Descriptors;
pub use meter::{End, Meter, Tally, Told, TooMany};
pub use patterns::{Allowed, Asked, in_store, is_home, is_pattern, is_users_home};
pub use read::ReadSource;
pub use session::{LostConnection, Order, Refused, Session};
pub use through::Terms;
pub use walk::Roots;

use ends::{Ends, kind_of};
