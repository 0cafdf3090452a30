//! The head of a response.

use crate::fault::Fault;
use std::time::{Duration, SystemTime};

/// Octets of a head at most: twice as many as common servers send.
pub(crate) const HEAD_BYTES_MAX: usize = 64 << 10;
/// Header lines of a head at most.
const HEADERS_MAX: usize = 128;

/// Status and headers of a response.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Head {
    /// The status code.
    pub status: u16,
    /// The version is HTTP/1.0: without `keep-alive` the server closes the connection.
    pub(crate) is_old: bool,
    headers: Vec<(String, Vec<u8>)>,
}

impl Head {
    /// The head at the beginning of `bytes` and its length; `None` if the head is not complete.
    ///
    /// # Errors
    ///
    /// The bytes are not the head of a response, or exceed the limits of this client.
    // fuzz: web
    pub fn parse(bytes: &[u8]) -> Result<Option<(Self, usize)>, Fault> {
        let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
        let mut response = httparse::Response::new(&mut headers);
        let length = match response.parse(bytes) {
            Ok(httparse::Status::Complete(length)) => length,
            Ok(httparse::Status::Partial) if bytes.len() < HEAD_BYTES_MAX => return Ok(None),
            Ok(httparse::Status::Partial) => return Err(Fault::Lie("sends a head without end")),
            Err(httparse::Error::TooManyHeaders) => {
                return Err(Fault::Lie("sends too many header lines"));
            }
            Err(_) => return Err(Fault::Lie("does not speak HTTP/1.1")),
        };
        let lines = response.headers.iter();
        let headers = lines.map(|line| (line.name.to_ascii_lowercase(), line.value.to_vec()));
        let head = Self {
            status: response.code.unwrap_or(0),
            is_old: response.version == Some(0),
            headers: headers.collect(),
        };
        Ok(Some((head, length)))
    }

    /// The values of all lines of a header, except values that are not UTF-8. The name is in lower case.
    pub fn all<'a, 'n>(&'a self, name: &'n str) -> impl Iterator<Item = &'a str> + use<'a, 'n> {
        let lines = self.headers.iter().filter(move |(other, _)| other == name);
        lines.filter_map(|(_, value)| Some(str::from_utf8(value).ok()?.trim()))
    }

    /// The value of the first line of a header.
    pub fn one(&self, name: &str) -> Option<&str> {
        self.all(name).next()
    }

    /// Whether a header that is a list contains this word.
    pub fn has_word(&self, name: &str, word: &str) -> bool {
        let words = self.all(name).flat_map(|value| value.split(','));
        words.map(str::trim).any(|other| other.eq_ignore_ascii_case(word))
    }

    /// The value of `Content-Length`.
    ///
    /// # Errors
    ///
    /// Several lengths that differ (RFC 9112, section 6.3).
    pub fn content_length(&self) -> Result<Option<u64>, Fault> {
        let mut length = None;
        let values = self.all("content-length").flat_map(|value| value.split(','));
        for text in values.map(str::trim) {
            let is_number = !text.is_empty() && text.bytes().all(|digit| digit.is_ascii_digit());
            let value = text.parse().ok().filter(|_| is_number);
            let value = value.ok_or(Fault::Lie("tells a length that is no number"))?;
            if length.is_some_and(|length| length != value) {
                return Err(Fault::Lie("tells two different lengths"));
            }
            length = Some(value);
        }
        Ok(length)
    }

    /// `Retry-After`, in seconds or as a date (RFC 9110, section 10.2.3).
    pub fn retry_after(&self, now: SystemTime) -> Option<Duration> {
        let text = self.one("retry-after")?;
        match text.parse() {
            Ok(seconds) => Some(Duration::from_secs(seconds)),
            Err(_) => {
                let until = httpdate::parse_http_date(text).ok()?;
                Some(until.duration_since(now).unwrap_or_default())
            }
        }
    }

    /// The fault for a status other than a success.
    pub fn refusal(&self) -> Fault {
        Fault::Status { code: self.status, retry_after: self.retry_after(SystemTime::now()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(text: &str) -> Head {
        Head::parse(text.as_bytes()).unwrap().unwrap().0
    }

    #[test]
    fn headers_are_found_by_name() {
        let head = head("HTTP/1.1 206 Yes\r\nETAG: \"a\"\r\nConnection: x, Close\r\n\r\nbody");
        assert_eq!((head.status, head.one("etag")), (206, Some("\"a\"")));
        assert!(head.has_word("connection", "close") && !head.has_word("connection", "clos"));
    }

    #[test]
    fn lengths_that_differ_are_a_lie() {
        let length =
            |lines: &str| head(&format!("HTTP/1.1 200 OK\r\n{lines}\r\n")).content_length();
        assert_eq!(length("").unwrap(), None);
        assert_eq!(length("Content-Length: 5\r\nContent-Length: 5\r\n").unwrap(), Some(5));
        for lines in
            ["Content-Length: 5, 6\r\n", "Content-Length: -1\r\n", "Content-Length: +1\r\n"]
        {
            assert!(length(lines).is_err(), "{lines}");
        }
    }

    #[test]
    fn a_head_has_a_limit() {
        assert!(Head::parse(b"HTTP/1.1 200 OK\r\nA: b\r\n").unwrap().is_none());
        let long = format!("HTTP/1.1 200 OK\r\nA: {}", "x".repeat(HEAD_BYTES_MAX));
        assert!(Head::parse(long.as_bytes()).is_err());
        let many = format!("HTTP/1.1 200 OK\r\n{}\r\n", "A: b\r\n".repeat(HEADERS_MAX + 1));
        assert!(Head::parse(many.as_bytes()).is_err());
    }

    #[test]
    fn a_time_to_wait_is_seconds_or_a_date() {
        let after = |value: &str| {
            let now = httpdate::parse_http_date("Sun, 06 Nov 1994 08:49:37 GMT").unwrap();
            head(&format!("HTTP/1.1 503 No\r\nRetry-After: {value}\r\n\r\n")).retry_after(now)
        };
        assert_eq!(after("7"), Some(Duration::from_secs(7)));
        assert_eq!(after("Sun, 06 Nov 1994 08:49:47 GMT"), Some(Duration::from_secs(10)));
        assert_eq!(after("99999999"), Some(Duration::from_secs(99_999_999)));
        assert_eq!(after("soon"), None);
    }
}
