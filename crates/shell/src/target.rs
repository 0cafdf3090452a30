//! Where sftp's users want to go: `[USER@]HOST[:PATH]` or `sftp://[USER@]HOST[:PORT][/PATH]`.

use anyhow::Error;
use hikyaku_console::{misuse, remedy_for_scheme};
use hikyaku_reach::{BadDestination, Destination, unescape};

/// A machine, and a path there.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Target {
    pub(crate) login: Destination,
    /// A directory to begin in, or a file to fetch; `None` is the home directory.
    pub(crate) path: Option<Vec<u8>>,
}

const SCHEME: &[u8] = b"sftp://";

impl Target {
    /// Reads what the user typed.
    ///
    /// # Errors
    ///
    /// It is no machine, or belongs to another command.
    pub(crate) fn of_user(text: &[u8]) -> Result<Self, Error> {
        let scheme = text.split(|&byte| byte == b':').next().unwrap_or_default();
        let is_address = text[scheme.len()..].starts_with(b"://");
        let scheme = String::from_utf8_lossy(scheme).to_lowercase();
        let remedy = remedy_for_scheme(&scheme).filter(|_| is_address && scheme != "sftp");
        if let Some(remedy) = remedy {
            let error = format!("addresses of {scheme}:// are not for hikyaku sftp");
            let remedy = match &*scheme {
                "hikyaku" | "gfarm" | "s3" => {
                    "hikyaku ls ADDRESS, which lists files, or hikyaku cp"
                }
                _ => remedy,
            };
            return Err(misuse(error, remedy));
        }
        let remedy = "USER@HOST:PATH, or sftp://USER@HOST:PORT/PATH";
        Self::parse(text).map_err(|error| misuse(error.to_string(), remedy))
    }

    // fuzz: none, the user's own words
    pub(crate) fn parse(text: &[u8]) -> Result<Self, BadDestination> {
        if let Some(rest) = text.strip_prefix(SCHEME) {
            let slash = rest.iter().position(|&byte| byte == b'/').unwrap_or(rest.len());
            let path = unescape(rest.get(slash + 1..).unwrap_or_default())?;
            let login = Destination::parse_authority(&rest[..slash])?;
            return Ok(Self { login, path: Some(path).filter(|path| !path.is_empty()) });
        }
        let (host, path) = match colon(text) {
            Some(colon) => (&text[..colon], text[colon + 1..].to_vec()),
            None => (text, Vec::new()),
        };
        let login = Destination::parse(host)?;
        Ok(Self { login, path: Some(path).filter(|path| !path.is_empty()) })
    }
}

/// The colon behind the host: none in brackets.
fn colon(text: &[u8]) -> Option<usize> {
    let at = text.iter().position(|&byte| byte == b'@').map_or(0, |at| at + 1);
    let from = match text.get(at) {
        Some(b'[') => at + text[at..].iter().position(|&byte| byte == b']')?,
        _ => 0,
    };
    text[from..].iter().position(|&byte| byte == b':').map(|colon| from + colon)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_is_a_host_and_perhaps_a_path() {
        let cases = [
            ("far", None, "far", None, None),
            ("anna@far:", Some("anna"), "far", None, None),
            ("far:a b", None, "far", None, Some("a b")),
            ("anna@[fe80::1]:/x:y", Some("anna"), "fe80::1", None, Some("/x:y")),
            ("[::1]", None, "::1", None, None),
            ("sftp://anna@far:22/a%20b", Some("anna"), "far", Some(22), Some("a b")),
            ("sftp://far//x", None, "far", None, Some("/x")),
            ("sftp://far/", None, "far", None, None),
        ];
        for (text, user, host, port, path) in cases {
            let target = Target::parse(text.as_bytes()).unwrap();
            let login = target.login;
            assert_eq!(
                (login.user.as_deref(), &login.host[..], login.port),
                (user, host, port),
                "{text}"
            );
            assert_eq!(target.path.as_deref(), path.map(str::as_bytes), "{text}");
        }
        for text in [":a", "", "sftp:///a", "-oProxyCommand=x", "sftp://far/%zz"] {
            assert!(Target::parse(text.as_bytes()).is_err(), "{text}");
        }
    }

    #[test]
    fn an_address_of_a_storage_has_the_command_that_lists_it() {
        for text in ["hikyaku://node1/run7", "gfarm:///run7", "s3://bucket", "S3://bucket"] {
            let error = format!("{:#}", Target::of_user(text.as_bytes()).unwrap_err());
            assert!(error.contains("try: hikyaku ls ADDRESS"), "{error}");
        }
        let error = format!("{:#}", Target::of_user(b"https://far/x").unwrap_err());
        assert!(error.contains("try: hikyaku get"), "{error}");
    }
}
