//! A client of HTTP/1.1 (RFC 9110, RFC 9112) for downloads: `GET`, ranges, redirects, proxies, TLS.
//!
//! A [`Source`] is a file on one server. Its first answer has an [`Offer`]: the size, the version, and whether the server
//! sends ranges. Every later answer is compared with the offer before a byte of it is used, so that parts of two versions are
//! never mixed.
//!
//! A [`Client`] sends requests for a [`Place`]: a URL, and the URL that its redirects lead to. An [`Answer`] has the [`Head`]
//! of the response, and the [`Connection`] from which the caller reads the body. A connection carries one request after the
//! other. Calls block. Every fifth of a second a connection that waits for bytes checks whether its [`Stop`] is set.
//! hyper writes requests and reads answers. The sockets, TLS and the limits of all waits are of this crate. Each connection has
//! a runtime of its own, which runs on the thread that waits.
//! Not in this crate: requests with a body, pipelining, HTTP/2.
#![forbid(unsafe_code)]

mod attempts;
mod client;
mod connection;
mod cookies;
mod dial;
mod digest;
mod exchange;
mod fault;
mod head;
mod idle;
mod name;
mod netrc;
mod offer;
mod proxy;
mod range;
mod reading;
mod secrets;
mod source;
#[cfg(test)]
mod testing;
mod tls;
mod url;
mod wire;

pub use attempts::{Attempts, Waited};
pub use client::{Answer, Client, NamedBy, Part, Place, Settings, Turn};
pub use connection::Connection;
pub use cookies::{Cookies, CookiesError};
pub use digest::{Digest, Function};
pub use fault::Fault;
pub use head::Head;
pub use hikyaku_tcp::Grants;
pub use hyper::body::Bytes;
pub use idle::Parked;
pub use name::{name, usable};
pub use netrc::Netrc;
pub use offer::{Known, Offer, Parts, Proof, Version};
pub use proxy::{Proxies, Unusable};
pub use range::ContentRange;
pub use reading::{head_of, read_anything};
pub use secrets::SecretsError;
pub use source::{First, Source};
pub use url::{Login, Origin, Url, UrlError, decoded};
pub use wire::Stop;
