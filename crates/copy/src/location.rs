//! What scp's users write for a source or a target.

use hikyaku_console::Cluster;
use hikyaku_crypto::Fingerprint;
use hikyaku_fs::Shown;
use hikyaku_reach::dial::{Address, NotAnAddress, PORT};
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::num::NonZeroU16;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

/// A file or directory, here or elsewhere.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Location {
    /// On this machine.
    Local(PathBuf),
    /// On another one.
    Remote(Remote),
    /// On daemons.
    Servers(Servers),
}

/// A path on daemons, each of which may have parts of the same tree.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Servers {
    /// Where they listen.
    pub servers: Vec<Address>,
    /// The path below their roots.
    pub path: Vec<u8>,
    /// The keys of the servers, if the user gave them: each server has one of these.
    pub keys: Vec<Fingerprint>,
}

/// A path on another machine.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Remote {
    /// Whom to log in as, if it was said.
    pub user: Option<String>,
    /// The machine, as `ssh` is to be told.
    pub host: String,
    /// Where its `ssh` listens, if it was said (`scp://` only).
    pub port: Option<u16>,
    /// The path, relative to the home directory unless it begins with a slash; empty is the home
    /// directory itself.
    pub path: Vec<u8>,
}

/// What is wrong with what was written.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum LocationError {
    /// `ssh` would take it for an option.
    #[error("'{0}': a host or user name must not begin with '-'")]
    Option(String),
    /// Nothing before the colon.
    #[error("'{0}': the host's name is missing; write HOST:PATH, or ./{0} for a file of that name")]
    NoHost(String),
    /// A name that no host or user has.
    #[error("'{0}': not a name of a host or user")]
    BadName(String),
    /// Not a port.
    #[error("'{0}': not a port, which is a number from 1 to 65535")]
    BadPort(String),
    /// Not an address of a daemon.
    #[error(transparent)]
    BadAddress(#[from] NotAnAddress),
    /// A `%` without two hexadecimal digits.
    #[error("'{0}': a '%' in a scp:// address stands before two hexadecimal digits")]
    BadEscape(String),
}

const SCHEME: &[u8] = b"scp://";
/// Of daemons: `hikyaku://HOST[:PORT][,HOST[:PORT]...]/PATH`.
const DAEMON_SCHEME: &[u8] = b"hikyaku://";

impl Location {
    /// Reads `[USER@]HOST:PATH`, `scp://[USER@]HOST[:PORT][/PATH]` or a local path. A colon behind a
    /// slash is part of a local name, and so is one that comes first.
    // fuzz: lines
    pub fn parse(text: &OsStr) -> Result<Self, LocationError> {
        let bytes = text.as_bytes();
        if let Some(rest) = bytes.strip_prefix(SCHEME) {
            return parse_uri(bytes, rest).map(Self::Remote);
        }
        if let Some(rest) = bytes.strip_prefix(DAEMON_SCHEME) {
            return parse_servers(rest).map(Self::Servers);
        }
        match host_end(bytes) {
            None => Ok(Self::Local(PathBuf::from(text))),
            Some(colon) => {
                let (user, host) = login(bytes, &bytes[..colon])?;
                let path = bytes[colon + 1..].to_vec();
                Ok(Self::Remote(Remote { user, host, port: None, path }))
            }
        }
    }
}

impl Remote {
    /// `USER@HOST`, as `ssh` takes it.
    pub fn login(&self) -> String {
        match &self.user {
            Some(user) => format!("{user}@{}", self.host),
            None => self.host.clone(),
        }
    }

    /// The path for the far side's file system.
    pub fn os_path(&self) -> OsString {
        OsString::from_vec(self.path.clone())
    }
}

// fuzz: lines
fn parse_servers(rest: &[u8]) -> Result<Servers, LocationError> {
    let slash = rest.iter().position(|&byte| byte == b'/').unwrap_or(rest.len());
    let (hosts, path) = rest.split_at(slash);
    let path = path.strip_prefix(b"/").unwrap_or(path);
    let path = path.strip_suffix(b"/").unwrap_or(path);
    let hosts = String::from_utf8_lossy(hosts);
    let servers = hosts.split(',').map(str::parse).collect::<Result<_, _>>()?;
    Ok(Servers { servers, path: path.to_vec(), keys: Vec::new() })
}

impl Servers {
    /// The path `CLUSTER:PATH`, where the user's settings have such a cluster.
    pub(crate) fn of_cluster(cluster: &Cluster, path: &[u8]) -> Self {
        let port = cluster.port.map_or(PORT, NonZeroU16::get);
        let address = |host: &String| Address { host: host.clone(), port };
        let path = path.strip_prefix(b"/").unwrap_or(path);
        let path = path.strip_suffix(b"/").unwrap_or(path).to_vec();
        let servers = cluster.hosts.iter().map(address).collect();
        Self { servers, path, keys: cluster.keys.clone() }
    }
}

