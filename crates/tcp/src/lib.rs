//! TCP sockets whose buffers and congestion control are chosen, and what the kernel knows of a connection.
//!
//! [`connect`] and [`listen`] set the options before the handshake, because the kernel derives the window scale of a
//! connection from the size of its receive buffer when it sends or answers the SYN. [`connect_first`] tries the addresses of a
//! host a little after each other. [`Grants`] counts the connections to each server, and knows how many it grants. [`info()`] reads `TCP_INFO`
//! (tcp(7)). The streams are those of `std`.
//!
//! [`Diag`] sees the queues of any socket of this machine, and [`file_pages()`] those of a file in the kernel's cache: the
//! buffers through which a download of another program passes. [`was_closed()`] knows which of the standard descriptors a shell
//! has left out.

mod addresses;
mod congestion;
mod diag;
mod file_pages;
mod grants;
mod info;
mod queue;
mod race;
mod socket;
mod standard;
mod transparent;
mod unsent;

pub use addresses::{Family, addresses};
pub use congestion::{ControlError, check_control, control_of, default_control, set_control};
pub use diag::{Diag, Queues};
pub use file_pages::{FilePages, file_pages, start_write_back};
pub use grants::{GrantMemory, Grants, NoPlace, Others, Place};
pub use info::{Info, info};
pub use queue::unacknowledged;
pub use race::{ATTEMPT_DELAY, Won, connect_first, in_turn};
pub use socket::{Buffers, ConnectError, Options, buffers, connect, listen, reset};
pub use standard::{Standard, was_closed};
pub use transparent::set_transparent;
pub use unsent::limit_unsent;
