//! A connection to a far end, however it is reached: a program that is started on another machine through the user's
//! `ssh`, a thread of this machine, or a daemon at an address.
//!
//! Through ssh, the near side opens a [`Way`]; what comes of it is [`Reached`]. The far side is [`serve`]. Within one
//! machine the far side is a thread ([`here`]). [`dial`] connects to a daemon, and [`daemon`] agrees with it on a
//! service. [`launch`] starts daemons through ssh for one session. A [`Connection`] has streams and objects over UDP or over byte pipes, and [`talk()`] makes a conversation
//! of messages of a stream. What the two ends then say to each other is the application's: this crate knows services
//! by their names only ([`Service`]).
#![forbid(unsafe_code)]

mod asked;
mod blocked;
mod blocking;
pub mod bootstrap;
mod carrier;
mod child;
mod closed;
pub mod daemon;
mod destination;
pub mod dial;
mod far;
mod hello;
pub mod launch;
mod local;
mod meet;
mod near;
pub mod options;
mod pace;
mod race;
mod service;
pub mod settings;
mod several;
mod sftp_server;
mod shared_login;
mod speaks;
mod ssh;
mod start;
mod talk;
pub mod tcp;
mod tuning;
mod watch;
mod way_plan;

pub use asked::{Answer, Errors, NoAnswer, Question};
pub use blocking::{StreamReader, StreamWriter};
pub use carrier::{
    Carried, Connection, Held, Incoming, ObjectReceiver, ObjectSender, Packets, ReceiveHalf, Seen,
    SendHalf, Stream, Unread,
};
pub use child::ended;
pub use destination::{BadDestination, Destination, exit_code, unescape};
pub use far::{Arrival, ServeError, serve};
pub use hello::{Greeting, Hello, NoHello, NoStart, Start};
pub use local::here;
pub use meet::{DoorError, Invitation, MeetError};
pub use near::{Carriers, Commands, FarSide, ReachError, Reached, Way};
pub use service::{Loss, PathMemory, Readers, Service};
pub use several::for_each_host;
pub use sftp_server::{Login, NoSftp, SftpServer};
pub use shared_login::SharedLogin;
pub use speaks::{Agreed, PROTOCOL, Speaks, TIMES_ALONE, Versions};
pub use ssh::{
    BadRemotePath, Family, FamilyArgs, Letters, NO_CONNECTION, NOT_THERE, ScpArgs, SshArgs,
};
pub use ssh::{SshOptions, is_harmless, quoted};
pub use start::SshFailed;
pub use talk::{In, Out, TalkError, Writer, talk};
pub use tuning::Tuning;
pub use watch::{Fate, GONE, Gone};
pub use way_plan::WayPlan;
