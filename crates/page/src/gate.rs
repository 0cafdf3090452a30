//! Which requests are answered.

use std::fs::File;
use std::io::{self, Read};
use std::net::{Ipv4Addr, SocketAddr};

/// Bytes of the head of a request at most.
pub const HEAD_BYTES_MAX: usize = 16 << 10;
const HEADERS_MAX: usize = 64;
/// Bytes of the token: 128 bits cannot be guessed.
const TOKEN_BYTES: usize = 16;

/// The port, and the token with which the paths of its pages begin.
#[derive(Clone, Debug)]
pub struct Gate {
    token: String,
    port: u16,
}

/// The judgement of a request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Asked {
    /// A request that is answered.
    Path {
        /// The part after `/TOKEN/`; for `/TOKEN.pac` it is `.pac`.
        path: String,
        /// Bytes of the request.
        length: usize,
    },
    /// The head is not complete.
    More,
    /// It is not answered.
    Refused,
}

impl Gate {
    /// A gate with a new token.
    ///
    /// # Errors
    ///
    /// The system has no random numbers.
    pub fn new(port: u16) -> io::Result<Self> {
        Ok(Self { token: new_token()?, port })
    }

    /// A gate with an earlier token, so that the address of a page does not change. `None` for a text that is no token.
    pub fn with_token(token: &str, port: u16) -> Option<Self> {
        let is_token = token.len() == 2 * TOKEN_BYTES && token.bytes().all(is_digit);
        is_token.then(|| Self { token: token.to_owned(), port })
    }

    /// The token: 32 hexadecimal digits.
    pub fn token(&self) -> &str {
        &self.token
    }

    /// Where the port is reached on this machine.
    pub fn socket(&self) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, self.port).into()
    }

    /// The address of the page.
    pub fn address(&self) -> String {
        format!("http://127.0.0.1:{}/{}/", self.port, self.token)
    }

    /// Reads the head of a request.
    // fuzz: none, the head is parsed by httparse, and only whole values are compared
    pub fn read(&self, head: &[u8]) -> Asked {
        let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
        let mut request = httparse::Request::new(&mut headers);
        let length = match request.parse(head) {
            Ok(httparse::Status::Complete(length)) => length,
            Ok(httparse::Status::Partial) if head.len() < HEAD_BYTES_MAX => return Asked::More,
            Ok(httparse::Status::Partial) | Err(_) => return Asked::Refused,
        };
        let path = request.path.and_then(|path| self.behind_token(path));
        match (request.method, path) {
            (Some("GET"), Some(path)) if self.is_from_here(request.headers) => {
                Asked::Path { path: path.to_owned(), length }
            }
            _ => Asked::Refused,
        }
    }

    fn behind_token<'a>(&self, path: &'a str) -> Option<&'a str> {
        let rest = path.strip_prefix('/')?.strip_prefix(self.token.as_str())?;
        rest.strip_prefix('/').or_else(|| rest.starts_with('.').then_some(rest))
    }

    /// Whether the request is for this host, and no page of another site made it (Fetch Metadata, `Sec-Fetch-Site`).
    fn is_from_here(&self, headers: &[httparse::Header<'_>]) -> bool {
        let values = |name: &'static str| {
            let of_name =
                move |header: &&httparse::Header<'_>| header.name.eq_ignore_ascii_case(name);
            headers.iter().filter(of_name).map(|header| header.value.trim_ascii())
        };
        let ours = [format!("127.0.0.1:{}", self.port), format!("localhost:{}", self.port)];
        let mut hosts = values("host");
        let is_ours =
            |host: &[u8]| ours.iter().any(|ours| host.eq_ignore_ascii_case(ours.as_bytes()));
        let is_for_us = hosts.next().is_some_and(is_ours) && hosts.next().is_none();
        is_for_us && !values("sec-fetch-site").any(|site| site.eq_ignore_ascii_case(b"cross-site"))
    }
}

fn new_token() -> io::Result<String> {
    let mut random = [0; TOKEN_BYTES];
    File::open("/dev/urandom")?.read_exact(&mut random)?;
    Ok(random.iter().map(|byte| format!("{byte:02x}")).collect())
}

fn is_digit(byte: u8) -> bool {
    byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOKEN: &str = "00112233445566778899aabbccddeeff";

    fn ask(text: &str) -> Asked {
        Gate::with_token(TOKEN, 80).unwrap().read(text.as_bytes())
    }

    #[test]
    fn only_requests_for_this_host_with_the_token_are_answered() {
        let good = format!("GET /{TOKEN}/a?b=1 HTTP/1.1\r\nHost: 127.0.0.1:80\r\n\r\n");
        let path = |path: &str, length| Asked::Path { path: path.to_owned(), length };
        assert_eq!(ask(&good), path("a?b=1", good.len()));
        assert_eq!(ask(&good[..good.len() - 2]), Asked::More);
        let pac = good.replace("/a?b=1", ".pac");
        assert_eq!(ask(&pac), path(".pac", pac.len()));
        let host = "Host: 127.0.0.1:80";
        for (from, to) in [
            ("GET", "POST"),
            (host, "Host: evil.example:80"),
            (host, "Host: 127.0.0.1:81"),
            (host, "Host: 127.0.0.1:80\r\nHost: a"),
            (host, "X: y"),
            (host, "Host: 127.0.0.1:80\r\nSec-Fetch-Site: cross-site"),
            (TOKEN, "00112233445566778899aabbccddeef0"),
            (TOKEN, "0011223344556677"),
            (TOKEN, ""),
            ("/a?b=1", "0/a"),
            ("/a?b=1", ""),
            (" HTTP/1.1", ""),
        ] {
            let bad = good.replacen(from, to, 1);
            assert_eq!(ask(&bad), Asked::Refused, "{bad}");
        }
        let same = good.replace(host, "Host: localhost:80\r\nSec-Fetch-Site: same-origin");
        assert!(matches!(ask(&same), Asked::Path { .. }));
        assert_eq!(ask(&"a".repeat(HEAD_BYTES_MAX)), Asked::Refused);
    }

    #[test]
    fn a_new_token_is_another_one_and_can_be_kept() {
        let (one, two) = (Gate::new(1).unwrap(), Gate::new(1).unwrap());
        assert_ne!(one.token(), two.token());
        let again = Gate::with_token(one.token(), 1).unwrap();
        assert_eq!(again.address(), one.address());
        for text in ["", "xyz", &TOKEN[1..], &TOKEN.to_uppercase(), &format!("{TOKEN}0")] {
            assert!(Gate::with_token(text, 1).is_none(), "{text}");
        }
    }
}
