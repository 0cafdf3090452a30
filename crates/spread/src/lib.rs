//! The scheduler of one-to-many transfers: which server sends which range of which file, and where uploads go.
//!
//! [`Spread`] receives servers, files with their replicas, arrivals, proofs and failures. It returns
//! commands: request ranges of a server, take unsent work back, limit a rate, try a server again, a file is done. It owns
//! no connection and reads no clock, so a transfer of thirteen servers is a seeded computation in its tests. All sizes
//! are in bytes, and ranges lie along segments of 1 MiB, the unit in which a copy proves what has arrived.
//!
//! How it decides:
//!
//! 1. Files with the same set of replicas are one *group*: 78 for 13 servers and two replicas.
//! 2. A *plan* has the bytes of each group that a server should send, so that the last byte arrives as early as
//!    possible: a maximum flow from servers to groups (`flow`). It is made twice a second, and when a rate has changed
//!    by a quarter, but at most ten times a second. Above 512 groups there is none, and servers take from the group
//!    whose living replicas are the slowest together.
//! 3. The server that is idle first takes a *piece* of the group of which the plan allots it most: what it sends in
//!    0.25 s, from 1 to 64 MiB. It has at most its round trip and 0.5 s of work. It leaves a piece that it would not be
//!    done with until the planned end to the others if they are done sooner with all that is left.
//! 4. A rate is that of the last second with work. A new server counts as 2 MB/s.
//! 5. A server with more than its round trip and 1 s of work gives the unsent part back.
//! 6. An idle server takes over a share of the unsent work of the slowest one, if that needs more than two round trips
//!    and 0.2 s. The shares are such that both end together. A segment that is under way there is taken over as well if it
//!    is done sooner by half. The caller may leave the bytes that came before out of the new request
//!    ([`Spread::handle_left_out`]).
//! 7. A server that has work and sends nothing for 2 s, or four round trips, is *quiet*: others get its work. After 5,
//!    10, 20, 40 and then every 60 s it is asked for one segment, as a copy. Any byte of it makes it a server again.
//!    After a gap in the caller's own clock, such as a suspended machine, no server is called quiet for 2 s.
//! 8. Within a group a server goes on with its file, then takes small files in a batch, then the next whole file. A
//!    file has two servers only if no whole one is left.
//!
//! With [`Asking::Pieces`] each server has one piece of a fixed size at a time, and rules 6 and 7 do not hold. With
//! [`Asking::Ranges`] it has one range at a time, and rules 5 and 7 do not hold: what it sends in 4 s or 20 round trips, and in
//! two thirds of the time until the planned end; the only server of a file has all of it. Rule 6 counts the handshake and the
//! slow start of a connection whose last range was cut, and leaves the segment under way alone unless it is done three times
//! sooner.
//!
//! Connections to one server can be a *pool*, of which a number is awake ([`Spread::wake`]). The others rest: they get no
//! work until one that is awake is lost, or until more are to be awake.
//!
//! [`divide`] divides a rate ceiling among servers. [`Placer`] chooses the targets of uploads.
//!
//! The scheduler does not know whether two replicas are equal, does not write, and does not name files. The caller
//! sends the version of a file with each ask and reports [`Spread::handle_void`] if a server has another one.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod ask;
mod ceiling;
mod command;
mod flow;
mod ids;
mod meter;
mod place;
mod segments;
mod server;
mod settings;
mod spread;
mod stock;

pub use ceiling::{Demand, divide};
pub use command::{Command, Wake, WakeReason, Work};
pub use ids::{AskId, FileId, PoolId, SERVERS_MAX, ServerId};
pub use place::{Candidate, PlaceError, Placement, Placer, Strain, Upload};
pub use segments::SEGMENT_BYTES;
pub use settings::{Asking, ServerSettings, Settings};
pub use spread::{AddFileError, Spread, Target, TooManyServersError};
