//! The two URLs of the command line.

use anyhow::{Result, bail, ensure};
use hikyaku_console::{host_by_ssh, misuse, remedy_for_scheme};
use hikyaku_gridftp::{Login, Server};
use hikyaku_reach::dial::Ending;
use hikyaku_reach::unescape;
use hikyaku_stores::{FtpPath, Location};
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

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
                Ok(Self::Local(PathBuf::from(OsString::from_vec(unescape(path.as_bytes())?))))
            }
            "ftp" | "gsiftp" => match Location::parse(word)? {
                Location::Ftp(at) => Ok(Self::Remote(at.into())),
                _ => bail!("{}: a server's URL has // after its scheme", word.display()),
            },
            _ if !rest.starts_with("//") => local(word),
            _ => {
                let here = "ftp://HOST/PATH, gsiftp://HOST/PATH or file:///PATH";
                let remedy = remedy_for_scheme(&scheme).unwrap_or(here);
                bail!(misuse(format!("addresses of {scheme}:// are not for hikyaku guc"), remedy))
            }
        }
    }
}

impl From<FtpPath> for Remote {
    /// The whole path, as the server reads it; that of a directory ends in a slash if it was written so.
    fn from(FtpPath { server, root, path, ending }: FtpPath) -> Self {
        let between: &[u8] = if root == b"/" || path.is_empty() { b"" } else { b"/" };
        let is_whole = ending == Ending::Name || (root == b"/" && path.is_empty());
        let end: &[u8] = if is_whole { b"" } else { b"/" };
        Self { server, path: [&root[..], between, &path, end].concat() }
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

#[cfg(test)]
mod tests;
