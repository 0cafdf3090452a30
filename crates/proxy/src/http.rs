//! An HTTP proxy (RFC 9110, RFC 9112): tunnels (CONNECT), and requests for `http://` addresses.
//!
//! A connection of a program carries one request: its head is read here, and rewritten for the server, with
//! `Connection: close`. The rest of the request and the whole response pass as they are. A request for another protocol
//! (`Upgrade`, as WebSocket has it) passes with that wish, and what the server answers is read (`upgrade`).

mod body;
#[cfg(test)]
mod tests;
mod upgrade;

pub(crate) use body::Body;
pub(crate) use upgrade::{Switch, Upgraded};

use crate::limits::HEAD_BYTES_MAX;
use hikyaku_forward::{Answer, Host, Target, Verdict};
use httparse::{Header, Request, Status};

/// A request that was read.
#[derive(Debug)]
pub(crate) struct Asked {
    /// Where its server is.
    pub(crate) target: Target,
    /// The same for people: an address of the web, or a host and a port.
    pub(crate) shown: String,
    /// What the server gets in place of the head; empty for a tunnel.
    pub(crate) head: Vec<u8>,
    /// Bytes of the head as it came.
    pub(crate) length: usize,
    /// How far the request goes behind its head.
    pub(crate) body: Body,
    /// Whether it asks for a tunnel.
    pub(crate) kind: Kind,
}

/// What a request asks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    /// Bytes both ways (CONNECT).
    Tunnel,
    /// A response.
    Request,
}

/// Why a request is not carried: the status and a text for the user.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Bad(pub(crate) u16, pub(crate) &'static str);

/// Headers of a request at most.
const HEADERS_MAX: usize = 128;
/// Headers that concern this connection only (RFC 9110, section 7.6.1). `Transfer-Encoding` is not among them: the body
/// passes as it is.
const HOP_BY_HOP: [&str; 6] =
    ["connection", "proxy-connection", "keep-alive", "proxy-authorization", "te", "upgrade"];

const NO_PROXY_REQUEST: &str =
    "this is an HTTP proxy: set it as the proxy of a program, and do not ask it for pages itself";
const BAD_HEAD: &str = "the request cannot be understood";
const BAD_TARGET: &str = "the address of the request cannot be understood";
const BAD_LENGTH: &str = "the length of the request is not clear";

/// Reads a head; `None` if more of it is to come.
// fuzz: forward
pub(crate) fn read_head(bytes: &[u8]) -> Result<Option<Asked>, Bad> {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut request = Request::new(&mut headers);
    let length = match request.parse(bytes) {
        Ok(Status::Complete(length)) => length,
        Ok(Status::Partial) if bytes.len() < HEAD_BYTES_MAX => return Ok(None),
        Ok(Status::Partial) | Err(httparse::Error::TooManyHeaders) => {
            return Err(Bad(431, "the head of the request is too long"));
        }
        Err(_) => return Err(Bad(400, BAD_HEAD)),
    };
    let (Some(method), Some(address), Some(version)) =
        (request.method, request.path, request.version)
    else {
        return Err(Bad(400, BAD_HEAD));
    };
    if method == "CONNECT" {
        let target = authority(address, None).ok_or(Bad(400, BAD_TARGET))?;
        let (head, body, shown) = (Vec::new(), Body::Everything, target.to_string());
        return Ok(Some(Asked { target, shown, head, length, body, kind: Kind::Tunnel }));
    }
    let (authority_text, path) = absolute(address)?;
    let target = authority(authority_text, Some(80)).ok_or(Bad(400, BAD_TARGET))?;
    let body = body_of(request.headers)?;
    let upgrade =
        upgrade::wish(request.headers).filter(|_| version == 1 && body == Body::Length(0));
    let line = format!("{method} {path} HTTP/1.{version}\r\nHost: {authority_text}\r\n");
    let mut head = line.into_bytes();
    for header in request.headers.iter().filter(|header| goes_on(header, request.headers)) {
        head.extend_from_slice(header.name.as_bytes());
        head.extend_from_slice(b": ");
        head.extend_from_slice(header.value);
        head.extend_from_slice(b"\r\n");
    }
    head.extend_from_slice(b"Via: 1.1 hikyaku\r\n");
    let body = match upgrade {
        Some(protocols) => {
            let wish = [b"Connection: upgrade\r\nUpgrade: ", &*protocols, b"\r\n\r\n"];
            head.extend(wish.concat());
            Body::Switched
        }
        None => {
            head.extend_from_slice(b"Connection: close\r\n\r\n");
            body
        }
    };
    let shown = address.to_owned();
    Ok(Some(Asked { target, shown, head, length, body, kind: Kind::Request }))
}

