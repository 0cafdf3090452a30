//! A machine as users of ssh write it.

use crate::dial::NotAnAddress;
use hikyaku_console::ExitCode;
use hikyaku_fs::Shown;
use std::error::Error;
use std::fmt;

/// Where `ssh` logs in (ssh(1): "destination").
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Destination {
    /// Whom to log in as; `None` leaves that to `ssh`.
    pub user: Option<String>,
    /// The machine, as `ssh` is to be told: a name, an address without brackets, or an alias of the user's
    /// configuration.
    pub host: String,
    /// Where its `ssh` listens; `None` leaves that to `ssh`.
    pub port: Option<u16>,
}

/// What is wrong with a destination. Each holds the text, fit to be shown.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum BadDestination {
    /// `ssh` would take it for an option.
    #[error("'{0}': a host or user name must not begin with '-'")]
    Option(String),
    /// There is no host.
    #[error("'{0}': the host's name is missing")]
    NoHost(String),
    /// A name that no host or user has, or that a shell would find a meaning in.
    #[error("'{0}': not a name of a host or user")]
    Name(String),
    /// Not a port.
    #[error("'{0}': not a port, which is a number from 1 to 65535")]
    Port(String),
    /// A `%` without two hexadecimal digits.
    #[error("'{0}': a '%' in an address stands before two hexadecimal digits")]
    Escape(String),
}

/// The exit code of a mistake in an address that the user typed; `None` for all other errors.
pub fn exit_code(error: &anyhow::Error) -> Option<ExitCode> {
    let is_mistake =
        |link: &(dyn Error + 'static)| link.is::<BadDestination>() || link.is::<NotAnAddress>();
    error.chain().any(is_mistake).then_some(ExitCode::Usage)
}

impl Destination {
    /// Reads `[USER@]HOST`; an address of IPv6 may have brackets.
    // fuzz: lines
    pub fn parse(text: &[u8]) -> Result<Self, BadDestination> {
        Self::parse_at(text, None)
    }

    /// Reads `[USER@]HOST[:PORT]`, the authority of an address such as `scp://` or `ssh://` has, with `%XX` in names.
    // fuzz: lines
    pub fn parse_authority(text: &[u8]) -> Result<Self, BadDestination> {
        let closing = text.iter().rposition(|&byte| byte == b']');
        let colon = text.iter().rposition(|&byte| byte == b':');
        let colon = colon.filter(|&colon| closing.is_none_or(|closing| colon > closing));
        let (names, port) = match colon {
            Some(colon) => (&text[..colon], Some(port(&text[colon + 1..])?)),
            None => (text, None),
        };
        Self::parse_at(&unescape(names)?, port)
    }

    fn parse_at(text: &[u8], port: Option<u16>) -> Result<Self, BadDestination> {
        let at = text.iter().rposition(|&byte| byte == b'@');
        let (user, host) = match at {
            Some(at) => (Some(&text[..at]), &text[at + 1..]),
            None => (None, text),
        };
        let host = host.strip_prefix(b"[").and_then(|host| host.strip_suffix(b"]")).unwrap_or(host);
        if host.is_empty() {
            return Err(BadDestination::NoHost(Shown::new(text).to_string()));
        }
        Ok(Self { user: user.map(user_name).transpose()?, host: host_name(host)?, port })
    }
}

impl fmt::Display for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.user {
            Some(user) => write!(f, "{user}@{}", self.host),
            None => f.write_str(&self.host),
        }
    }
}

/// Replaces each `%XX` by the byte that it stands for.
pub fn unescape(bytes: &[u8]) -> Result<Vec<u8>, BadDestination> {
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
        let fault = || BadDestination::Escape(Shown::new(bytes).to_string());
        out.push(value.ok_or_else(fault)?);
        rest = &after[2..];
    }
    Ok(out)
}

/// A host's name that is safe as an argument of `ssh`, and for a shell that the user's own configuration
/// may hand it to. A slash would leave the directory of a ControlPath with the name in it.
fn host_name(bytes: &[u8]) -> Result<String, BadDestination> {
    let forbidden = |c: char| c.is_whitespace() || "'`\"$\\;&<>|(){}[]*?!/".contains(c);
    name(bytes, |text| !text.contains(forbidden))
}

/// A user's name as ssh takes it: directory services have `DOMAIN\user`, machines `host$`.
fn user_name(bytes: &[u8]) -> Result<String, BadDestination> {
    name(bytes, |text| {
        let mut pairs = text.chars().zip(text.chars().skip(1));
        let hides_an_option = pairs.any(|(a, b)| a.is_whitespace() && b == '-');
        !text.contains(|c| "'`\";&<>|(){}".contains(c)) && !hides_an_option && !text.ends_with('\\')
    })
}

fn name(bytes: &[u8], is_safe: impl FnOnce(&str) -> bool) -> Result<String, BadDestination> {
    let shown = || Shown::new(bytes).to_string();
    let text = std::str::from_utf8(bytes).map_err(|_| BadDestination::Name(shown()))?;
    if text.starts_with('-') {
        return Err(BadDestination::Option(shown()));
    }
    if text.is_empty() || text.contains(char::is_control) || !is_safe(text) {
        return Err(BadDestination::Name(shown()));
    }
    Ok(text.to_owned())
}

fn port(bytes: &[u8]) -> Result<u16, BadDestination> {
    let text = std::str::from_utf8(bytes).ok();
    let port = text.and_then(|text| text.parse().ok()).filter(|&port| port != 0);
    port.ok_or_else(|| BadDestination::Port(Shown::new(bytes).to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_destination_is_read_with_and_without_a_port() {
        let of = |user: Option<&str>, host: &str, port| Destination {
            user: user.map(str::to_owned),
            host: host.to_owned(),
            port,
        };
        for (text, wanted) in [
            ("host", of(None, "host", None)),
            ("me@host", of(Some("me"), "host", None)),
            ("me@[::1]", of(Some("me"), "::1", None)),
            ("user@realm@host", of(Some("user@realm"), "host", None)),
        ] {
            assert_eq!(Destination::parse(text.as_bytes()), Ok(wanted.clone()), "{text}");
            assert_eq!(Destination::parse_authority(text.as_bytes()), Ok(wanted), "{text}");
        }
        for (text, wanted) in [
            ("host:22", of(None, "host", Some(22))),
            ("m%65@[::1]:2022", of(Some("me"), "::1", Some(2022))),
        ] {
            assert_eq!(Destination::parse_authority(text.as_bytes()), Ok(wanted), "{text}");
        }
    }

    #[test]
    fn what_ssh_or_a_shell_could_misread_is_refused() {
        for text in [
            "", "me@", "-oX", "me@-x", "-l@host", "a b", "a;b", "$(x)", "a\nb", "me\\@h", "a/b",
            "[[]]", "a]",
        ] {
            assert!(Destination::parse(text.as_bytes()).is_err(), "{text:?}");
        }
        for text in ["host:0", "host:x", "host:", "%2", "%00", "a%2Fb"] {
            assert!(Destination::parse_authority(text.as_bytes()).is_err(), "{text:?}");
        }
    }
}
