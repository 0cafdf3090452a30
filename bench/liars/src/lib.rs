//! Ends of a copy that lie, in both roles and on both sides, each as a process of its own: the honest end beside it
//! is `hikyaku cp` or `hikyaku serve` as users run it, over the channel of ssh and UDP on the loopback.
#![forbid(unsafe_code)]

mod door;
mod lies;
mod order;
mod peer;

pub use door::{Door, Far, WINDOW};
pub use lies::near::{Channel, Held, with_order};
pub use lies::receiver::SEGMENTS;
pub use lies::{Asked, Ends, Lie, find, greeting, near, receiver, sender};
pub use order::{Existing, Options, Order};
pub use peer::Peer;
