//! Addresses of files as users type them: a path of this machine, of a host behind ssh, of daemons, of a Gfarm file system,
//! of a bucket, or of a GridFTP, FTP or web server.

mod ftp;

pub use ftp::{BadFtp, FtpPath, FtpScheme};

use hikyaku_console::Settings;
use hikyaku_fs::Shown;
use hikyaku_http::{Url, UrlError};
use hikyaku_reach::dial::{Ending, NotAnAddress, Servers};
use hikyaku_reach::{BadDestination, Destination, unescape};
use std::ffi::{OsStr, OsString};
use std::fmt;
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
    /// In a Gfarm file system.
    Gfarm(GfarmPath),
    /// In a bucket of an S3-compatible service.
    S3(S3Path),
    /// On a GridFTP or FTP server.
    Ftp(FtpPath),
    /// On a web server.
    Web(Url),
}

/// A path in a bucket.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct S3Path {
    /// The name of the bucket.
    pub bucket: String,
    /// The path below the root of the bucket; empty for all of it.
    pub path: Vec<u8>,
    /// How the path was written. A target that was written as a directory, or that is the bucket, is one, also if nothing
    /// is in it.
    pub ending: Ending,
}

/// A path in a Gfarm file system.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GfarmPath {
    /// The metadata server; `None` for the one that the user's Gfarm settings name.
    pub server: Option<hikyaku_gfarm::Address>,
    /// The path below the root of the file system.
    pub path: Vec<u8>,
    /// How it was written.
    pub ending: Ending,
}

/// A path on another machine.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Remote {
    /// The machine, and whom to log in as. A port stands in `scp://` only.
    pub login: Destination,
    /// The path, relative to the home directory unless it begins with a slash; empty is the home
    /// directory itself.
    pub path: Vec<u8>,
}

