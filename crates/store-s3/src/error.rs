//! Why a request failed.

use hikyaku_store::ErrorKind;

/// Why a bucket cannot be used, or a request to it failed.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum S3Error {
    /// No setting has the user's credentials.
    #[error("no credentials for the bucket '{0}' were found")]
    NoCredentials(String),
    /// A setting is wrong: where it stands, and what is wrong with it.
    #[error("{place}: {why}")]
    Setting {
        /// A variable of the environment, or a file.
        place: String,
        /// The error in it.
        why: String,
    },
    /// The server refuses the request.
    #[error("{}", refused(*.status, .code, .message))]
    Refused {
        /// The status of HTTP.
        status: u16,
        /// The server's word for the reason (`NoSuchBucket`); empty if it gives none.
        code: String,
        /// The server's text; empty if it gives none.
        message: String,
        /// The region in which the bucket is, where the request went to another one.
        region: Option<String>,
    },
    /// The server cannot be reached, or its connection was lost.
    #[error("the storage cannot be reached: {0}")]
    Unreachable(String),
    /// The server did not answer in time.
    #[error("the storage does not answer")]
    TimedOut,
    /// The user has stopped it.
    #[error("stopped")]
    Stopped,
    /// The server does what no S3 service does.
    #[error("the storage breaks the rules of S3: {0}")]
    Broken(&'static str),
    /// The object changed while it was read.
    #[error("it was changed meanwhile")]
    Changed,
    /// Nothing can be started on this machine.
    #[error("{0}")]
    Here(String),
}

fn refused(status: u16, code: &str, message: &str) -> String {
    // The server's text is printed on a terminal.
    let clean = |text: &str| text.chars().filter(|c| !c.is_control()).take(300).collect::<String>();
    match (code, message) {
        ("", _) => format!("the storage answers with the status {status}"),
        (code, "") => format!("the storage says {} ({status})", clean(code)),
        (code, message) => format!("the storage says {}: {}", clean(code), clean(message)),
    }
}

impl S3Error {
    /// The kind of the error for a caller of the store.
    pub fn kind(&self) -> ErrorKind {
        /// The error number for all other kinds.
        const EIO: i32 = 5;
        match self {
            Self::NoCredentials(_) | Self::Setting { .. } => ErrorKind::Denied,
            Self::Unreachable(_) | Self::Stopped => ErrorKind::Unreachable,
            Self::TimedOut => ErrorKind::TimedOut,
            Self::Broken(_) | Self::Here(_) => ErrorKind::System(EIO),
            Self::Changed => ErrorKind::Changed,
            Self::Refused { status, code, .. } => match (code.as_str(), status) {
                ("QuotaExceeded" | "InsufficientCapacity", _) => ErrorKind::Quota,
                ("XMinioStorageFull", _) | (_, 507) => ErrorKind::NoSpace,
                ("EntityTooLarge", _) | (_, 413) => ErrorKind::TooLarge,
                ("KeyTooLongError" | "InvalidObjectName" | "XMinioInvalidObjectName", _) => {
                    ErrorKind::BadName
                }
                ("NoSuchUpload", _) => ErrorKind::Gone,
                ("RequestTimeout", _) | (_, 408 | 504) => ErrorKind::TimedOut,
                (_, 404) => ErrorKind::NotFound,
                (_, 412) => ErrorKind::Changed,
                (_, 409) => ErrorKind::Busy,
                (_, 301 | 307 | 401 | 403) => ErrorKind::Denied,
                (_, 429 | 500 | 502 | 503) => ErrorKind::Unreachable,
                _ => ErrorKind::System(EIO),
            },
        }
    }

