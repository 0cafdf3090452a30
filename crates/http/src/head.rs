//! The head of a response.

use crate::fault::Fault;
use hyper::body::{Body, Incoming};
use hyper::header::{CONTENT_LENGTH, TRANSFER_ENCODING};
use hyper::{HeaderMap, Response};
use std::time::{Duration, SystemTime};

/// Status and headers of a response.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Head {
    /// The status code.
    pub status: u16,
    /// The value of `Content-Length`.
    pub(crate) length: Option<u64>,
    headers: HeaderMap,
}

impl Head {
    /// The head of an answer whose body has not been read.
    ///
    /// # Errors
    ///
    /// The status does not exist, or the body has two ends.
    pub(crate) fn of(answer: &Response<Incoming>) -> Result<Self, Fault> {
        let headers = answer.headers().clone();
        let mut codings = headers.get_all(TRANSFER_ENCODING).iter();
        match (codings.next(), codings.next()) {
            (None, _) => {}
            // Two readers could find two ends.
            (Some(_), _) if headers.contains_key(CONTENT_LENGTH) => {
                return Err(Fault::Lie("tells a length and sends chunks"));
            }
            (Some(coding), None) if coding.as_bytes().eq_ignore_ascii_case(b"chunked") => {}
            _ => return Err(Fault::Lie("sends a transfer coding that was not asked for")),
        }
        let (status, length) = (answer.status().as_u16(), answer.body().size_hint().exact());
        match status {
            200..600 => Ok(Self { status, length, headers }),
            _ => Err(Fault::Lie("answers with a status that does not exist")),
        }
    }

    /// Whether the body comes in chunks.
    pub(crate) fn is_chunked(&self) -> bool {
        self.headers.contains_key(TRANSFER_ENCODING)
    }

    /// The values of all lines of a header, except values that are not UTF-8. The name is in lower case.
    pub fn all<'a, 'n>(&'a self, name: &'n str) -> impl Iterator<Item = &'a str> + use<'a, 'n> {
        let lines = self.headers.get_all(name).into_iter();
        lines.filter_map(|value| Some(str::from_utf8(value.as_bytes()).ok()?.trim()))
    }

    /// The value of the first line of a header.
    pub fn one(&self, name: &str) -> Option<&str> {
        self.all(name).next()
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
    use crate::reading::head_of;

    #[test]
    fn a_time_to_wait_is_seconds_or_a_date() {
        let after = |value: &str| {
            let now = httpdate::parse_http_date("Sun, 06 Nov 1994 08:49:37 GMT").unwrap();
            let text = format!("HTTP/1.1 503 No\r\nRetry-After: {value}\r\n\r\n");
            head_of(text.as_bytes()).unwrap().retry_after(now)
        };
        assert_eq!(after("7"), Some(Duration::from_secs(7)));
        assert_eq!(after("Sun, 06 Nov 1994 08:49:47 GMT"), Some(Duration::from_secs(10)));
        assert_eq!(after("99999999"), Some(Duration::from_secs(99_999_999)));
        assert_eq!(after("soon"), None);
    }
}