/// Divides `http://authority/path`.
fn absolute(address: &str) -> Result<(&str, String), Bad> {
    let scheme = address.get(..7).filter(|scheme| scheme.eq_ignore_ascii_case("http://"));
    let Some(scheme) = scheme else {
        return Err(match address.contains("://") {
            true => Bad(400, "only http:// addresses are asked for so; others need CONNECT"),
            false => Bad(400, NO_PROXY_REQUEST),
        });
    };
    let rest = &address[scheme.len()..];
    let end = rest.find(['/', '?']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    let slash = if path.starts_with('/') { "" } else { "/" };
    Ok((authority, format!("{slash}{path}")))
}

/// Reads `host:port`; without a port it is `usual`, if there is one.
fn authority(text: &str, usual: Option<u16>) -> Option<Target> {
    let after_address = text.rfind(']').map_or(0, |at| at + 1);
    let (host, port) = match text[after_address..].rfind(':') {
        Some(colon) => {
            let (host, port) = text.split_at(after_address + colon);
            (host, port[1..].parse::<u16>().ok().filter(|&port| port != 0)?)
        }
        None => (text, usual?),
    };
    // An address with colons has brackets here, or it could be read in two ways.
    let host = Host::parse(host).ok().filter(|_| host.starts_with('[') || !host.contains(':'))?;
    Some(Target { host, port })
}

/// Whether a header is for the server.
fn goes_on(header: &Header<'_>, all: &[Header<'_>]) -> bool {
    let is = |name: &str| header.name.eq_ignore_ascii_case(name);
    let is_named =
        names_of_connection(all).any(|name| name.eq_ignore_ascii_case(header.name.as_bytes()));
    // What says where the body ends is never left out.
    let is_framing = is("content-length") || is("transfer-encoding");
    is_framing || !(is("host") || is_named || HOP_BY_HOP.into_iter().any(is))
}

/// What the `Connection` headers name.
fn names_of_connection<'a>(all: &'a [Header<'_>]) -> impl Iterator<Item = &'a [u8]> {
    let is = |header: &&Header<'_>| header.name.eq_ignore_ascii_case("connection");
    all.iter()
        .filter(is)
        .flat_map(|header| header.value.split(|byte| *byte == b','))
        .map(<[u8]>::trim_ascii)
}

/// How far the body goes. A request whose length can be read in two ways is refused (RFC 9112, section 6.3): this
/// program and the server could disagree on where the next request begins.
fn body_of(headers: &[Header<'_>]) -> Result<Body, Bad> {
    let values = |name: &'static str| {
        let of_name = move |header: &&Header<'_>| header.name.eq_ignore_ascii_case(name);
        headers.iter().filter(of_name).map(|header| header.value.trim_ascii())
    };
    let (codings, mut lengths) = (values("transfer-encoding"), values("content-length"));
    let codings: Vec<&[u8]> = codings.collect();
    match (codings.as_slice(), lengths.next()) {
        ([], None) => Ok(Body::Length(0)),
        ([], Some(length)) => {
            let text = std::str::from_utf8(length).ok();
            let digits = text.filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
            let number = digits.and_then(|text| text.parse().ok());
            let same = lengths.all(|other| other == length);
            number.filter(|_| same).map(Body::Length).ok_or(Bad(400, BAD_LENGTH))
        }
        ([coding], None) if coding.eq_ignore_ascii_case(b"chunked") => Ok(Body::chunked()),
        _ => Err(Bad(400, BAD_LENGTH)),
    }
}

/// The response to CONNECT.
pub(crate) fn reply_to_connect(answer: &Answer) -> Vec<u8> {
    match answer.verdict {
        Verdict::Connected => b"HTTP/1.1 200 Connection established\r\n\r\n".to_vec(),
        _ => reply_to_request(answer),
    }
}

/// The response to a request that is not carried; nothing if it is, because the server responds.
pub(crate) fn reply_to_request(answer: &Answer) -> Vec<u8> {
    let status = match answer.verdict {
        Verdict::Connected => return Vec::new(),
        Verdict::Refused
        | Verdict::NetworkUnreachable
        | Verdict::HostUnreachable
        | Verdict::NameNotFound
        | Verdict::NotUnderstood => 502,
        Verdict::TimedOut => 504,
        Verdict::NotAllowed => 403,
        Verdict::OutOfResources => 503,
    };
    response(status, &answer.to_string())
}

/// A response of this program.
pub(crate) fn response(status: u16, text: &str) -> Vec<u8> {
    let (reason, more) = match status {
        400 => ("Bad Request", ""),
        403 => ("Forbidden", ""),
        408 => ("Request Timeout", ""),
        431 => ("Request Header Fields Too Large", ""),
        502 => ("Bad Gateway", ""),
        503 => ("Service Unavailable", "Retry-After: 5\r\n"),
        _ => ("Gateway Timeout", ""),
    };
    let text = format!("hikyaku proxy: {text}\n");
    format!(
        "HTTP/1.1 {status} {reason}\r\n{more}Content-Type: text/plain; charset=utf-8\r\n\
         X-Content-Type-Options: nosniff\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{text}",
        text.len()
    )
    .into_bytes()
}
