//! Moves files between stores: this program reads any sources, one or many servers at once, and writes any targets.
//!
//! [`census()`] asks all servers what they have; a file that several have with the same size and time has several
//! replicas. [`fetch()`] gets every file from whichever servers have it, splits large ones among them, and takes work away
//! from servers that are slow or gone. Every byte is proven by its server's hash before it is written, and a file gets its
//! name when all of it is on the disk of its store, which may be any. [`upload()`] sends whole files of any
//! source, each to one of several servers.
//!
//! [`Session`] has all of this for programs: it connects to the servers once, and then files go in both directions until it
//! is stopped.
//!
//! A server is whatever has a [`Fetcher`](hikyaku_store::Fetcher): a daemon of ours, a node of a Gfarm file system, or one of the
//! requests at once to a store that this machine reads itself. For a Gfarm file system, gfmd tells what the nodes have
//! ([`gfarm_census`]), and it proves that the bytes are of one content.
#![forbid(unsafe_code)]

mod above;
mod blocked;
mod bottleneck;
mod census;
mod choice;
mod dress;
mod fetch;
mod in_order;
mod kind;
mod layout;
mod links;
mod losses;
mod many;
mod meter;
mod plan;
mod session;
mod target;
mod upload;
mod watch;

#[cfg(test)]
mod tests;

pub use census::{
    Behind, Census, Claims, File, LeftOut, ServerId, Why, census, gfarm_census, stored_census,
};
pub use choice::{Choice, InTheWay, Link, Same};
pub use dress::{DirMeta, DirState, Dress, Times};
pub use fetch::{
    AfterFailure, Epoch, Expected, FetchError, Fetched, Hashes, Job, Pool, ReadAt, Redial, Taking,
    Tuning, Writing, fetch,
};
pub use hikyaku_remote::Seen;
pub use hikyaku_transfer::{Depth, Existing, Links, Pass};
pub use kind::Kind;
pub use layout::{AtTarget, Meant, NoPlace, Renamed, TargetLayout, Written};
pub use losses::Loss;
pub use meter::{Meter, OnFile, ServerMeter};
pub use plan::Plan;
pub use session::{
    ClientParameters, Destination, Done, Download, Failed, GONE_MAX, Held, HostError, HostState,
    HostStatus, Landed, Listed, Met, Modes, NamedSource, Origin, Parameters, ServerParameters,
    Session, SessionError, Setup, Several, Sources, Streams, Target, Together, Up, Upload,
    local_target, named, remote_path,
};
pub use target::{Growth, RESUME};
pub use upload::{Counted, Source, UploadJob, upload};
pub use watch::{Direction, Watch};
