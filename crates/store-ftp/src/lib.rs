//! A directory of a GridFTP or FTP server as a [`Store`](hikyaku_store::Store).
//!
//! Each operation takes a session ([`Channel`](hikyaku_gridftp::Channel)) of its own: one that waits for work, or a new one.
//! A file is read by one command from an offset on, and written beside its name until it is complete (`held`, `draft`). With
//! extended block mode parts of it go in any order over several data connections; in stream mode it goes in order.
//!
//! A server follows symbolic links in a path by itself, and FTP has no way to forbid it. A link is listed as a special file:
//! it is neither read nor entered. Replies to failures have a code for most reasons in common, so that the reason is looked
//! for after a failure. A file is recognized by its size and time, and by its identity if the server sends one.
#![forbid(unsafe_code)]

mod at_once;
mod batch;
mod chunker;
mod chunks;
mod convert;
mod draft;
mod fetcher;
mod ftp;
mod held;
mod lanes;
mod listing;
mod missing;
mod notes;
mod open;
mod reading;
mod sending;
mod sent;
mod steering;
mod store;
mod tuning;
mod uploads;
mod visit;
mod writing;

pub use batch::{Batch, Steps};
pub use chunker::{Attempt, Chunker, Counters, Move, Moving, Others, parts_from};
pub use chunks::{Foresight, Parts, Report};
pub use ftp::{Ftp, OpenError};
pub use missing::Missing;
pub use notes::Notes;
pub use reading::{Observer, Reading, Retry};
pub use steering::OnEpoch;
pub use tuning::{Connections, Limits};
pub use visit::{Enter, Item, Next, Visited};
pub use writing::{Condition, Names, NewModes, Sum, Writing};