impl fmt::Display for Servers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hosts: Vec<_> = self.servers.iter().map(Address::to_string).collect();
        write!(f, "hikyaku://{}/{}", hosts.join(","), Shown::new(&self.path))
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Local(path) => Shown::new(path.as_os_str().as_bytes()).fmt(f),
            Self::Remote(remote) => remote.fmt(f),
            Self::Servers(servers) => servers.fmt(f),
        }
    }
}

impl fmt::Display for Remote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.login(), Shown::new(&self.path))
    }
}

/// Where the colon behind the host stands, if there is a host.
fn host_end(bytes: &[u8]) -> Option<usize> {
    if bytes.first() == Some(&b':') {
        return None;
    }
    let at = bytes.iter().position(|&byte| byte == b'@').map_or(0, |at| at + 1);
    let bracketed = bytes.first() == Some(&b'[') || bytes.get(at) == Some(&b'[');
    for (i, &byte) in bytes.iter().enumerate() {
        match byte {
            b'/' => return None,
            b']' if bracketed && bytes.get(i + 1) == Some(&b':') => return Some(i + 1),
            b':' if !bracketed => return Some(i),
            _ => {}
        }
    }
    None
}

/// User and host of `part`, the address without its path; the whole is for the message.
fn login(whole: &[u8], part: &[u8]) -> Result<(Option<String>, String), LocationError> {
    let at = part.iter().rposition(|&byte| byte == b'@');
    let (user, host) = match at {
        Some(at) => (Some(&part[..at]), &part[at + 1..]),
        None => (None, part),
    };
    let host = host.strip_prefix(b"[").and_then(|host| host.strip_suffix(b"]")).unwrap_or(host);
    if host.is_empty() {
        return Err(LocationError::NoHost(Shown::new(whole).to_string()));
    }
    Ok((user.map(user_name).transpose()?, host_name(host)?))
}

/// A host's name that is safe as an argument of `ssh`, and for a shell that the user's own configuration
/// may hand it to.
fn host_name(bytes: &[u8]) -> Result<String, LocationError> {
    let forbidden = |c: char| c.is_whitespace() || "'`\"$\\;&<>|(){}*?!".contains(c);
    name(bytes, |text| !text.contains(forbidden))
}

/// A user's name as ssh takes it: directory services have `DOMAIN\user`, machines `host$`.
fn user_name(bytes: &[u8]) -> Result<String, LocationError> {
    name(bytes, |text| {
        let mut pairs = text.chars().zip(text.chars().skip(1));
        let hides_an_option = pairs.any(|(a, b)| a.is_whitespace() && b == '-');
        !text.contains(|c| "'`\";&<>|(){}".contains(c)) && !hides_an_option && !text.ends_with('\\')
    })
}

fn name(bytes: &[u8], is_safe: impl FnOnce(&str) -> bool) -> Result<String, LocationError> {
    let shown = || Shown::new(bytes).to_string();
    let text = std::str::from_utf8(bytes).map_err(|_| LocationError::BadName(shown()))?;
    if text.starts_with('-') {
        return Err(LocationError::Option(shown()));
    }
    if text.is_empty() || text.contains(char::is_control) || !is_safe(text) {
        return Err(LocationError::BadName(shown()));
    }
    Ok(text.to_owned())
}

// fuzz: lines
fn parse_uri(whole: &[u8], rest: &[u8]) -> Result<Remote, LocationError> {
    let slash = rest.iter().position(|&byte| byte == b'/');
    let (address, path) = match slash {
        Some(slash) => (&rest[..slash], &rest[slash + 1..]),
        None => (rest, &b""[..]),
    };
    let closing = address.iter().rposition(|&byte| byte == b']');
    let colon = address.iter().rposition(|&byte| byte == b':');
    let colon = colon.filter(|&colon| closing.is_none_or(|closing| colon > closing));
    let (address, port) = match colon {
        Some(colon) => (&address[..colon], Some(port(&address[colon + 1..])?)),
        None => (address, None),
    };
    let decoded = unescape(address)?;
    let (user, host) = login(whole, &decoded)?;
    Ok(Remote { user, host, port, path: unescape(path)? })
}

fn port(bytes: &[u8]) -> Result<u16, LocationError> {
    let text = std::str::from_utf8(bytes).ok();
    let port = text.and_then(|text| text.parse().ok()).filter(|&port| port != 0);
    port.ok_or_else(|| LocationError::BadPort(Shown::new(bytes).to_string()))
}

fn unescape(bytes: &[u8]) -> Result<Vec<u8>, LocationError> {
    let mut out = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        if byte != b'%' {
            out.push(byte);
            continue;
        }
        let digits = after.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
        let value = digits
            .filter(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()))
            .and_then(|digits| u8::from_str_radix(digits, 16).ok());
        let fault = || LocationError::BadEscape(Shown::new(bytes).to_string());
        out.push(value.ok_or_else(fault)?);
        rest = &after[2..];
    }
    Ok(out)
}

#[cfg(test)]
mod tests;
