//! Addresses of GridFTP and FTP servers: `ftp://[USER[:PASSWORD]@]HOST[:PORT]/PATH` and `gsiftp://HOST[:PORT]/PATH`.

use super::names;
use hikyaku_fs::Shown;
use hikyaku_gridftp::{Login, Server};
use hikyaku_reach::dial::Ending;
use hikyaku_reach::unescape;
use std::fmt;

/// A path of a GridFTP or FTP server.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FtpPath {
    /// The server, and the user.
    pub server: Server,
    /// The directory in which the path begins, as the server reads it: `/`, or the home directory `~` of a user.
    pub root: Vec<u8>,
    /// The path below it.
    pub path: Vec<u8>,
    /// How the path was written.
    pub ending: Ending,
}

/// A mistake in such an address. None has its text, which may have a password.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum BadFtp {
    /// No host.
    #[error("has no valid host; write ftp://[USER[:PASSWORD]@]HOST[:PORT]/PATH")]
    Host,
    /// No port.
    #[error("has no valid port, which is a number from 1 to 65535")]
    Port,
    /// A user of a server that a certificate logs in to.
    #[error("of gsiftp:// has no user: the certificate names the user")]
    User,
    /// A `%` without two hexadecimal digits, or an escaped text that is not UTF-8.
    #[error("has a '%' that does not stand before the two hexadecimal digits of a character")]
    Escape,
}

/// The protocol of a server.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FtpScheme {
    /// FTP, with GridFTP's extensions if the server has them.
    Ftp,
    /// GridFTP with a login by certificate.
    GsiFtp,
}

impl FtpScheme {
    const fn port(self) -> u16 {
        match self {
            Self::Ftp => 21,
            Self::GsiFtp => 2811,
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Ftp => "ftp",
            Self::GsiFtp => "gsiftp",
        }
    }
}

impl FtpPath {
    /// Reads the part of an address behind `ftp://` or `gsiftp://`.
    ///
    /// # Errors
    ///
    /// It has no host, another mistake, or a user that the protocol does not have.
    // fuzz: lines
    pub fn parse(scheme: FtpScheme, rest: &[u8]) -> Result<Self, BadFtp> {
        let slash = rest.iter().position(|&byte| byte == b'/').unwrap_or(rest.len());
        let (authority, path) = rest.split_at(slash);
        let authority = str::from_utf8(authority).map_err(|_| BadFtp::Host)?;
        let (user, address) = match authority.rsplit_once('@') {
            Some((user, address)) => (Some(user), address),
            None => (None, authority),
        };
        let login = match (scheme, user) {
            (FtpScheme::GsiFtp, None) => Login::Certificate,
            (FtpScheme::GsiFtp, Some(_)) => return Err(BadFtp::User),
            (FtpScheme::Ftp, None) => Login::Anonymous,
            (FtpScheme::Ftp, Some(user)) => {
                let (user, password) = user.split_once(':').unwrap_or((user, ""));
                Login::Password { user: text(user)?, password: text(password)? }
            }
        };
        let (host, port) = match address.strip_prefix('[') {
            Some(address) => address.split_once(']').ok_or(BadFtp::Host)?,
            None => address.split_at(address.find(':').unwrap_or(address.len())),
        };
        let port = match (port.strip_prefix(':'), port) {
            (Some(port), _) => port.parse().ok().filter(|&port| port != 0).ok_or(BadFtp::Port)?,
            (None, "") => scheme.port(),
            (None, _) => return Err(BadFtp::Host),
        };
        if host.is_empty() || host.contains(|c: char| c.is_control() || c.is_whitespace()) {
            return Err(BadFtp::Host);
        }
        let server = Server { host: host.to_owned(), port, login };
        let path = unescape(path).map_err(|_| BadFtp::Escape)?;
        let (root, path) = match path.strip_prefix(b"/").filter(|path| path.starts_with(b"~")) {
            Some(home) => {
                home.split_at(home.iter().position(|&byte| byte == b'/').unwrap_or(home.len()))
            }
            None => (&b"/"[..], &path[..]),
        };
        let (path, ending) = Ending::split(path);
        Ok(Self { server, root: root.to_vec(), path: names(path), ending })
    }

    /// The protocol of the server.
    pub fn scheme(&self) -> FtpScheme {
        match self.server.login {
            Login::Certificate => FtpScheme::GsiFtp,
            Login::Anonymous | Login::Password { .. } => FtpScheme::Ftp,
        }
    }
}

fn text(escaped: &str) -> Result<String, BadFtp> {
    let bytes = unescape(escaped.as_bytes()).map_err(|_| BadFtp::Escape)?;
    String::from_utf8(bytes).map_err(|_| BadFtp::Escape)
}

impl fmt::Display for FtpPath {
    /// Without the password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Server { host, port, login }, scheme) = (&self.server, self.scheme());
        write!(f, "{}://", scheme.name())?;
        if let Login::Password { user, .. } = login {
            write!(f, "{}@", Shown::new(user.as_bytes()))?;
        }
        match host.contains(':') {
            true => write!(f, "[{host}]")?,
            false => f.write_str(host)?,
        }
        if *port != scheme.port() {
            write!(f, ":{port}")?;
        }
        let home = self.root.strip_prefix(b"/").unwrap_or(&self.root);
        let slash = if home.is_empty() { "" } else { "/" };
        write!(f, "/{}{slash}{}", Shown::new(home), Shown::new(&self.path))
    }
}
