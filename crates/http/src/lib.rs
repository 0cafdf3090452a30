//! A client of HTTP/1.1 (RFC 9110, RFC 9112) for downloads: `GET`, ranges, redirects, proxies, TLS.
//!
//! A [`Client`] sends requests for a [`Place`]: a URL, and the URL that its redirects lead to. An [`Answer`] has the [`Head`]
//! of the response, and the [`Connection`] from which the caller reads the body. A connection carries one request after the
//! other. Calls block. Every fifth of a second a connection that waits for bytes checks whether its [`Stop`] is set.
//! `httparse` parses the heads of responses. Bodies are read into the caller's buffer. Not in this crate: requests with a
//! body, pipelining, cookies, HTTP/2.
#![forbid(unsafe_code)]

mod body;
mod client;
mod connection;
mod fault;
mod head;
mod netrc;
mod proxy;
mod range;
mod reading;
mod tls;
mod url;
mod wire;

pub use client::{Answer, Client, NamedBy, Part, Place, Settings};
pub use connection::Connection;
pub use fault::Fault;
pub use head::Head;
pub use netrc::{Netrc, NetrcError};
pub use proxy::{Proxies, Unusable};
pub use range::ContentRange;
pub use reading::read_anything;
pub use url::{Login, Origin, Url, UrlError, decoded};
pub use wire::Stop;
