//! A client of GridFTP and FTP servers.
//!
//! A [`Channel`] is a control connection with its data connections. It logs in, asks what the server can do, and moves
//! parts of files in extended block mode (MODE E of GFD.020) through any number of parallel data connections, in either
//! direction. The connections stay open between parts of the same direction. A server closes those of downloads when their
//! number changes; the number of an upload changes while it runs. The caller's [`Plan`] selects the parts, and may request
//! several before the first is complete: no round trip passes between them then.
//!
//! A server without MODE E is used in stream mode (RFC 959): one data connection carries one file, in order.
//!
//! In MODE E the sender of data connects. For a download this end listens, so the server must be able to connect to it. If it
//! cannot, downloads come in stream mode, for which this end connects.
//!
//! A server's words and blocks are checked before they are used: a line, a reply, a listing, the number of data
//! connections and the number of separate ranges of a part have limits, which stand beside the code that applies them. A
//! block outside the part that was asked for ends the transfer. Names of a listing are [`hikyaku_fs::Name`]s.
//!
//! It does not know what the files are for: the caller hands in a function that stores or supplies bytes at an offset.
#![forbid(unsafe_code)]

mod address;
mod base64;
mod bell;
mod block;
mod channel;
mod command;
mod control;
mod data;
mod error;
mod facts;
mod features;
mod gauge;
mod get;
mod gsi;
mod guard;
mod login;
mod names;
mod plan;
mod put;
mod ranges;
mod reading;
mod reply;
mod settings;
mod signatures;
mod times;
mod transfer;
mod unix_list;

pub use block::BlockError;
pub use channel::{Channel, Made, Mode, Rename};
pub use error::FtpError;
pub use facts::{EntryError, Facts, Kind, Listed};
pub use features::Features;
pub use gauge::{Gauged, Gauges};
pub use gsi::{Credentials, CredentialsError};
pub use guard::{Guard, GuardError, Privacy};
pub use login::{Login, Server};
pub use plan::{Plan, Store, Supply, Target, Traffic, Upload, Wanted};
pub use reading::read_anything;
pub use reply::{Reply, ReplyError, ReplyReader};
pub use settings::{DataHosts, Reach, Settings, Spoken, Stripes, Trace};
pub use transfer::{Part, Progress, Transferred};
