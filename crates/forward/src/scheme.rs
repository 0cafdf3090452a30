//! How a web server is spoken to, and where its redirects may lead.

/// The scheme of a web address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Scheme {
    /// In the clear.
    Http,
    /// Inside TLS.
    Https,
}

/// A redirect leads from a server whose certificate was checked to one without.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("leads from https to http, where anybody could change the file")]
pub struct Weaker;

impl Scheme {
    /// The scheme that an address begins with, without its colon. Upper case is the same as lower case.
    // fuzz: none, two words are known
    pub fn parse(text: &str) -> Option<Self> {
        let all = [Self::Http, Self::Https];
        all.into_iter().find(|scheme| text.eq_ignore_ascii_case(scheme.name()))
    }

    /// Its name in lower case.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Https => "https",
        }
    }

    /// The port of an address that names none.
    pub const fn port(self) -> u16 {
        match self {
            Self::Http => 80,
            Self::Https => 443,
        }
    }

    /// Checks a redirect from a server with this scheme to one with the scheme `next`.
    ///
    /// # Errors
    ///
    /// The redirect leads from `https` to `http`: every host on the path could change the answer.
    pub const fn check_redirect(self, next: Self) -> Result<(), Weaker> {
        match (self, next) {
            (Self::Https, Self::Http) => Err(Weaker),
            (Self::Http, _) | (_, Self::Https) => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_redirect_does_not_leave_tls() {
        use Scheme::{Http, Https};
        assert_eq!(Https.check_redirect(Http), Err(Weaker));
        for (from, to) in [(Https, Https), (Http, Https), (Http, Http)] {
            assert_eq!(from.check_redirect(to), Ok(()), "{from:?} to {to:?}");
        }
    }

    #[test]
    fn schemes_are_read_in_any_case() {
        assert_eq!(Scheme::parse("HttpS"), Some(Scheme::Https));
        assert_eq!(Scheme::parse("http"), Some(Scheme::Http));
        for text in ["", "ftp", "httpss", "http:"] {
            assert_eq!(Scheme::parse(text), None, "{text}");
        }
    }
}