/// A mistake in an address.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum LocationError {
    /// Nothing before the colon.
    #[error("'{0}': the host's name is missing; write HOST:PATH, or ./{0} for a file of that name")]
    NoHost(String),
    /// Not an address of a metadata server of Gfarm.
    #[error("'{0}': expected gfarm:///PATH or gfarm://HOST:PORT/PATH")]
    BadGfarm(String),
    /// Not an object of a bucket.
    #[error("'{0}': expected s3://BUCKET/KEY")]
    BadS3(String),
    /// A key that is no path.
    #[error("'{0}': a key with an empty name in it cannot be the path of a file")]
    EmptyName(String),
    /// Not an address of a daemon.
    #[error(transparent)]
    BadAddress(#[from] NotAnAddress),
    /// An address of rsync's own protocol: `rsync://HOST/MODULE` or `HOST::MODULE`.
    #[error("'{0}' is a module of an rsync daemon, and hikyaku does not speak rsync's protocol")]
    RsyncDaemon(String),
    /// Not an address of a GridFTP or FTP server.
    #[error("the address of the FTP server {0}")]
    BadFtp(#[from] BadFtp),
    /// Not an address of a web server.
    #[error("the address of the web server {0}")]
    BadUrl(#[from] UrlError),
    /// A file of another machine, by an address that only names files of this one.
    #[error("'{0}': a file:// address names a file of this machine")]
    NotHere(String),
    /// A `%` without two hexadecimal digits.
    #[error("'{0}': a '%' in a scp:// address stands before two hexadecimal digits")]
    BadEscape(String),
    /// Another mistake in the name of the machine.
    #[error(transparent)]
    Destination(BadDestination),
}

impl LocationError {
    /// An address that the user can type in its place.
    pub fn remedy(&self) -> Option<&'static str> {
        match self {
            Self::RsyncDaemon(_) => {
                Some("try: HOST:PATH, by ssh (HOST:./:NAME, if a name begins with a colon)")
            }
            Self::NotHere(_) => Some("try: HOST:PATH, by ssh"),
            _ => None,
        }
    }

    /// A mistake in the host of the address `whole`.
    fn of(why: BadDestination, whole: &[u8]) -> Self {
        match why {
            BadDestination::NoHost(_) => Self::NoHost(Shown::new(whole).to_string()),
            BadDestination::Escape(text) => Self::BadEscape(text),
            other => Self::Destination(other),
        }
    }
}

const SCHEME: &[u8] = b"scp://";
/// Another scheme for a host behind ssh: `sftp://[USER@]HOST[:PORT]/PATH`.
const SFTP_SCHEME: &[u8] = b"sftp://";
/// Of a file of this machine: `file:///PATH`.
const FILE_SCHEME: &[u8] = b"file://";
/// Of files of web servers.
const WEB_SCHEMES: [&str; 2] = ["http", "https"];
/// Of files of GridFTP and FTP servers.
const FTP_SCHEMES: [(&str, FtpScheme); 2] =
    [("ftp", FtpScheme::Ftp), ("gsiftp", FtpScheme::GsiFtp)];
/// Of a Gfarm file system: `gfarm://[HOST[:PORT]]/PATH`.
const GFARM_SCHEME: &[u8] = b"gfarm://";
/// Of a module of an rsync daemon.
const RSYNC_SCHEME: &[u8] = b"rsync://";
/// Of a bucket: `s3://BUCKET/KEY`.
const S3_SCHEME: &[u8] = b"s3://";

impl Location {
    /// Reads an address as [`Location::parse`] does. The daemons of a cluster of the settings take the place of a host of its
    /// name.
    ///
    /// # Errors
    ///
    /// Those of [`Location::parse`].
    pub fn named(text: &OsStr, settings: &Settings) -> Result<Self, LocationError> {
        Ok(match Self::parse(text)? {
            // A user or a port belongs to ssh.
            Self::Remote(at) if at.login.user.is_none() && at.login.port.is_none() => {
                match settings.cluster(&at.login.host) {
                    Some(cluster) => Self::Servers(Servers::of_cluster(cluster, &at.path)),
                    None => Self::Remote(at),
                }
            }
            other => other,
        })
    }

    /// Reads an address with a scheme, `[USER@]HOST:PATH`, or a local path. A colon behind a slash is part of a local name,
    /// and so is one that comes first.
    ///
    /// # Errors
    ///
    /// The text has a mistake, or is an address of rsync's protocol.
    // fuzz: lines
    pub fn parse(text: &OsStr) -> Result<Self, LocationError> {
        let bytes = text.as_bytes();
        let behind = |scheme: &str| {
            let (start, rest) = bytes.split_at_checked(scheme.len())?;
            rest.strip_prefix(b"://").filter(|_| start.eq_ignore_ascii_case(scheme.as_bytes()))
        };
        if WEB_SCHEMES.into_iter().any(|scheme| behind(scheme).is_some()) {
            return Ok(Self::Web(Url::parse(&String::from_utf8_lossy(bytes))?));
        }
        for (name, scheme) in FTP_SCHEMES {
            if let Some(rest) = behind(name) {
                return Ok(Self::Ftp(FtpPath::parse(scheme, rest)?));
            }
        }
        if let Some(rest) = bytes.strip_prefix(FILE_SCHEME) {
            return parse_file(rest, bytes);
        }
        let rest = bytes.strip_prefix(SCHEME).or_else(|| bytes.strip_prefix(SFTP_SCHEME));
        if let Some(rest) = rest {
            return parse_uri(rest).map(Self::Remote).map_err(|why| LocationError::of(why, bytes));
        }
        if let Some(servers) = Servers::parse(bytes) {
            return Ok(Self::Servers(servers?));
        }
        if let Some(rest) = bytes.strip_prefix(GFARM_SCHEME) {
            let path = parse_gfarm(rest).map(Self::Gfarm);
            return path.ok_or_else(|| LocationError::BadGfarm(Shown::new(bytes).to_string()));
        }
        if let Some(rest) = bytes.strip_prefix(S3_SCHEME) {
            let shown = || Shown::new(bytes).to_string();
            let path = parse_s3(rest).ok_or_else(|| LocationError::BadS3(shown()))?;
            // A bucket may have `a//b` beside `a/b`: neither is taken for the other.
            return match path.path.is_empty()
                || path.path.split(|b| *b == b'/').all(|n| !n.is_empty())
            {
                true => Ok(Self::S3(path)),
                false => Err(LocationError::EmptyName(shown())),
            };
        }
        let is_module = bytes.to_ascii_lowercase().starts_with(RSYNC_SCHEME)
            || host_end(bytes).is_some_and(|colon| bytes.get(colon + 1) == Some(&b':'));
        if is_module {
            return Err(LocationError::RsyncDaemon(Shown::new(bytes).to_string()));
        }
        match host_end(bytes) {
            None => Ok(Self::Local(PathBuf::from(text))),
            Some(colon) => {
                let login = Destination::parse(&bytes[..colon]);
                let login = login.map_err(|why| LocationError::of(why, bytes))?;
                Ok(Self::Remote(Remote { login, path: bytes[colon + 1..].to_vec() }))
            }
        }
    }
}

impl Location {
    /// Whether both are in one storage, so that one connection serves both.
    pub fn is_beside(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Local(_), Self::Local(_)) | (Self::Web(_), Self::Web(_)) => true,
            (Self::Remote(one), Self::Remote(other)) => one.login == other.login,
            (Self::Servers(one), Self::Servers(other)) => {
                (&one.servers, &one.keys) == (&other.servers, &other.keys)
            }
            (Self::Gfarm(one), Self::Gfarm(other)) => one.server == other.server,
            (Self::S3(one), Self::S3(other)) => one.bucket == other.bucket,
            (Self::Ftp(one), Self::Ftp(other)) => {
                (&one.server, &one.root) == (&other.server, &other.root)
            }
            _ => false,
        }
    }

    /// The names under which the settings know its hosts: hosts of daemons, gfmd's host, a bucket.
    pub fn hosts(&self) -> Vec<String> {
        match self {
            Self::Local(_) => Vec::new(),
            Self::Remote(remote) => vec![remote.login.host.clone()],
            Self::Servers(at) => at.servers.iter().map(|server| server.host.clone()).collect(),
            Self::Gfarm(at) => {
                vec![at.server.as_ref().map_or("gfarm", |server| &server.host).to_owned()]
            }
            Self::S3(at) => vec![at.bucket.clone()],
            Self::Ftp(at) => vec![at.server.host.clone()],
            Self::Web(url) => vec![url.origin.host.clone()],
        }
    }
}

