//! A session with a far end: starts `hikyaku` on another machine through the user's `ssh`, connects to it over UDP or
//! through the channel of ssh, and watches both.
//!
//! The near side opens a [`Way`]; what comes of it is [`Reached`]. The far side is [`serve`]. Within one machine the
//! far side is a thread ([`here`]). What the two ends then say to each other is the application's: this crate knows
//! services by their names only ([`Service`]).
#![forbid(unsafe_code)]

mod carrier;
mod children;
mod destination;
mod far;
mod hello;
mod local;
mod meet;
mod near;
mod observer;
mod service;
mod speaks;
mod ssh;
mod start;
mod tuning;
mod watch;

pub use carrier::{
    Carried, Connection, Held, ObjectReceiver, ObjectSender, Packets, ReceiveHalf, Seen, SendHalf,
    Stream,
};
pub use children::Children;
pub use destination::{BadDestination, Destination, unescape};
pub use far::{Arrival, ServeError, serve};
pub use hello::{Greeting, Hello, NoHello, NoStart, Start};
pub use local::here;
pub use meet::{DoorError, Invitation, MeetError};
pub use near::{Carriers, FarSide, ReachError, Reached, Way};
pub use observer::Observer;
pub use service::{PathMemory, Service};
pub use speaks::{Agreed, PROTOCOL, Speaks, Versions};
pub use ssh::{BadRemotePath, Family, SshOptions, is_harmless};
pub use start::SshFailed;
pub use tuning::Tuning;
pub use watch::{Fate, GONE, Gone};
