//! The two URLs of the command line.

use anyhow::{Context, Result, bail, ensure};
use hikyaku_console::{host_by_ssh, misuse, remedy_for_scheme};
use hikyaku_gridftp::{Login, Server};
use std::ffi::OsStr;
use std::fmt;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

/// The port of FTP.
const FTP_PORT: u16 = 21;

/// The port of GridFTP.
const GSIFTP_PORT: u16 = 2811;

/// Where a file is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Place {
    Local(PathBuf),
    Remote(Remote),
}

/// A path of a server.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Remote {
    pub(crate) server: Server,
    pub(crate) path: Vec<u8>,
}

impl Place {
    /// Reads a URL, or a local path.
    // fuzz: none, the user's own words
    pub(crate) fn parse(word: &OsStr) -> Result<Self> {
        let Some((scheme, rest)) = word.to_str().and_then(scheme) else {
            return local(word);
        };
        match scheme.as_str() {
            "file" => {
                let path = match rest.strip_prefix("//") {
                    None => rest,
                    Some(rest) => rest.strip_prefix("localhost").unwrap_or(rest),
                };
                ensure!(path.starts_with('/'), "{}: a file URL has an absolute path", rest);
                Ok(Self::Local(PathBuf::from(std::ffi::OsString::from_vec(decode(path)?))))
            }
            "ftp" => Ok(Self::Remote(remote(rest, FTP_PORT)?)),
            "gsiftp" => {
                let mut remote = remote(rest, GSIFTP_PORT)?;
                ensure!(
                    remote.server.login == Login::Anonymous,
                    "a gsiftp URL has no user: the certificate says who it is"
                );
                remote.server.login = Login::Certificate;
                Ok(Self::Remote(remote))
            }
            _ if !rest.starts_with("//") => local(word),
            _ => {
                let here = "ftp://HOST/PATH, gsiftp://HOST/PATH or file:///PATH";
                let remedy = remedy_for_scheme(&scheme).unwrap_or(here);
                bail!(misuse(format!("addresses of {scheme}:// are not for hikyaku guc"), remedy))
            }
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Local(path) => write!(f, "{}", path.display()),
            Self::Remote(remote) => write!(f, "{remote}"),
        }
    }
}

impl fmt::Display for Remote {
    /// Without the password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Server { host, port, login } = &self.server;
        f.write_str(if *login == Login::Certificate { "gsiftp://" } else { "ftp://" })?;
        if let Login::Password { user, .. } = login {
            write!(f, "{user}@")?;
        }
        write!(f, "{host}:{port}{}", String::from_utf8_lossy(&self.path))
    }
}

/// A path of this machine. What is none, or would be of another machine elsewhere, is refused by name.
fn local(word: &OsStr) -> Result<Place> {
    let shown = word.display();
    if word == "-" {
        bail!(misuse(
            "'-': a file goes through several connections in any order, which no stream takes",
            "file:///PATH, or ./- for a file of that name",
        ));
    }
    if host_by_ssh(word.as_bytes()).is_some() {
        bail!(misuse(
            format!("'{shown}' is a place of another machine by ssh"),
            format!("hikyaku cp, or ./{shown} for a file of that name"),
        ));
    }
    Ok(Place::Local(PathBuf::from(word)))
}

/// The scheme in lower case, and what follows its colon.
fn scheme(word: &str) -> Option<(String, &str)> {
    let (scheme, rest) = word.split_once(':')?;
    let is_scheme = !scheme.is_empty() && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric());
    (is_scheme && rest.starts_with('/')).then(|| (scheme.to_ascii_lowercase(), rest))
}

fn remote(rest: &str, default_port: u16) -> Result<Remote> {
    let rest = rest.strip_prefix("//").context("a server's URL has // after its scheme")?;
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let (user, host) = match authority.rsplit_once('@') {
        Some((user, host)) => (Some(user), host),
        None => (None, authority),
    };
    let text = |text: &str| String::from_utf8(decode(text)?).context("not UTF-8");
    let login = match user {
        None => Login::Anonymous,
        Some(user) => {
            let (user, password) = user.split_once(':').unwrap_or((user, ""));
            Login::Password { user: text(user)?, password: text(password)? }
        }
    };
    let (host, port) = match host.strip_prefix('[') {
        Some(rest) => rest.split_once(']').context("a bracket is not closed")?,
        None => host.split_at(host.find(':').unwrap_or(host.len())),
    };
    let port =
        match port.strip_prefix(':') {
            Some(port) => port.parse().ok().filter(|&port| port != 0).with_context(|| {
                format!("'{port}': not a port, which is a number from 1 to 65535")
            })?,
            None => default_port,
        };
    ensure!(!host.is_empty(), "a server's URL names a host");
    // `/~/path` is below the user's home.
    let path = if path.starts_with("/~") { &path[1..] } else { path };
    let path = if path.is_empty() { "/" } else { path };
    Ok(Remote { server: Server { host: host.to_owned(), port, login }, path: decode(path)? })
}

/// Replaces `%41` by its byte.
// fuzz: none, the user's own words
fn decode(text: &str) -> Result<Vec<u8>> {
    let (mut bytes, mut rest) = (Vec::new(), text.as_bytes());
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        bytes.push(match byte {
            b'%' => {
                let (digits, after) =
                    after.split_at_checked(2).context("a percent sign without two digits")?;
                rest = after;
                let digits = OsStr::from_bytes(digits).to_str().unwrap_or_default();
                u8::from_str_radix(digits, 16).context("a percent sign without two digits")?
            }
            byte => byte,
        });
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests;
