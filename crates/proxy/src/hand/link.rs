//! Addresses of the web: `http://` and `https://`, with a host and a path.

use anyhow::Context;
use hikyaku_forward::{Host, Scheme, Target};
use std::fmt;

/// An address.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Link {
    pub(super) scheme: Scheme,
    /// The host and the port.
    pub(crate) target: Target,
    /// The path and the query, beginning with a slash, in visible ASCII.
    pub(super) path: String,
}

/// Bytes of an address at most.
const LINK_BYTES_MAX: usize = 16 << 10;

impl Link {
    /// Reads an address. `None` if it is none, or names a user.
    // fuzz: none, every part is checked, and the host by `Host::parse`
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (scheme, rest) = text.split_once("://")?;
        let scheme = Scheme::parse(scheme)?;
        let rest = rest.split('#').next().unwrap_or_default();
        let end = rest.find(['/', '?']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at(end);
        let (host, port) = match authority.rsplit_once(':') {
            Some((host, port)) if !port.ends_with(']') => (host, port.parse().ok()?),
            _ => (authority, scheme.port()),
        };
        let has_brackets = host.starts_with('[');
        let host = Host::parse(host).ok().filter(|_| has_brackets || !host.contains(':'))?;
        let slash = if path.starts_with('/') { "" } else { "/" };
        let path = format!("{slash}{path}");
        let is_plain = path.bytes().all(|byte| byte.is_ascii_graphic());
        let fits = text.len() <= LINK_BYTES_MAX && port != 0;
        (is_plain && fits).then_some(Self { scheme, target: Target { host, port }, path })
    }

    /// Where a redirection leads (RFC 3986, section 5.2, without `.` and `..`).
    pub(super) fn join(&self, location: &str) -> Option<Self> {
        let base = self.to_string();
        let root = &base[..base.len() - self.path.len()];
        match location {
            _ if location.contains("://") => Self::parse(location),
            _ if location.starts_with("//") => {
                Self::parse(&format!("{}:{location}", self.scheme.name()))
            }
            _ if location.starts_with('/') => Self::parse(&format!("{root}{location}")),
            _ => {
                let folder = self.path.split('?').next().unwrap_or("/");
                let folder = &folder[..=folder.rfind('/')?];
                Self::parse(&format!("{root}{folder}{location}"))
            }
        }
    }

    /// The address that this one redirects to.
    ///
    /// # Errors
    ///
    /// It leads from https to http.
    pub(super) fn redirected(&self, next: Self) -> anyhow::Result<Self> {
        self.scheme.check_redirect(next.scheme).with_context(|| format!("cannot follow {self}"))?;
        Ok(next)
    }

    pub(super) const fn host(&self) -> &Host {
        &self.target.host
    }

    /// The last part of the path.
    pub(super) fn name(&self) -> &str {
        let path = self.path.split('?').next().unwrap_or_default();
        path.rsplit('/').next().filter(|name| !name.is_empty()).unwrap_or("download")
    }

    /// The host and the port, as `Host` has it.
    pub(super) fn authority(&self) -> String {
        match self.target.port == self.scheme.port() {
            true => self.target.host.to_string(),
            false => self.target.to_string(),
        }
    }
}

impl fmt::Display for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}{}", self.scheme.name(), self.authority(), self.path)
    }
}

/// A text whose octets may be percent-encoded (RFC 3986, section 2.1).
// fuzz: none, every octet is checked
pub(crate) fn decoded(text: &str) -> Option<String> {
    let mut out = Vec::new();
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        out.push(match byte {
            b'%' => {
                let digit = |byte: Option<u8>| char::from(byte?).to_digit(16);
                let (high, low) = (digit(rest.next())?, digit(rest.next())?);
                u8::try_from(high * 16 + low).ok()?
            }
            byte => byte,
        });
    }
    String::from_utf8(out).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn redirections_lead_where_they_say() {
        let base = Link::parse("https://a.example:8443/dir/file?x=/y").unwrap();
        for (location, wanted) in [
            ("http://b.example/z", "http://b.example/z"),
            ("//b.example/z", "https://b.example/z"),
            ("/z?q", "https://a.example:8443/z?q"),
            ("other", "https://a.example:8443/dir/other"),
        ] {
            assert_eq!(base.join(location).unwrap().to_string(), wanted);
        }
        for location in ["ftp://b.example/", "http://", "http://b/ c", "https://u@b/"] {
            assert_eq!(base.join(location), None, "{location}");
        }
        let plain = Link::parse("http://b.example/").unwrap();
        for (from, to, is_followed) in [
            (&base, &base, true),
            (&plain, &base, true),
            (&plain, &plain, true),
            (&base, &plain, false),
        ] {
            assert_eq!(from.redirected(to.clone()).is_ok(), is_followed, "{from} to {to}");
        }
        assert_eq!(base.name(), "file");
        assert_eq!(Link::parse("http://[::1]/").unwrap().authority(), "[::1]");
    }
}
