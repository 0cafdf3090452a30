//! A copy between two hikyaku programs. One end reads the sources and sends, the other receives and writes. Either of them may
//! be the one that has connected.
//!
//! The near end, which has the user, starts a far side with [`Far`], gives it an [`Order`], and does the opposite with its
//! [`Session`]: [`Session::send`], [`Session::receive`], or [`Session::through`] between two far sides. The far side is
//! [`attend`]. Both count in a [`Meter`](hikyaku_job::Meter), which the near end shows. The receiver keeps a journal, with which
//! the next attempt continues.
#![forbid(unsafe_code)]

mod board;
mod buffers;
mod disk;
mod ends;
mod error;
mod failure;
mod far;
mod fault;
mod flush;
mod gather;
mod home;
mod in_order;
mod incoming;
mod landing;
mod lane;
mod limit;
mod naming;
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
mod threads;
mod through;
mod version;
mod walk;

#[cfg(test)]
mod tests;

pub use ends::{Options, SMALL};
pub use error::PairError;
pub use failure::Fatal;
pub use far::{Far, SERVICE, attend};
pub use landing::Descriptors;
pub use read::ReadSource;
pub use session::{LostConnection, Order, Refused, Session};
pub use through::Terms;
pub use walk::Roots;

use ends::{Ends, kind_of};
