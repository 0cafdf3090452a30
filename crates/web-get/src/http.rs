//! A client of HTTP/1.1 (RFC 9110, RFC 9112) for downloads: `GET`, ranges, redirects, proxies, TLS.
//!
//! A [`Connection`](connection::Connection) carries one request after the other. It is blocking, and looks every fifth of
//! a second whether it has to stop. `httparse` parses the heads of responses; bodies are read here, straight into the
//! caller's buffer. Not in it: requests with a body, pipelining, cookies, HTTP/2.

pub(crate) mod body;
pub(crate) mod client;
pub(crate) mod connection;
pub(crate) mod fault;
pub(crate) mod head;
pub(crate) mod proxy;
pub(crate) mod range;
pub(crate) mod tls;
pub(crate) mod url;
pub(crate) mod wire;
