//! Addresses of the scheme `hikyaku:`, as links in pages have them: `hikyaku:GATEWAY?url=ADDRESS`. Any page may hold one, so
//! an address names what is to be fetched and nothing else: no program, no option, no file or folder of this machine. Its
//! gateway is looked up among those that the user knows.

use crate::hand::{Link, decoded};

/// What an address of the scheme asks for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Click {
    /// The gateway: a host, or what the user calls it. `None` for the first one that the user knows.
    pub(super) gateway: Option<String>,
    /// The file.
    pub(super) link: Link,
    /// What its SHA-256 is to be, in hexadecimal digits.
    pub(super) sha256: Option<String>,
}

/// Why an address asks for nothing. No text has a part of the address, which may be made to deceive.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub(super) enum BadClick {
    /// It is too long, or has blanks or control characters, or another scheme.
    #[error("this is not an address of the form hikyaku:GATEWAY?url=ADDRESS")]
    Form,
    /// It has no `url=`, or one that is not of the web.
    #[error("its url= is not an http:// or https:// address without a user")]
    Link,
    /// It would be fetched as a list of other files.
    #[error("its url= is a Metalink file (.meta4), which names files of its own")]
    List,
    /// `sha256=` is no digest.
    #[error("its sha256= has not 64 hexadecimal digits")]
    Digest,
    /// What is not understood may be meant to restrict something.
    #[error("it has a parameter other than url= and sha256=, or one of them twice")]
    Parameter,
}

const SCHEME: &str = "hikyaku:";
const BYTES_MAX: usize = 32 << 10;
const SHA256_DIGITS: usize = 64;
/// How names of Metalink files end.
const LIST: &str = ".meta4";

impl Click {
    /// Whether a word of the command line is such an address. Those of daemons have no parameters.
    pub(super) fn is_one(word: &str) -> bool {
        let has_scheme = word.get(..SCHEME.len()).is_some_and(|s| s.eq_ignore_ascii_case(SCHEME));
        has_scheme && word.contains('?')
    }

    /// Reads an address.
    ///
    /// # Errors
    ///
    /// It asks for nothing that can be done.
    // fuzz: none, every part is checked here or by `Link::parse`
    pub(super) fn parse(text: &str) -> Result<Self, BadClick> {
        let is_plain = text.bytes().all(|byte| byte.is_ascii_graphic());
        if !Self::is_one(text) || !is_plain || text.len() > BYTES_MAX {
            return Err(BadClick::Form);
        }
        let text = text.split('#').next().unwrap_or_default();
        let (gateway, parameters) = text[SCHEME.len()..].split_once('?').ok_or(BadClick::Form)?;
        let gateway = match gateway.trim_end_matches('/') {
            "" => None,
            // A daemon: it is known as `hikyaku://HOST`.
            daemon if daemon.starts_with("//") => Some(format!("{SCHEME}{daemon}")),
            host => Some(host.to_owned()),
        };
        let (mut link, mut sha256) = (None, None);
        for parameter in parameters.split('&') {
            let (name, value) = parameter.split_once('=').ok_or(BadClick::Parameter)?;
            let value = decoded(value);
            match name {
                "url" if link.is_none() => {
                    let parsed = value.and_then(|value| Link::parse(&value));
                    link = Some(parsed.ok_or(BadClick::Link)?);
                }
                "sha256" if sha256.is_none() => {
                    let is_digest = |value: &String| {
                        value.len() == SHA256_DIGITS && value.bytes().all(|b| b.is_ascii_hexdigit())
                    };
                    sha256 = Some(value.filter(is_digest).ok_or(BadClick::Digest)?);
                }
                _ => return Err(BadClick::Parameter),
            }
        }
        let link = link.ok_or(BadClick::Link)?;
        match link.to_string().to_ascii_lowercase().ends_with(LIST) {
            true => Err(BadClick::List),
            false => Ok(Self { gateway, link, sha256 }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_names_a_gateway_and_a_file_of_the_web() {
        let file = "https://data.example/run7/a.tar?b=c";
        for (text, gateway, wanted) in [
            ("hikyaku:far?url=https%3A%2F%2Fdata.example%2Frun7%2Fa.tar%3Fb%3Dc", "far", file),
            ("HIKYAKU:me@far?url=https://data.example/run7/a.tar?b=c", "me@far", file),
            (
                "hikyaku://far:5209/?url=http://10.0.0.7/x",
                "hikyaku://far:5209",
                "http://10.0.0.7/x",
            ),
            ("hikyaku:?url=http://a/x#part", "", "http://a/x"),
        ] {
            let click = Click::parse(text).unwrap();
            assert_eq!(click.gateway.as_deref().unwrap_or_default(), gateway, "{text}");
            assert_eq!(click.link.to_string(), wanted, "{text}");
        }
        let digest = "a5".repeat(32);
        let click = Click::parse(&format!("hikyaku:far?sha256={digest}&url=http://a/x")).unwrap();
        assert_eq!(click.sha256, Some(digest));
        for (text, wanted) in [
            ("hikyaku:far", BadClick::Form),
            ("hikyaku://far", BadClick::Form),
            ("https:far?url=http://a/", BadClick::Form),
            ("hikyaku:far?url=http://a/ b", BadClick::Form),
            ("hikyaku:far?url=http://a/\u{1b}[2J", BadClick::Form),
            ("hikyaku:far?sha256=00", BadClick::Digest),
            ("hikyaku:far?url=", BadClick::Link),
            ("hikyaku:far?url=file:///etc/passwd", BadClick::Link),
            ("hikyaku:far?url=--output=/etc/passwd", BadClick::Link),
            ("hikyaku:far?url=http://user:word@a/", BadClick::Link),
            ("hikyaku:far?url=http%3A%2F%2Fa%2F%1b%5b2J", BadClick::Link),
            ("hikyaku:far?url=http://a/x.Meta4", BadClick::List),
            ("hikyaku:far?url=http://a/&url=http://b/", BadClick::Parameter),
            ("hikyaku:far?url=http://a/&output=/etc/passwd", BadClick::Parameter),
            ("hikyaku:far?url", BadClick::Parameter),
        ] {
            assert_eq!(Click::parse(text), Err(wanted), "{text}");
        }
    }
}
