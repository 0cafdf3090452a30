//! The body of a response and its end (RFC 9112, section 6).

use crate::fault::Fault;
use crate::head::Head;
use crate::wire::Wire;

/// Lines of a trailer at most.
const TRAILER_LINES_MAX: usize = 128;

/// The unread rest of a body.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Body {
    /// The body has been read to its end.
    Over,
    /// This many bytes.
    Length(u64),
    /// Chunks: the unread bytes of this one. `None` before the first.
    Chunked(Option<u64>),
    /// All bytes until the connection ends.
    ToEnd,
}

impl Body {
    /// The body of a response to `GET`.
    ///
    /// # Errors
    /// The head has two ends.
    pub(crate) fn of(head: &Head) -> Result<Self, Fault> {
        if head.status < 200 || matches!(head.status, 204 | 304) {
            return Ok(Self::Over);
        }
        let length = head.content_length()?;
        let mut codings = head.all("transfer-encoding");
        match (codings.next(), length) {
            (Some(coding), None) if coding.eq_ignore_ascii_case("chunked") => {
                Ok(Self::Chunked(None))
            }
            (Some(_), None) => Err(Fault::Lie("sends a transfer coding that was not asked for")),
            // Two readers could find two ends.
            (Some(_), Some(_)) => Err(Fault::Lie("tells a length and sends chunks")),
            (None, Some(0)) => Ok(Self::Over),
            (None, Some(length)) => Ok(Self::Length(length)),
            (None, None) => Ok(Self::ToEnd),
        }
    }

    /// Reads bytes of the body. Returns 0 at its end.
    pub(crate) fn read(&mut self, wire: &mut Wire, into: &mut [u8]) -> Result<usize, Fault> {
        match self {
            Self::Over => Ok(0),
            Self::ToEnd => {
                let length = wire.read(into)?;
                if length == 0 {
                    *self = Self::Over;
                }
                Ok(length)
            }
            Self::Length(left) => {
                let length = some(wire, into, left)?;
                if *left == 0 {
                    *self = Self::Over;
                }
                Ok(length)
            }
            Self::Chunked(left) => {
                let at = left.take();
                let mut at = match at {
                    Some(at) if at > 0 => at,
                    _ => match chunk(wire, at.is_some())? {
                        0 => {
                            trailer(wire)?;
                            *self = Self::Over;
                            return Ok(0);
                        }
                        size => size,
                    },
                };
                let length = some(wire, into, &mut at)?;
                *left = Some(at);
                Ok(length)
            }
        }
    }
}

/// Reads some of `left` bytes.
fn some(wire: &mut Wire, into: &mut [u8], left: &mut u64) -> Result<usize, Fault> {
    let room = into.len().min(usize::try_from(*left).unwrap_or(usize::MAX));
    let length = wire.read(&mut into[..room])?;
    if length == 0 && room > 0 {
        return Err(Fault::Closed);
    }
    *left -= length as u64;
    Ok(length)
}

/// The size of the next chunk. `is_next`: the end of a chunk precedes it.
fn chunk(wire: &mut Wire, is_next: bool) -> Result<u64, Fault> {
    if is_next && !wire.line()?.is_empty() {
        return Err(Fault::Lie("sends a chunk that is longer than it says"));
    }
    let line = wire.line()?;
    chunk_size(&line).ok_or(Fault::Lie("sends a chunk without its size"))
}

/// The size in the first line of a chunk, without extensions behind a semicolon.
// fuzz: web
pub(crate) fn chunk_size(line: &[u8]) -> Option<u64> {
    let digits = line.split(|&byte| byte == b';').next()?.trim_ascii();
    let is_hex = digits.iter().all(u8::is_ascii_hexdigit);
    if digits.is_empty() || !is_hex {
        return None;
    }
    u64::from_str_radix(str::from_utf8(digits).ok()?, 16).ok()
}

fn trailer(wire: &mut Wire) -> Result<(), Fault> {
    for _ in 0..TRAILER_LINES_MAX {
        if wire.line()?.is_empty() {
            return Ok(());
        }
    }
    Err(Fault::Lie("sends a trailer without end"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chunk_begins_with_its_size() {
        assert_eq!(chunk_size(b"1aF"), Some(0x1af));
        assert_eq!(chunk_size(b"5 ;name=value"), Some(5));
        for line in [&b""[..], b"+5", b"-1", b"0x5", b"5 5", b"11111111111111111"] {
            assert_eq!(chunk_size(line), None, "{line:?}");
        }
    }

    #[test]
    fn a_body_with_two_ends_is_refused() {
        let body = |lines: &str| {
            let text = format!("HTTP/1.1 200 OK\r\n{lines}\r\n");
            Body::of(&Head::parse(text.as_bytes()).unwrap().unwrap().0)
        };
        assert_eq!(body("Content-Length: 7\r\n").unwrap(), Body::Length(7));
        assert_eq!(body("Transfer-Encoding: chunked\r\n").unwrap(), Body::Chunked(None));
        assert_eq!(body("").unwrap(), Body::ToEnd);
        assert!(body("Transfer-Encoding: chunked\r\nContent-Length: 7\r\n").is_err());
        assert!(body("Transfer-Encoding: gzip, chunked\r\n").is_err());
    }
}
