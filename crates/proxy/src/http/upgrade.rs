//! A request for another protocol on the same connection (RFC 9110, section 7.8).
//!
//! The server decides by its response. If that is 101, the connection has the other protocol in both directions from there on. Until then
//! nothing of the program is passed on, because behind any other response it would be a further request, which may be for
//! another server.

use super::{HEAD_BYTES_MAX, HEADERS_MAX, names_of_connection};
use httparse::{Header, Response, Status};

/// What the server has decided.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Switch {
    /// The connection has the other protocol.
    Made,
    /// It stays with HTTP, and ends with this response.
    Refused,
}

/// The beginning of a response to such a request, of which bytes have come.
#[derive(Debug, Default)]
pub(crate) struct Upgraded(Vec<u8>);

/// The response is no such thing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct BadResponse;

/// Headers of a response that concern the connection to the server only.
const OF_CONNECTION: [&str; 3] = ["connection", "keep-alive", "proxy-connection"];

/// The protocols that a request wishes for, if it does.
pub(super) fn wish(headers: &[Header<'_>]) -> Option<Vec<u8>> {
    let is_wished = names_of_connection(headers).any(|name| name.eq_ignore_ascii_case(b"upgrade"));
    let named = headers.iter().filter(|header| header.name.eq_ignore_ascii_case("upgrade"));
    let protocols: Vec<&[u8]> = named.map(|header| header.value.trim_ascii()).collect();
    let protocols = protocols.join(&b", "[..]);
    (is_wished && !protocols.is_empty()).then_some(protocols)
}

impl Upgraded {
    /// Takes bytes of the response. Returns what the server has decided, once that is known, and what the program gets for
    /// all bytes so far.
    ///
    /// # Errors
    ///
    /// They are no response.
    // fuzz: none, parsed by httparse; its bytes pass on to the program
    pub(crate) fn take(&mut self, bytes: &[u8]) -> Result<Option<(Switch, Vec<u8>)>, BadResponse> {
        self.0.extend_from_slice(bytes);
        // Interim responses come before the one that decides, and pass as they are.
        let mut from = 0;
        loop {
            let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
            let mut response = Response::new(&mut headers);
            let parsed = response.parse(&self.0[from..]).map_err(|_| BadResponse)?;
            let Status::Complete(length) = parsed else {
                return (self.0.len() < HEAD_BYTES_MAX).then_some(None).ok_or(BadResponse);
            };
            match response.code {
                Some(101) => return Ok(Some((Switch::Made, std::mem::take(&mut self.0)))),
                Some(100..=199) => from += length,
                _ => {
                    let head = closing(&response);
                    let all = [&self.0[..from], &head, &self.0[from + length..]].concat();
                    self.0.clear();
                    return Ok(Some((Switch::Refused, all)));
                }
            }
        }
    }
}

/// The head of a response behind which the connection ends.
fn closing(response: &Response<'_, '_>) -> Vec<u8> {
    let (version, code) = (response.version.unwrap_or(1), response.code.unwrap_or(502));
    let reason = response.reason.unwrap_or_default();
    let mut out = format!("HTTP/1.{version} {code} {reason}\r\n").into_bytes();
    let stays = |header: &&Header<'_>| {
        !OF_CONNECTION.iter().any(|name| header.name.eq_ignore_ascii_case(name))
    };
    for header in response.headers.iter().filter(|header| stays(&&**header)) {
        out.extend([header.name.as_bytes(), b": ", header.value, b"\r\n"].concat());
    }
    out.extend(b"Connection: close\r\n\r\n");
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn take(pieces: &[&str]) -> Result<Option<(Switch, String)>, BadResponse> {
        let mut upgraded = Upgraded::default();
        let mut last = Ok(None);
        for piece in pieces {
            last = upgraded.take(piece.as_bytes());
        }
        last.map(|it| it.map(|(switch, all)| (switch, String::from_utf8(all).unwrap())))
    }

    #[test]
    fn only_101_switches_and_any_other_response_ends_the_connection() {
        let made =
            "HTTP/1.1 101 Switching Protocols\r\nUpgrade: a\r\nConnection: upgrade\r\n\r\nrest";
        assert_eq!(take(&[made]), Ok(Some((Switch::Made, made.to_owned()))));
        let early = "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n";
        let (one, two) = made.split_at(30);
        assert_eq!(take(&[early, one, two]), Ok(Some((Switch::Made, format!("{early}{made}")))));
        let refused = "HTTP/1.1 426 Upgrade Required\r\nConnection: keep-alive\r\nContent-Length: 2\r\n\r\nno";
        let wanted =
            "HTTP/1.1 426 Upgrade Required\r\nContent-Length: 2\r\nConnection: close\r\n\r\nno";
        assert_eq!(take(&[refused]), Ok(Some((Switch::Refused, wanted.to_owned()))));
        assert_eq!(take(&["HTTP/1.1 1"]), Ok(None));
        assert_eq!(take(&["no response\r\n\r\n"]), Err(BadResponse));
        assert_eq!(take(&["HTTP/1.1 200 ", &"a".repeat(HEAD_BYTES_MAX)]), Err(BadResponse));
    }
}
