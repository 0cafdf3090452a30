//! Everything that holds files, by what a user writes for it.
//!
//! A [`Location`] is what a user has written, and [`open()`] opens it as one or several stores. [`Storage`] is a connection that
//! serves several locations. This crate is the only one that knows all kinds of storage.
#![forbid(unsafe_code)]

mod cookies;
mod host;
mod location;
mod open;
mod union;

pub use cookies::CookiesArgs;
pub use hikyaku_http::Cookies;
pub use hikyaku_reach::dial::Ending;
pub use host::{Host, HostBy, HostPlan, Native, SFTP};
pub use location::{
    BadFtp, FtpPath, FtpScheme, GfarmPath, Location, LocationError, Remote, S3Path,
};
pub use open::{
    Directories, Fallback, HasAll, Holder, HostOptions, OpenError, Opened, Opening, Storage, Times,
    code_of, open,
};