    /// The remedy, for the user.
    pub fn remedy(&self) -> Option<String> {
        let text = match self {
            Self::NoCredentials(_) => {
                "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or make ~/.aws/credentials with 'aws configure'; \
                 for a public bucket set AWS_SKIP_SIGNATURE=true"
            }
            Self::Refused { region: Some(region), .. } => {
                return Some(format!("AWS_REGION={region}: the bucket is in that region"));
            }
            Self::Refused { code, status, .. } => match code.as_str() {
                "NoSuchBucket" => {
                    "check the name of the bucket, and --endpoint if it is not at Amazon"
                }
                "InvalidAccessKeyId" => {
                    "check AWS_ACCESS_KEY_ID, AWS_PROFILE and ~/.aws/credentials"
                }
                "SignatureDoesNotMatch" => "check AWS_SECRET_ACCESS_KEY",
                "ExpiredToken" | "TokenRefreshRequired" | "InvalidToken" => {
                    "log in again: the session token is not valid any more"
                }
                "RequestTimeTooSkewed" => "set the clock of this machine",
                "AuthorizationHeaderMalformed" | "PermanentRedirect" => {
                    "set AWS_REGION to the region of the bucket"
                }
                _ if matches!(status, 401 | 403) => {
                    "ask the owner of the bucket for the permissions s3:ListBucket, s3:GetObject and, to write, s3:PutObject"
                }
                _ => return None,
            },
            Self::Unreachable(_) | Self::TimedOut => {
                "check the network, and --endpoint or AWS_ENDPOINT_URL if the bucket is not at Amazon"
            }
            _ => return None,
        };
        Some(text.to_owned())
    }

    /// Whether the same request may succeed a little later.
    pub(crate) fn may_pass(&self) -> bool {
        self.kind().is_away() && *self != Self::Stopped
    }

    /// Whether there is no such object.
    pub(crate) fn is_not_found(&self) -> bool {
        matches!(self, Self::Refused { status: 404, code, .. } if code != "NoSuchBucket")
    }
}

impl From<S3Error> for ErrorKind {
    fn from(error: S3Error) -> Self {
        error.kind()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(status: u16, code: &str) -> S3Error {
        let (code, message) = (code.to_owned(), "a\u{1b}[2Jb".to_owned());
        S3Error::Refused { status, code, message, region: None }
    }

    #[test]
    fn refusals_have_kinds_and_remedies() {
        let cases = [
            (404, "NoSuchKey", ErrorKind::NotFound, None),
            (404, "NoSuchBucket", ErrorKind::NotFound, Some("name of the bucket")),
            (403, "SignatureDoesNotMatch", ErrorKind::Denied, Some("AWS_SECRET_ACCESS_KEY")),
            (403, "AccessDenied", ErrorKind::Denied, Some("s3:GetObject")),
            (403, "RequestTimeTooSkewed", ErrorKind::Denied, Some("clock")),
            (503, "SlowDown", ErrorKind::Unreachable, None),
            (412, "PreconditionFailed", ErrorKind::Changed, None),
            (400, "EntityTooLarge", ErrorKind::TooLarge, None),
            (400, "KeyTooLongError", ErrorKind::BadName, None),
            (404, "NoSuchUpload", ErrorKind::Gone, None),
        ];
        for (status, code, kind, remedy) in cases {
            let error = of(status, code);
            assert_eq!(error.kind(), kind, "{code}");
            let told = error.remedy();
            assert_eq!(told.is_some(), remedy.is_some(), "{code}: {told:?}");
            assert!(told.unwrap_or_default().contains(remedy.unwrap_or_default()), "{code}");
        }
        assert!(of(503, "SlowDown").may_pass() && !of(403, "AccessDenied").may_pass());
        assert!(of(404, "NoSuchKey").is_not_found() && !of(404, "NoSuchBucket").is_not_found());
    }

    #[test]
    fn a_servers_text_does_not_reach_the_terminal_as_it_is() {
        assert_eq!(of(400, "X").to_string(), "the storage says X: a[2Jb");
        assert_eq!(of(418, "").to_string(), "the storage answers with the status 418");
    }
}
