//! Where a daemon listens, as users write it.

use std::fmt;
use std::str::FromStr;

/// The port of `hikyaku serve`, UDP and TCP, unless another is given.
pub const PORT: u16 = 5209;

/// Where a daemon listens.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Address {
    /// A name or an IP address, without brackets.
    pub host: String,
    /// The port.
    pub port: u16,
}

/// The text is no address.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("'{0}' is not an address of a server: expected HOST, HOST:PORT or [IPV6]:PORT")]
pub struct NotAnAddress(String);

impl FromStr for Address {
    type Err = NotAnAddress;

    // fuzz: none, the user's own words
    fn from_str(text: &str) -> Result<Self, NotAnAddress> {
        let error = || NotAnAddress(text.to_owned());
        let (host, port) = match text.strip_prefix('[') {
            Some(rest) => {
                let (host, rest) = rest.split_once(']').ok_or_else(error)?;
                match rest.strip_prefix(':') {
                    Some(port) => (host, Some(port)),
                    None if rest.is_empty() => (host, None),
                    None => return Err(error()),
                }
            }
            // More than one colon: an IPv6 address without a port.
            None if text.matches(':').count() > 1 => (text, None),
            None => match text.split_once(':') {
                Some((host, port)) => (host, Some(port)),
                None => (text, None),
            },
        };
        let port = match port.map(str::parse::<u16>) {
            None => PORT,
            Some(Ok(port)) if port > 0 => port,
            Some(_) => return Err(error()),
        };
        let is_name = |c: char| c.is_ascii_alphanumeric() || ".-_:%".contains(c);
        match !host.is_empty() && host.chars().all(is_name) && !host.starts_with('-') {
            true => Ok(Self { host: host.to_owned(), port }),
            false => Err(error()),
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.host.contains(':') {
            true => write!(f, "[{}]:{}", self.host, self.port),
            false => write!(f, "{}:{}", self.host, self.port),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_have_a_port_or_the_usual_one() {
        for (text, host, port) in [
            ("node1", "node1", PORT),
            ("node1:7000", "node1", 7000),
            ("192.0.2.7:1", "192.0.2.7", 1),
            ("[2001:db8::1]:70", "2001:db8::1", 70),
            ("[2001:db8::1]", "2001:db8::1", PORT),
            ("2001:db8::1", "2001:db8::1", PORT),
        ] {
            let address: Address = text.parse().unwrap();
            assert_eq!((address.host.as_str(), address.port), (host, port), "{text}");
            assert_eq!(address.to_string().parse(), Ok(address));
        }
        for text in ["", ":1", "a:0", "a:b", "a:70000", "[::1", "[::1]x", "-o:1", "a/b", "a b"] {
            assert!(text.parse::<Address>().is_err(), "{text}");
        }
    }
}
