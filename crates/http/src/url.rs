//! URLs of `http` and `https` (RFC 3986), as far as a download needs them.
//!
//! One parsed host is the host of the connection, the value of `Host`, and the name in the certificate, so that they cannot
//! differ. Hosts are ASCII: an international name is written in its `xn--` form.

use hikyaku_forward::Scheme;
use std::fmt;
use std::net::Ipv6Addr;

/// Octets of a URL at most.
const URL_BYTES_MAX: usize = 16 << 10;

/// A name and password. Not printed by `Debug`.
#[derive(Clone, PartialEq, Eq)]
pub struct Login {
    /// The user.
    pub user: String,
    /// The password.
    pub password: String,
}

/// Scheme, host and port: the scope of credentials and of a connection.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Origin {
    /// The protocol.
    pub scheme: Scheme,
    /// In lower case, an IPv6 address without brackets.
    pub host: String,
    /// The TCP port.
    pub port: u16,
}

/// A URL. `Display` shows neither credentials nor the query, which may be a signature.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Url {
    /// Scheme, host and port.
    pub origin: Origin,
    /// Path and query, beginning with a slash. Octets that must not be part of a request are percent-encoded.
    pub target: String,
    /// The login in front of the host.
    pub login: Option<Login>,
}

/// A text is not a URL that this client can use.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum UrlError {
    /// Another scheme, or none.
    #[error("is neither an http:// nor an https:// URL")]
    Scheme,
    /// An invalid host.
    #[error("has no valid host: names are ASCII (xn--...), IPv6 addresses are in brackets")]
    Host,
    /// An invalid port.
    #[error("has no valid port")]
    Port,
    /// Too long.
    #[error("is longer than 16 KiB")]
    Long,
}

impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Login")
    }
}

impl Origin {
    /// The value of `Host`. It has the port unless that is the scheme's own.
    pub fn authority(&self) -> String {
        let host = self.bracketed();
        if self.port == self.scheme.port() { host } else { format!("{host}:{}", self.port) }
    }

    /// Host and port in the form of CONNECT.
    pub fn host_and_port(&self) -> String {
        format!("{}:{}", self.bracketed(), self.port)
    }

    fn bracketed(&self) -> String {
        if self.host.contains(':') { format!("[{}]", self.host) } else { self.host.clone() }
    }
}

impl Url {
    /// Parses a URL.
    ///
    /// # Errors
    ///
    /// It is not a URL that this client can use.
    // fuzz: web
    pub fn parse(text: &str) -> Result<Self, UrlError> {
        if text.len() > URL_BYTES_MAX {
            return Err(UrlError::Long);
        }
        let (scheme, rest) = text.split_once("://").ok_or(UrlError::Scheme)?;
        let scheme = Scheme::parse(scheme).ok_or(UrlError::Scheme)?;
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (authority, target) = rest.split_at(end);
        // Other readers treat a backslash as a slash, and would find another host.
        if !authority.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'\\') {
            return Err(UrlError::Host);
        }
        let (login, address) = match authority.rsplit_once('@') {
            Some((login, address)) => (Some(login_of(login)), address),
            None => (None, authority),
        };
        let (host, port) = host_and_port(address, scheme.port())?;
        Ok(Self { origin: Origin { scheme, host, port }, target: encoded(target), login })
    }

    /// The URL of `location` in an answer from this URL (RFC 3986, section 5). It never has credentials.
    ///
    /// # Errors
    ///
    /// It is not a URL that this client can use.
    // fuzz: web
    pub fn join(&self, location: &str) -> Result<Self, UrlError> {
        let location = location.trim();
        if location.len() > URL_BYTES_MAX {
            return Err(UrlError::Long);
        }
        let first = location.find([':', '/', '?', '#']).map(|at| location.as_bytes()[at]);
        let whole = match first {
            Some(b':') => Some(location.to_owned()),
            _ if location.starts_with("//") => {
                Some(format!("{}:{location}", self.origin.scheme.name()))
            }
            _ => None,
        };
        if let Some(whole) = whole {
            return Ok(Self { login: None, ..Self::parse(&whole)? });
        }
        let path = self.target.split('?').next().unwrap_or("/");
        let location = location.split('#').next().unwrap_or("");
        let target = match location.as_bytes().first() {
            None => self.target.clone(),
            Some(b'?') => format!("{path}{location}"),
            Some(b'/') => location.to_owned(),
            Some(_) => {
                let folder = path.rfind('/').map_or("/", |at| &path[..=at]);
                format!("{folder}{location}")
            }
        };
        let (path, query) = match target.split_once('?') {
            Some((path, query)) => (path, Some(query)),
            None => (target.as_str(), None),
        };
        let mut target = without_dots(path);
        if let Some(query) = query {
            target.push('?');
            target.push_str(query);
        }
        Ok(Self { origin: self.origin.clone(), target: encoded(&target), login: None })
    }

    /// The directory of its path, without the query.
    #[must_use]
    pub fn dir(&self) -> Self {
        let path = self.target.split('?').next().unwrap_or("/");
        let target = path.rfind('/').map_or("/", |at| &path[..=at]).to_owned();
        Self { target, ..self.clone() }
    }

    /// The URL of a path below this one, which ends in a slash. Every octet but letters, digits and `-._~/` is
    /// percent-encoded.
    #[must_use]
    pub fn below(&self, path: &[u8]) -> Self {
        let mut target = self.target.clone();
        for &byte in path {
            match byte {
                b'-' | b'.' | b'_' | b'~' | b'/' => target.push(byte.into()),
                byte if byte.is_ascii_alphanumeric() => target.push(byte.into()),
                byte => target.push_str(&format!("%{byte:02X}")),
            }
        }
        Self { target, ..self.clone() }
    }

    /// The last part of the path, decoded. Empty if the path ends in a slash.
    pub fn file_name(&self) -> Vec<u8> {
        let path = self.target.split('?').next().unwrap_or("");
        decoded(path.rsplit('/').next().unwrap_or(""))
    }
}

impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (path, has_query) = match self.target.split_once('?') {
            Some((path, _)) => (path, true),
            None => (self.target.as_str(), false),
        };
        let query = if has_query { "?..." } else { "" };
        write!(f, "{}://{}{path}{query}", self.origin.scheme.name(), self.origin.authority())
    }
}

fn login_of(text: &str) -> Login {
    let (user, password) = text.split_once(':').unwrap_or((text, ""));
    let text = |text: &str| String::from_utf8_lossy(&decoded(text)).into_owned();
    Login { user: text(user), password: text(password) }
}

fn host_and_port(text: &str, default: u16) -> Result<(String, u16), UrlError> {
    let (host, port) = match text.strip_prefix('[') {
        Some(rest) => {
            let (host, rest) = rest.split_once(']').ok_or(UrlError::Host)?;
            let address: Ipv6Addr = host.parse().map_err(|_| UrlError::Host)?;
            let port = match rest {
                "" => "",
                rest => rest.strip_prefix(':').ok_or(UrlError::Host)?,
            };
            (address.to_string(), port)
        }
        None => {
            let (host, port) = text.split_once(':').unwrap_or((text, ""));
            let is_name = |c: char| c.is_ascii_alphanumeric() || "-._".contains(c);
            if host.is_empty() || host.len() > 253 || !host.chars().all(is_name) {
                return Err(UrlError::Host);
            }
            (host.to_ascii_lowercase(), port)
        }
    };
    if port.is_empty() {
        return Ok((host, default));
    }
    let is_number = port.bytes().all(|digit| digit.is_ascii_digit());
    let port = port.parse().ok().filter(|&port| is_number && port != 0);
    Ok((host, port.ok_or(UrlError::Port)?))
}

/// Path and query with a slash before them and without a fragment. Octets that must not be part of a request are
/// percent-encoded. Encoded octets stay.
fn encoded(target: &str) -> String {
    let target = target.split('#').next().unwrap_or("");
    let mut text = String::with_capacity(target.len() + 1);
    if !target.starts_with('/') {
        text.push('/');
    }
    for byte in target.bytes() {
        if byte.is_ascii_graphic() && !b"\"<>\\^`{|}".contains(&byte) {
            text.push(byte.into());
        } else {
            text.push_str(&format!("%{byte:02X}"));
        }
    }
    text
}

/// Percent-decodes a text. Invalid codes stay.
// fuzz: web
pub fn decoded(text: &str) -> Vec<u8> {
    let bytes = text.as_bytes();
    let (mut plain, mut at) = (Vec::with_capacity(bytes.len()), 0);
    let digit = |at: usize| bytes.get(at).and_then(|&byte| char::from(byte).to_digit(16));
    while let Some(&byte) = bytes.get(at) {
        match (byte, digit(at + 1), digit(at + 2)) {
            (b'%', Some(high), Some(low)) => {
                plain.push((high * 16 + low) as u8);
                at += 3;
            }
            _ => {
                plain.push(byte);
                at += 1;
            }
        }
    }
    plain
}

/// RFC 3986, section 5.2.4, for a path that begins with a slash.
fn without_dots(path: &str) -> String {
    let mut kept: Vec<&str> = Vec::new();
    let parts: Vec<&str> = path.split('/').skip(1).collect();
    for (at, part) in parts.iter().enumerate() {
        let is_last = at + 1 == parts.len();
        match *part {
            "." | ".." => {
                if *part == ".." {
                    kept.pop();
                }
                if is_last {
                    kept.push("");
                }
            }
            part => kept.push(part),
        }
    }
    format!("/{}", kept.join("/"))
}

#[cfg(test)]
mod tests;
