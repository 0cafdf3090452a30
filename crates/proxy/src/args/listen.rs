//! Where to listen, and where to go from there, as ssh(1) has it: `[BIND:]PORT`, `[BIND:]PORT:HOST:HOSTPORT`, and the path of
//! a Unix socket in place of a port, of a host and a port, or of both.

use hikyaku_forward::{At, Goal, Host, SocketPath, Target};
use std::fmt;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

/// A port to listen on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Listen {
    pub(crate) bind: Bind,
    /// 0 lets the system choose one.
    pub(crate) port: u16,
}

/// On which addresses.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Bind {
    /// None is given: loopback, or all with `-g`.
    Default,
    /// `localhost`.
    Loopback,
    /// `*`, or nothing before the colon.
    All,
    /// This one; its port means nothing.
    Address(SocketAddr),
}

/// Where to listen.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Place {
    Port(Listen),
    /// At a Unix socket, which is made.
    Socket(SocketPath),
}

/// Where to listen, and where its flows go: `-L`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Forward {
    pub(crate) place: Place,
    pub(crate) goal: Goal,
}

/// Where the far side listens, and where its flows go: `-R`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Remote {
    pub(crate) place: Place,
    pub(crate) leads: Leads,
}

/// Where flows of a listener go.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Leads {
    /// All of them to this target.
    To(Goal),
    /// To where each program asks for: the listener is a SOCKS proxy.
    Anywhere,
}

impl Listen {
    /// Reads `[BIND:]PORT`.
    // fuzz: none, the user's own words
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let words = words(text)?;
        match words.as_slice() {
            [port] => Self::of(None, port),
            [bind, port] => Self::of(Some(bind), port),
            _ => Err("expected [BIND:]PORT, such as 1080 or 127.0.0.1:1080".to_owned()),
        }
    }

    fn of(bind: Option<&Word<'_>>, port: &Word<'_>) -> Result<Self, String> {
        let number = port.text.parse::<u16>().ok().filter(|_| !port.has_brackets);
        let port = number.ok_or_else(|| format!("'{}' is not a port", port.text))?;
        let bind = match bind.map(|word| word.text) {
            None => Bind::Default,
            Some("" | "*") => Bind::All,
            Some("localhost") => Bind::Loopback,
            Some(text) => match text.parse::<IpAddr>() {
                Ok(address) if address.is_unspecified() => Bind::All,
                Ok(address) => Bind::Address(SocketAddr::new(address, 0)),
                Err(_) => {
                    return Err(format!(
                        "'{text}' is no address to listen on: expected an IP address, * or \
                         localhost"
                    ));
                }
            },
        };
        Ok(Self { bind, port })
    }
}

impl Forward {
    /// Reads `[BIND:]PORT:HOST:HOSTPORT`. A text with a slash in place of `[BIND:]PORT` or of `HOST:HOSTPORT` is the path of a
    /// Unix socket.
    // fuzz: none, the user's own words
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let words = words(text)?;
        let (place, rest) = match words.as_slice() {
            [path, rest @ ..] if path.is_path() => (Place::Socket(path.socket()?), rest),
            [port, rest @ ..] if rest.len() <= 2 && port.is_number() => {
                (Place::Port(Listen::of(None, port)?), rest)
            }
            [bind, port, rest @ ..] if rest.len() <= 2 => {
                (Place::Port(Listen::of(Some(bind), port)?), rest)
            }
            _ => return Err(USAGE.to_owned()),
        };
        let goal = match rest {
            [path] if path.is_path() => Goal::Socket(path.socket()?),
            [host, port] => Goal::Tcp(target(host, port)?),
            _ => return Err(USAGE.to_owned()),
        };
        Ok(Self { place, goal })
    }
}

impl Remote {
    /// Reads what [`Forward::parse`] reads, or only the part before the target: `[BIND:]PORT` or a path.
    // fuzz: none, the user's own words
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let words = words(text)?;
        let place = match words.as_slice() {
            [path] if path.is_path() => Place::Socket(path.socket()?),
            [port] => Place::Port(Listen::of(None, port)?),
            [bind, port] if port.is_number() => Place::Port(Listen::of(Some(bind), port)?),
            _ => {
                let Forward { place, goal } = Forward::parse(text)?;
                return Ok(Self { place, leads: Leads::To(goal) });
            }
        };
        Ok(Self { place, leads: Leads::Anywhere })
    }

    /// What the far gateway is asked for.
    pub(crate) fn at(&self) -> At {
        match &self.place {
            Place::Socket(path) => At::Socket(path.clone()),
            Place::Port(listen) => At::Port {
                address: match &listen.bind {
                    Bind::Default | Bind::Loopback => None,
                    Bind::All => Some(Ipv6Addr::UNSPECIFIED.into()),
                    Bind::Address(address) => Some(address.ip()),
                },
                port: listen.port,
            },
        }
    }
}

const USAGE: &str = "expected [BIND:]PORT:HOST:HOSTPORT, such as 8080:web:80; an IPv6 address has brackets, and a path \
     with a / is a Unix socket";

fn target(host: &Word<'_>, port: &Word<'_>) -> Result<Target, String> {
    let number = port.text.parse::<u16>().ok().filter(|&port| port != 0);
    let port = number.ok_or_else(|| format!("'{}' is not a port of a server", port.text))?;
    let host = Host::parse(host.text).map_err(|error| error.to_string())?;
    Ok(Target { host, port })
}

/// A word between colons.
struct Word<'a> {
    text: &'a str,
    has_brackets: bool,
}

impl Word<'_> {
    fn is_path(&self) -> bool {
        !self.has_brackets && self.text.contains('/')
    }

    fn is_number(&self) -> bool {
        !self.has_brackets && self.text.bytes().all(|byte| byte.is_ascii_digit())
    }

    fn socket(&self) -> Result<SocketPath, String> {
        SocketPath::parse(self.text).map_err(|error| format!("'{}': {error}", self.text))
    }
}

/// Divides a text at its colons; those in brackets belong to an address.
fn words(text: &str) -> Result<Vec<Word<'_>>, String> {
    let (mut words, mut rest) = (Vec::new(), text);
    loop {
        let (word, after) = match rest.strip_prefix('[') {
            Some(inner) => {
                let (address, after) = inner.split_once(']').ok_or("a '[' without a ']'")?;
                (Word { text: address, has_brackets: true }, after)
            }
            None => {
                let end = rest.find(':').unwrap_or(rest.len());
                (Word { text: &rest[..end], has_brackets: false }, &rest[end..])
            }
        };
        words.push(word);
        match after.strip_prefix(':') {
            Some(next) => rest = next,
            None if after.is_empty() => return Ok(words),
            None => return Err("only a colon follows a ']'".to_owned()),
        }
    }
}

impl fmt::Display for Leads {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::To(goal) => write!(f, "to {goal}"),
            Self::Anywhere => f.write_str("SOCKS proxy"),
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Port(listen) => listen.fmt(f),
            Self::Socket(path) => path.fmt(f),
        }
    }
}

impl fmt::Display for Listen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let port = self.port;
        match &self.bind {
            Bind::Default => port.fmt(f),
            Bind::Loopback => write!(f, "localhost:{port}"),
            Bind::All => write!(f, "*:{port}"),
            Bind::Address(address) => SocketAddr::new(address.ip(), port).fmt(f),
        }
    }
}