impl Location {
    /// This storage with another path, which has no slash at its ends and begins at the root.
    #[must_use]
    pub fn with_path(&self, path: Vec<u8>, ending: Ending) -> Self {
        match self {
            Self::Local(_) => Self::Local(OsString::from_vec(path).into()),
            Self::Remote(Remote { login, .. }) => {
                let slash: &[u8] = if ending == Ending::Name { b"" } else { b"/" };
                let path = [b"/", &path[..], slash].concat();
                Self::Remote(Remote { login: login.clone(), path })
            }
            Self::Servers(servers) => Self::Servers(Servers { path, ending, ..servers.clone() }),
            Self::Gfarm(at) => Self::Gfarm(GfarmPath { path, ending, ..at.clone() }),
            Self::S3(at) => Self::S3(S3Path { path, ending, ..at.clone() }),
            Self::Ftp(at) => Self::Ftp(FtpPath { path, ending, ..at.clone() }),
            Self::Web(url) => Self::Web(Url { target: "/".to_owned(), ..url.clone() }.below(&path)),
        }
    }
}

// fuzz: lines
fn parse_file(rest: &[u8], whole: &[u8]) -> Result<Location, LocationError> {
    let path = rest.strip_prefix(b"localhost").unwrap_or(rest);
    if !path.starts_with(b"/") {
        return Err(LocationError::NotHere(Shown::new(whole).to_string()));
    }
    let path = unescape(path).map_err(|why| LocationError::of(why, whole))?;
    Ok(Location::Local(PathBuf::from(OsString::from_vec(path))))
}

// fuzz: lines
fn parse_gfarm(rest: &[u8]) -> Option<GfarmPath> {
    let slash = rest.iter().position(|&byte| byte == b'/').unwrap_or(rest.len());
    let (host, path) = rest.split_at(slash);
    let server = match str::from_utf8(host).ok()? {
        "" => None,
        host => Some(hikyaku_gfarm::Address::parse(host)?),
    };
    let (path, ending) = Ending::split(path);
    Some(GfarmPath { server, path: names(path), ending })
}

// fuzz: lines
fn parse_s3(rest: &[u8]) -> Option<S3Path> {
    let slash = rest.iter().position(|&byte| byte == b'/').unwrap_or(rest.len());
    let (bucket, path) = rest.split_at(slash);
    let bucket = str::from_utf8(bucket).ok().filter(|bucket| !bucket.is_empty())?.to_owned();
    let (path, ending) = Ending::split(path);
    let path = path.strip_prefix(b"/").unwrap_or(path).to_vec();
    Some(S3Path { bucket, path, ending })
}

/// The names of a path, with one slash between them.
fn names(path: &[u8]) -> Vec<u8> {
    let names = path.split(|&byte| byte == b'/').filter(|name| !name.is_empty());
    names.collect::<Vec<_>>().join(&b'/')
}

impl fmt::Display for S3Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "s3://{}/{}", Shown::new(self.bucket.as_bytes()), Shown::new(&self.path))
    }
}

impl fmt::Display for GfarmPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let server = self.server.as_ref().map(ToString::to_string).unwrap_or_default();
        write!(f, "gfarm://{server}/{}", Shown::new(&self.path))
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Local(path) => Shown::new(path.as_os_str().as_bytes()).fmt(f),
            Self::Remote(remote) => remote.fmt(f),
            Self::Servers(servers) => servers.fmt(f),
            Self::Gfarm(path) => path.fmt(f),
            Self::S3(path) => path.fmt(f),
            Self::Ftp(path) => path.fmt(f),
            Self::Web(url) => url.fmt(f),
        }
    }
}

impl fmt::Display for Remote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.login, Shown::new(&self.path))
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

// fuzz: lines
fn parse_uri(rest: &[u8]) -> Result<Remote, BadDestination> {
    let slash = rest.iter().position(|&byte| byte == b'/');
    let (address, path) = match slash {
        Some(slash) => (&rest[..slash], &rest[slash + 1..]),
        None => (rest, &b""[..]),
    };
    Ok(Remote { login: Destination::parse_authority(address)?, path: unescape(path)? })
}

#[cfg(test)]
mod tests;
